# SPDX-License-Identifier: LGPL-3.0-or-later
"""Random values of NFS: numbers, names, handles, stateids, attributes, ACLs.

Each draw depends on the generator alone, never on what the server answered:
what came from the server is picked by number from a Pool.  So the same seed
makes the same requests, whatever inode numbers the files have.
"""
import struct

from nfs import nfs4
from nfs.xdr import number, opaque, wide

NUMBERS = (0, 1, 2, 3, 4, 7, 15, 16, 31, 255, 1023, 4096, 65535, 1 << 20,
           (1 << 31) - 1, 1 << 31, (1 << 32) - 4, (1 << 32) - 1)
# Nothing between 4 GiB and the largest file of CephFS (1 TiB): who removes
# such a file has the MDS delete each object that it could have.
OFFSETS = (0, 1, 511, 4095, 4096, 65536, (1 << 20) + 1, (1 << 22) - 1, 1 << 22,
           (1 << 22) + 4095, 1 << 26, (1 << 40) + 1, 1 << 41, 1 << 62,
           (1 << 63) - 4096, (1 << 63) - 1, 1 << 63, (1 << 64) - 4096,
           (1 << 64) - 2, (1 << 64) - 1)
RARE_OFFSETS = ((1 << 32) - 1, 1 << 32)
COUNTS = (0, 1, 2, 511, 4096, 65536, 1 << 20, (1 << 20) + 1, (1 << 31) - 1,
          1 << 31, (1 << 32) - 1)
ODD_NAMES = (b"", b".", b"..", b"/", b"a/b", b"../d0", b"a\0b", b"\xff\xfe",
             b"\xc0\xaf", b"\xed\xa0\x80", "ü".encode(), "u\u0308".encode(),
             b"n" * 255, b"n" * 256, b"n" * 1025, b"n" * 4096, b"n" * 8193,
             b"\n", b" ", b"%s%n%x", b"-rf", b"*", b".snap", b"._", b"CON",
             b"x" * 254 + b"/")
WHO = (b"OWNER@", b"GROUP@", b"EVERYONE@", b"root@localdomain", b"1000", b"0",
       b"", b"@", b"nobody", b"4294967295", b"99999999999999999999", b"-1",
       b"x" * 300, b"ANONYMOUS@", b"\xff\xfe", b"a@b@c")
# RFC 8881, 5.6 and 5.7, and past the last word that anybody uses.
ATTRIBUTE_BITS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17,
                  18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32,
                  33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47,
                  48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62,
                  63, 64, 65, 66, 67, 68, 73, 74, 75, 76, 77, 78, 79, 80, 81,
                  82, 95)
SYSTEM_INODES = (0, 1, 2, 3, 0x100, 0x101, 0x200, 0x600, 0x609, 0x10000)


class Pool:
    """What replies gave; the first ones stay, later ones push others out."""

    def __init__(self, *first, most=48):
        self.first, self.later = list(first), []
        self.most, self.at = most, 0

    def add(self, value):
        if len(self.later) < self.most:
            self.later.append(value)
            return
        self.later[self.at] = value
        self.at = (self.at + 1) % self.most

    def __bool__(self):
        return True

    def pick(self, place, default=b""):
        count = len(self.first) + len(self.later)
        if not count:
            return default
        place %= count
        if place < len(self.first):
            return self.first[place]
        return self.later[place - len(self.first)]


class Own(Pool):
    """The stateids of one client; each kind once more."""

    def __init__(self):
        super().__init__()
        self.locks, self.opens, self.delegations = Pool(), Pool(), Pool()


class Found:
    """What this round got from the server."""

    def __init__(self, handles3=(), handles4=()):
        self.handles = {3: Pool(*handles3), 4: Pool(*handles4)}
        self.own = None                     # those of who is answered
        self.opened = nfs4.ANONYMOUS        # the latest
        self.cookies = Pool(0, 1, 2, 3)
        self.verifiers = Pool(bytes(8))
        self.clientids = Pool()
        self.sessions = Pool()

    def keep(self, stateid, kind):
        self.own.add(stateid)
        kind.add(stateid)


class Values:
    """Draws from RNG; WILD, 0 to 1, says how often a value is odd.  OWN are the
    stateids that the client itself got."""

    def __init__(self, rng, found, wild, own):
        self.rng, self.found, self.wild, self.own = rng, found, wild, own

    def chance(self, share):
        return self.rng.random() < share

    def odd(self):
        return self.chance(self.wild)

    def place(self):
        return self.rng.getrandbits(16)

    def number(self, *usual):
        """One of USUAL, or any."""
        if usual and not self.odd():
            return self.rng.choice(usual)
        if self.chance(0.2):
            return self.rng.getrandbits(32)
        return self.rng.choice(NUMBERS)

    def offset(self):
        if self.odd():
            if self.chance(0.02):
                return self.rng.choice(RARE_OFFSETS)
            return self.rng.choice(OFFSETS)
        return self.rng.choice((0, 0, 1, 4096, 8192, 65536,
                                self.rng.randrange(1 << 20)))

    def length(self):
        if self.odd():
            return self.rng.choice((*OFFSETS, *COUNTS[:6]))
        return self.rng.choice((0, 1, 100, 4096, 65536, 1 << 20))

    def count(self):
        if self.odd():
            return self.rng.choice(COUNTS)
        return self.rng.choice((1, 100, 4096, 8192, 65536))

    def data(self, most=1 << 16):
        size = self.rng.choice((0, 1, 3, 100, 4096, 4096, 8192, most))
        return bytes([self.rng.getrandbits(8)]) * size

    def name(self):
        if not self.odd():
            return b"%s%d" % (self.rng.choice((b"f", b"d", b"l", b"n")),
                              self.rng.randrange(12))
        if self.chance(0.3):
            return self.rng.randbytes(self.rng.randrange(1, 40))
        return self.rng.choice(ODD_NAMES)

    def text(self, most=64):
        if not self.odd():
            return b"text %d" % self.rng.randrange(8)
        return self.rng.choice((b"", b"\0", b"\xff" * 8, b"t" * most,
                                b"t" * 1024, b"t" * 1025, b"t" * 70000))

    def flipped(self, data, bits=3):
        """Some bits of DATA are others."""
        if not data:
            return self.rng.randbytes(4)
        value = int.from_bytes(data)
        for _ in range(self.rng.randrange(1, bits + 1)):
            value ^= 1 << self.rng.randrange(len(data) * 8)
        return value.to_bytes(len(data))

    def handle(self, version, reads_only=False):
        handle = self.found.handles[version].pick(self.place())
        if not self.odd():
            return handle
        way = self.rng.randrange(6)
        if way == 0:
            return b""
        if way == 1:
            return handle[:self.rng.randrange(len(handle) + 1)]
        if way == 2:
            return handle + self.rng.randbytes(self.rng.choice(
                (1, 4, 40, 64, 100)))
        if way == 3:
            return self.rng.randbytes(self.rng.choice((4, 28, 32, 64, 128)))
        if way == 4 and reads_only and len(handle) >= 24:
            # CephFS' own: roots, and what the MDS keeps for itself.
            return handle[:-24] + struct.pack(
                "<Q", self.rng.choice(SYSTEM_INODES)) + handle[-16:]
        return self.flipped(handle)

    def stateid(self, only=None):
        """Of the client itself; with ONLY, a Pool, one of that, or
        nobody's."""
        stateid = (only or self.own).pick(self.place(), nfs4.ANONYMOUS)
        if not self.odd():
            return stateid
        way = self.rng.randrange(8)
        if way == 0:
            return self.rng.randbytes(16)
        if way == 1 and not only:
            return self.flipped(stateid)
        if way < 4:                         # another sequence number
            return number(self.number()) + stateid[4:]
        return (nfs4.ANONYMOUS, nfs4.BYPASS, nfs4.CURRENT,
                b"\xff" * 4 + bytes(12))[way - 4]

    def owner(self):
        if not self.odd():
            return b"owner %d" % self.rng.randrange(6)
        return self.rng.choice((b"", b"o" * 1024, b"o" * 1025, b"\0" * 17,
                                b"o" * 17, self.rng.randbytes(20)))

    # --- attributes

    def bitmap(self, *usual):
        """bitmap4 of some of USUAL, of any, or none at all."""
        if not self.odd():
            bits = [bit for bit in usual or ATTRIBUTE_BITS
                    if self.chance(0.4)]
            return nfs4.bitmap(*bits)
        count = self.rng.choice((0, 1, 2, 3, 4, 8, 9, 200))
        words = b"".join(number(self.rng.choice(
            (0, 1, 1 << 31, (1 << 32) - 1, self.rng.getrandbits(32))))
            for _ in range(count))
        return number(count) + words

    def acl(self):
        count = self.rng.choice((0, 1, 2, 3, 4, 20, 200) if not self.odd()
                                else (1, 600, 1024, 1025))
        kinds = (0, 1) if not self.odd() else (0, 1, 2, 3, 4, 1 << 31)
        entries = b"".join(
            struct.pack(">III", self.rng.choice(kinds),
                        self.number(0, 0x40, 3), self.number(
                            0x1f01ff, 0x120081, 0))
            + opaque(self.rng.choice(WHO if self.odd() else WHO[:6]))
            for _ in range(count))
        return number(count if not self.chance(0.02) else count + 1) + entries

    def time(self):
        if self.chance(0.4):
            return number(0)
        return number(self.number(1)) + struct.pack(
            ">QI", self.rng.choice((0, 1, 1 << 31, 1 << 33, (1 << 63),
                                    (1 << 64) - 1, 1_700_000_000)),
            self.number(0, 999_999_999, 1_000_000_000))

    def settable(self):
        """Bit and value of attributes that SETATTR may know, in order."""
        return (
            (4, lambda: wide(self.offset())),
            (12, self.acl),
            (14, lambda: number(self.number(0, 1))),        # archive
            (25, lambda: number(self.number(0, 1))),        # hidden
            (32, lambda: opaque(self.text())),              # mimetype
            (33, lambda: number(self.number(0o644, 0o755, 0, 0o7777))),
            (36, lambda: opaque(self.rng.choice(WHO))),
            (37, lambda: opaque(self.rng.choice(WHO))),
            (46, lambda: number(self.number(0, 1))),        # system
            (48, self.time),
            (50, lambda: struct.pack(">QI", self.rng.getrandbits(33), 0)),
            (54, self.time),
            (74, lambda: struct.pack(">II", self.number(0o644),
                                     self.number(0o777))),  # mode_set_masked
            (80, lambda: number(0) * 2 + opaque(self.text())),
            (81, lambda: struct.pack(">II", self.number(0o644),
                                     self.number(0o22))))   # mode_umask

    def attributes(self, share=0.2):
        """fattr4; its bitmap may not fit what follows."""
        chosen = [(bit, encode()) for bit, encode in self.settable()
                  if self.chance(share)]
        body = b"".join(value for _, value in chosen)
        if self.odd():
            way = self.rng.randrange(4)
            if way == 0:
                return self.bitmap() + opaque(body)
            if way == 1:
                body = body[:self.rng.randrange(len(body) + 1)]
            if way == 2:
                body += self.rng.randbytes(self.rng.choice((1, 4, 100)))
            if way == 3:
                body = self.flipped(body)
        return nfs4.bitmap(*(bit for bit, _ in chosen)) + opaque(body)

    def sattr3(self):
        def given(encode):
            return number(1) + encode() if self.chance(0.3) else number(0)

        def when():
            how = self.number(0, 1, 2)
            return number(how) + (struct.pack(
                ">II", self.number(), self.number(0, 999_999_999))
                if how == 2 else b"")
        numbers = b"".join(given(lambda: number(self.number(0o644, 0o755, 0)))
                           for _ in range(3))
        return numbers + given(lambda: wide(self.offset())) + when() + when()

    # --- states

    def clientid(self, own):
        return own if not self.odd() else self.rng.choice(
            (0, 1, (1 << 64) - 1, self.rng.getrandbits(64),
             self.found.clientids.pick(self.place(), 7)))

    def session(self, own):
        if not self.odd():
            return own
        return self.rng.choice((bytes(16), b"\xff" * 16, self.rng.randbytes(
            16), self.found.sessions.pick(self.place(), own)))
