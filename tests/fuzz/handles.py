# SPDX-License-Identifier: LGPL-3.0-or-later
"""File handles as nobody hands them out, and what may come of them.

Every file here is its inode number, repeated: whatever a handle leads to,
data read through it tells whose it is, and a WRITE that got elsewhere stays
to be seen.
"""
import collections
import random
import struct
import time

from nfs import nfs3, nfs4, rpc
from nfs.xdr import number, opaque

FILE_BYTES = 64 << 10
SNAPDIR, NOSNAP = 2**64 - 1, 2**64 - 2
LONGEST_V3 = 64

# RFC 1813 2.6, RFC 7530 13.1.  What says that a handle leads nowhere:
NO_HANDLE = {70: "STALE", 10001: "BADHANDLE"}
# ... and what an operation says of an object that it is not for.
NOT_FOR_IT = {2: "NOENT", 20: "NOTDIR", 21: "ISDIR", 22: "INVAL", 30: "ROFS"}
GARBAGE_ARGS = "the call was not accepted: 4"
DENIED = "the call was denied"


def pattern(ino, offset, count):
    assert offset % 8 == 0
    return (struct.pack(">Q", ino) * (count // 8 + 1))[:count]


def owner_of(data, offset):
    """Whose data that is, or None if it is a mixture."""
    if len(data) < 8:
        return None
    ino = struct.unpack(">Q", data[:8])[0]
    return ino if data == pattern(ino, offset, len(data)) else None


Meaning = collections.namedtuple("Meaning", "export ino snapid fscid")


class Form:
    """Where in a handle of this Ganesha what is; learnt from a real one.

    version, flags, export (2 bytes), length, then CephFS' 24 bytes; NFSv3
    has it padded to whole words.
    """

    def __init__(self, handle, ino):
        self.at = handle.index(struct.pack("<QQ", ino, NOSNAP))
        self.head = handle[:self.at]
        self.size = {3: len(handle), 4: self.at + 24}
        assert len(handle) == self.size[4] + -self.size[4] % 4

    def take_apart(self, handle, version=3):
        """What a handle means, or None if it is none."""
        if len(handle) != self.size[version] or \
                handle[0] != self.head[0] or \
                handle[self.at - 1] != self.head[-1]:
            return None
        return Meaning(self.export(handle),
                       *struct.unpack_from("<QQq", handle, self.at))

    def make(self, meaning):
        # A number may be one too large, or too small, for its field.
        words = struct.pack("<QQQ", *(word % 2**64 for word in meaning[1:]))
        return (self.head[:self.at - 3] +
                struct.pack(">H", meaning.export % 2**16) +
                self.head[self.at - 1:] + words).ljust(self.size[3], b"\0")

    def for_version(self, handle, version):
        """The same for NFSv4, if there is something that is the same."""
        if version == 4 and len(handle) == self.size[3]:
            return handle[:self.size[4]]
        return handle

    def export(self, handle):
        return int.from_bytes(handle[self.at - 3:self.at - 1])

    def usual_flags(self, handle):
        return handle[1] == self.head[1]


class World:
    """What there is to be found through the export PSEUDO at PORT."""

    def __init__(self, port, pseudo, name):
        self.port = port
        self.conn = rpc.Connection(port)
        root = nfs3.root_of(pseudo, port + 1)
        self.top = nfs3.make_directory(self.conn, root, name)
        self.inside = nfs3.make_directory(self.conn, self.top, "inside")
        self.outside = nfs3.make_directory(self.conn, self.top, "outside")
        self.files = [self._file(where, f"file{n}")
                      for where in (self.inside, self.outside)
                      for n in range(4)]
        snapshots = nfs3.lookup(self.conn, self.inside, ".snap")
        snapshot = nfs3.make_directory(self.conn, snapshots, f"{name}-s1")
        frozen = [nfs3.lookup(self.conn, snapshot, f"file{n}")
                  for n in range(4)]
        gone = self._file(self.outside, "gone")
        nfs3.remove(self.conn, self.outside, "gone")
        self.form = Form(self.files[0], self.ino_of(self.files[0]))
        self.frozen = {self.form.take_apart(handle) for handle in frozen}
        self.living = {self.form.take_apart(handle) for handle in
                       [root, self.top, self.inside, self.outside,
                        *self.files]}
        self.regular = {self.form.take_apart(handle).ino
                        for handle in self.files}
        assert None not in self.frozen | self.living
        self.seeds = [root, self.top, self.inside, self.outside, gone,
                      snapshots, snapshot, *self.files, *frozen]

    def _file(self, folder, name):
        handle = nfs3.create(self.conn, folder, name)
        nfs3.write(self.conn, handle, 0,
                  pattern(self.ino_of(handle), 0, FILE_BYTES))
        return handle

    def reconnect(self):
        self.conn = rpc.Connection(self.port)

    def ino_of(self, handle):
        return nfs3.get_attributes(self.conn, handle).fileid

    def check(self):
        """Nothing has changed that no handle stood for."""
        for handle in self.files:
            ino = self.form.take_apart(handle).ino
            data = nfs3.read_all(self.conn, handle)
            assert data == pattern(ino, 0, FILE_BYTES), \
                f"{ino:#x} has data of {owner_of(data, 0)}"
        for meaning in self.frozen:
            data = nfs3.read_all(self.conn, self.form.make(meaning))
            assert data == pattern(meaning.ino, 0, FILE_BYTES)


# --- wrong handles

def other_words(rng, meaning, inos):
    """One or more of the four numbers become others."""
    exports = [0, 1, 2, 7, 8, 9, 77, 0x7fff, 0xffff, rng.getrandbits(16)]
    # 1 to 0x10000: roots, what the MDS keeps for itself, stray folders.
    numbers = [0, 1, 2, 3, rng.randrange(0x10000), 0x100 + rng.randrange(512),
               0x600 + rng.randrange(0x300), rng.choice(inos),
               rng.choice(inos) + rng.randrange(-64, 64), 2**40, 2**63,
               2**64 - 1, rng.getrandbits(64)]
    snapids = [0, 1, 2, 3, SNAPDIR, NOSNAP, 2**64 - 3, 2**63,
               rng.getrandbits(64)]
    fscids = [0, 1, 2, -1, 2**31, 2**63 - 1, 2**63, rng.getrandbits(63)]
    changed = list(meaning)
    for place in rng.sample(range(4), rng.choice((1, 1, 1, 2, 3))):
        changed[place] = rng.choice(
            (exports, numbers, snapids, fscids)[place])
    return Meaning(*changed)


def mutated(rng, world):
    """A handle that was real before."""
    handle = rng.choice(world.seeds)
    way = rng.randrange(8)
    if way < 4:
        inos = [meaning.ino for meaning in world.living]
        return world.form.make(other_words(
            rng, world.form.take_apart(handle), inos))
    if way == 4:                                    # cut off, or prolonged
        size = rng.randrange(129)
        return (handle + rng.randbytes(128))[:size]
    if way == 5:                                    # another head
        at = rng.randrange(world.form.at)
        return handle[:at] + rng.randbytes(1) + handle[at + 1:]
    if way == 6:
        return rng.randbytes(rng.randrange(129))
    bits = int.from_bytes(handle)
    for _ in range(rng.randrange(1, 5)):
        bits ^= 1 << rng.randrange(len(handle) * 8)
    return bits.to_bytes(len(handle))


# --- operations, and what their answers say

Answer = collections.namedtuple("Answer", "status fileid data",
                                defaults=(None, None))


def fileid_of(attrs):
    return attrs.fileid if attrs else None


def getattr3(reader):
    status = reader.number()
    return Answer(status,
                  None if status else nfs3.attributes(reader).fileid)


def attributes_first(reader):
    status = reader.number()
    return Answer(status, fileid_of(nfs3.optional_attributes(reader)))


def read3(reader):
    status, fileid, _ = attributes_first(reader)
    if status:
        return Answer(status, fileid)
    reader.take("II")           # count, eof
    return Answer(status, fileid, reader.opaque())


def wcc_first(reader):
    status = reader.number()
    return Answer(status, fileid_of(nfs3.attributes_after(reader)))


def status_alone(reader):
    return Answer(reader.number())


def decode_fileid4(reader):
    nfs4.skip_bitmap(reader)
    reader.number()
    return reader.hyper()


OFFSET, COUNT = 8192, 4096
GETATTR4 = (9, nfs4.bitmap(20), decode_fileid4)
# With the anonymous stateid; its answer is the end's mark, then data.
READ4 = (25, nfs4.ANONYMOUS + struct.pack(">QI", OFFSET, COUNT),
         lambda reader: (reader.number(), reader.opaque())[1])


def compound4(operation):
    """PUTFH and OPERATION: arguments of a handle, and how to read them."""
    def decode(reader):
        try:
            found = nfs4.compound_results(
                reader, [nfs4.put(b""), operation])[1]
        except nfs4.Failed as err:
            return Answer(err.status)
        return Answer(0, None, found) if operation is READ4 else \
            Answer(0, found)
    return 4, nfs4.COMPOUND, lambda handle: nfs4.compound_arguments(
        [nfs4.put(handle), operation]), decode


# name: version, procedure, arguments of a handle, how to read the answer
OPERATIONS = {
    "GETATTR": (3, nfs3.GETATTR, opaque, getattr3),
    "ACCESS": (3, nfs3.ACCESS, lambda fh: opaque(fh) + number(0x3f),
               attributes_first),
    "LOOKUP": (3, nfs3.LOOKUP, lambda fh: nfs3.named(fh, "nothing"),
               status_alone),
    "READ": (3, nfs3.READ, lambda fh: nfs3.read_arguments(
        fh, OFFSET, COUNT), read3),
    "COMMIT": (3, nfs3.COMMIT, nfs3.commit_arguments, wcc_first),
    "READLINK": (3, nfs3.READLINK, opaque, attributes_first),
    "READDIR": (3, nfs3.READDIR, lambda fh: opaque(fh) +
                struct.pack(">QQI", 0, 0, 4096), attributes_first),
    "READDIRPLUS": (3, nfs3.READDIRPLUS, lambda fh: opaque(fh) + struct.pack(
        ">QQII", 0, 0, 4096, 16384), attributes_first),
    "v4 GETATTR": compound4(GETATTR4),
    "v4 READ": compound4(READ4),
}


def write_arguments(handle, meaning):
    """What the file of that handle has there already."""
    data = pattern(meaning.ino if meaning else 0, OFFSET, COUNT)
    return nfs3.write_arguments(handle, OFFSET, data, nfs3.FILE_SYNC)


class Fuzz:
    """One connection a version, some requests in flight on each."""

    IN_FLIGHT = 32

    def __init__(self, world, seed):
        self.world = world
        self.rng = random.Random(seed)
        self.conns = {version: rpc.Connection(world.port)
                      for version in (3, 4)}
        self.asked = {3: {}, 4: {}}
        self.seen = collections.Counter()
        self.wrong = []
        self.sent = 0

    def send(self, handle, name=None):
        form = self.world.form
        name = name or self.rng.choice([*OPERATIONS, "WRITE"])
        version = OPERATIONS[name][0] if name in OPERATIONS else 3
        handle = form.for_version(handle, version)
        meaning = form.take_apart(handle, version)
        if name == "WRITE" and meaning and meaning.ino >= 1 << 40 and \
                meaning.ino not in self.world.regular:
            # Into files of ours, or nowhere: others have their own data.
            name = "READ"
        version, procedure, arguments, read = OPERATIONS.get(
            name, (3, nfs3.WRITE, None, wcc_first))
        body = write_arguments(handle, meaning) if name == "WRITE" \
            else arguments(handle)
        xid = self.conns[version].send(procedure, body, version=version)
        self.asked[version][xid] = (name, handle, meaning, read)
        self.sent += 1
        if len(self.asked[version]) >= self.IN_FLIGHT:
            self.receive(version)

    def receive(self, version):
        conn = self.conns[version]
        try:
            xid, reader = conn.receive()
        except rpc.Rejected as refusal:
            self.refused(version, refusal)
            return
        name, handle, meaning, read = self.asked[version].pop(xid)
        self.judge(name, handle, meaning, read(reader))

    def refused(self, version, refusal):
        """A handle longer than the protocol allows is no argument at all,
        and Ganesha's own export 0 is none of NFSv3's."""
        name, handle, meaning, _ = self.asked[version].pop(refusal.xid)
        why = str(refusal)
        self.seen[why] += 1
        if version == 3 and why == GARBAGE_ARGS and len(handle) > LONGEST_V3:
            return
        if version == 3 and why == DENIED and \
                self.world.form.export(handle) == 0:
            return
        self.wrong.append(f"{name} of {handle.hex()} ({meaning}): {why}")

    def judge(self, name, handle, meaning, answer):
        problem = self.problem(handle, meaning, answer)
        self.seen[NO_HANDLE.get(answer.status) or
                  NOT_FOR_IT.get(answer.status) or answer.status] += 1
        if problem:
            self.wrong.append(f"{name} of {handle.hex()} ({meaning}): "
                              f"{answer.status}, {problem}")

    def problem(self, handle, meaning, answer):
        status, fileid, data = answer
        if meaning is None and status not in NO_HANDLE:
            return "this is no handle"
        if status in NO_HANDLE:
            return "it exists" if meaning in self.world.living and \
                self.world.form.usual_flags(handle) else None
        if status and status not in NOT_FOR_IT:
            return "no such error was expected"
        # Export 0 is Ganesha's own, of folders of its own.
        if meaning.export == 0:
            return None
        if fileid is not None and fileid != meaning.ino:
            return f"these are attributes of {fileid:#x}"
        if data and meaning.ino in self.world.regular and \
                owner_of(data, OFFSET) != meaning.ino:
            return f"this is data of {owner_of(data, OFFSET)}"
        if data and owner_of(data, OFFSET) in self.world.regular and \
                owner_of(data, OFFSET) != meaning.ino:
            return f"this is data of {owner_of(data, OFFSET):#x}"
        return None

    def run(self, seconds, most=None):
        """Until the time is over or that many have been sent; ends early
        when it has found a lot."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and len(self.wrong) < 20 and \
                (most is None or self.sent < most):
            self.send(mutated(self.rng, self.world))
        self.finish()

    def finish(self):
        for version, asked in self.asked.items():
            while asked:
                self.receive(version)
        for conn in self.conns.values():
            conn.close()

    def summary(self):
        return f"{self.sent} handles: " + ", ".join(
            f"{count} {what}" for what, count in sorted(
                self.seen.items(), key=lambda pair: -pair[1]))
