# SPDX-License-Identifier: LGPL-3.0-or-later
"""As much of NFSv4 (RFC 8881, 7862, 8276) as the tests need.

An operation is its number, its arguments, and what decodes its results.
compound_arguments() and compound_results() are a COMPOUND of any version;
call() sends one of NFSv4.0 without a state.  A Client has a session: a test
may have several, each may die without a word and leave a recall unanswered.
"""
import contextlib
import itertools
import os
import queue
import struct
import threading
import time
from collections import namedtuple

from nfs import rpc
from nfs.xdr import number, opaque, wide

COMPOUND, CALLBACK = 1, 0x40000000
CB_SEQUENCE, CB_RECALL, CB_GETATTR = 11, 4, 3
READ_LOCK, WRITE_LOCK = 1, 2
READ, WRITE, BOTH = 1, 2, 3
NO_DELEG, READ_DELEG, WRITE_DELEG = 0, 1, 2
READ_ATTRS_DELEG, WRITE_ATTRS_DELEG = 4, 5      # RFC 9754
DENIED, GRACE, EXPIRED, NO_GRACE = 10010, 10013, 10011, 10033
SHARE_DENIED, DELAY, ADMIN_REVOKED = 10015, 10008, 10047
DELEG_REVOKED, BAD_STATEID = 10087, 10025
EXIST, NOENT, INVAL, NOTSUPP, NXIO = 17, 2, 22, 10004, 6
STALE, BADHANDLE, IO, NAMETOOLONG, RECLAIM_BAD = 70, 10001, 5, 63, 10034
NOXATTR, TOOSMALL = 10095, 10005
ISDIR, ROFS, OPENMODE, ATTRNOTSUPP = 21, 30, 10038, 10032
LOCKED, STALE_STATEID, OLD_STATEID = 10012, 10023, 10024
TO_THE_END = (1 << 64) - 1
WANT_NO_DELEG, WANT_TIMES = 0x400, 0x100000
ANONYMOUS, BYPASS = bytes(16), b"\xff" * 16
CURRENT = b"\0\0\0\1" + bytes(12)
DIRECTORY, SYMLINK, FIFO = 2, 5, 7
UNCHECKED, GUARDED, EXCLUSIVE = 0, 1, 3


class Failed(rpc.Refused):
    """An operation's status is an error."""

    def __init__(self, operation, status, reply=None):
        super().__init__(f"operation {operation}: status {status}")
        self.operation = operation
        self.status = status
        self.reply = reply


class Conflict(Failed):
    """A lock is in the way: its range, type and owner."""

    def __init__(self, operation, reply):
        super().__init__(operation, DENIED)
        self.offset, self.length = reply.hyper(), reply.hyper()
        self.type = reply.number()
        self.clientid, self.owner = reply.hyper(), reply.opaque()
        self.found = (self.offset, self.length, self.type)


def bitmap(*bits):
    words = [0, 0, 0]
    for bit in bits:
        words[bit // 32] |= 1 << bit % 32
    return struct.pack(">IIII", 3, *words)


def attributes(**values):
    """fattr4 of size, ACL (a list of (type, flag, mask, who)), mode, owner,
    group, security label, and of what the holder of a delegation says of
    times."""
    known = (("size", 4, wide), ("acl", 12, acl), ("mode", 33, number),
             ("file_owner", 36, lambda owner: opaque(owner.encode())),
             ("file_group", 37, lambda group: opaque(group.encode())),
             ("label", 80, label), ("deleg_access", 84, nfstime),
             ("deleg_modify", 85, nfstime))
    given = [(bit, encode(values[name])) for name, bit, encode in known
             if name in values]
    return bitmap(*(bit for bit, _ in given)) + opaque(
        b"".join(value for _, value in given))


def acl(entries):
    return number(len(entries)) + b"".join(
        struct.pack(">III", *entry[:3]) + opaque(entry[3].encode())
        for entry in entries)


def nfstime(nanoseconds):
    return struct.pack(">qI", *divmod(nanoseconds, 10**9))


def label(data):
    """sec_label4; of no format that anybody has registered."""
    return struct.pack(">II", 0, 0) + opaque(data)


# --- COMPOUND

def compound_arguments(operations, minor=0):
    return opaque(b"") + number(minor) + number(len(operations)) + \
        b"".join(number(op) + arguments for op, arguments, _ in operations)


def compound_results(reply, operations):
    """The decoded result of each operation."""
    whole = reply.number()
    reply.opaque()
    results = []
    for _ in range(reply.number()):
        operation, status = reply.number(), reply.number()
        if status == DENIED and operation in (12, 13):
            raise Conflict(operation, reply)
        if status:
            raise Failed(operation, status, reply)
        decode = operations[len(results)][2]
        results.append(decode(reply) if decode else None)
    if whole:
        raise Failed(None, whole, reply)
    return results


def call(connection, *operations):
    return compound_results(connection.call(
        COMPOUND, compound_arguments(operations), version=4), operations)


def put(handle):
    return 22, opaque(handle), None


def look_up(name):
    return 15, opaque(os.fsencode(name)), None


GETFH = (10, b"", lambda reply: reply.opaque())
PUTROOTFH = (24, b"", None)


def skip_bitmap(reply):
    reply.skip(4 * reply.number())


def steps_to(path):
    """From the pseudo root to a path below it."""
    return [PUTROOTFH, *map(look_up, path.strip("/").split("/")), GETFH]


def handle_of(connection, path):
    return call(connection, *steps_to(path))[-1]


# --- the change attribute, which NFSv3 does not have

Change = namedtuple("Change", "change size ctime")


def decode_change(reply):
    words = [reply.number() for _ in range(reply.number())]
    assert words == [1 << 3 | 1 << 4, 1 << 52 - 32], words
    reply.number()
    value, size, seconds, nanoseconds = reply.take("QQqI")
    return Change(value, size, seconds * 10**9 + nanoseconds)


# change, size; time_metadata
GET_CHANGE = (9, struct.pack(">III", 2, 1 << 3 | 1 << 4, 1 << 52 - 32),
              decode_change)


def change_operations(handle):
    return put(handle), GET_CHANGE


def get_change(connection, handle):
    return call(connection, *change_operations(handle))[1]


# --- a client with a session

class Client:
    """One NFSv4.2 client: a connection, a client id and a session."""

    def __init__(self, port, name, uid=0, pseudo=None, reclaim=False,
                 answers_recalls=True, minor=2, verifier=None,
                 host="127.0.0.1", greeting=b""):
        self.port, self.name, self.minor = port, name.encode(), minor
        self.host, self.greeting = host, greeting
        self.pseudo = pseudo or {2049: "/ceph"}.get(port, "/second")
        self.answers_recalls = answers_recalls
        self.recalls = queue.Queue()        # (when, stateid, handle)
        self.looks = queue.Queue()          # the handle of each CB_GETATTR
        self.kept = {}                      # its answer: (change, size)
        self.owners = itertools.count(1)
        self.lock = threading.Lock()
        self.uid = uid
        self.verifier = verifier or os.urandom(8)
        self.connection = self.session = None
        self.gone = self.stuck = False
        try:
            self.connect(reclaim)
        except BaseException:
            # Without an export there may be a client all the same, which the
            # server's next grace period would wait for.
            if self.session:
                self.leave()
            elif self.connection:
                self.connection.close()
            raise
        threading.Thread(target=self._stay_alive, daemon=True).start()

    # --- connection and session

    def connect(self, reclaim=False):
        """A new connection and session; the same client, unless it forgot
        its state, which a new verifier says."""
        with self.lock:
            if self.connection:
                self.connection.close()
            self.connection = rpc.Concurrent(self.port, self.uid, self.uid,
                                             self._called, self.host,
                                             self.greeting)
            self.clientid, self.sequence = self._call(
                self._exchange_id())[0]
            self.session = self._call(self._create_session())[0]
            self.slot_sequence = itertools.count(1)
            self.stuck = False
        self.root = self._root()
        if not reclaim:
            self.reclaim_complete()

    def _called(self, call, procedure):
        """CB_NULL, or CB_COMPOUND of CB_SEQUENCE, CB_RECALL, CB_GETATTR."""
        if not procedure:
            return b""
        tag = call.opaque()
        call.skip(8)                        # minor version, callback ident
        results = []
        for _ in range(call.number()):
            operation = call.number()
            if operation == CB_SEQUENCE:
                session = call.fixed(16)
                sequence, slot, _, _ = (call.number() for _ in range(4))
                for _ in range(call.number()):
                    call.skip(16)
                    call.skip(8 * call.number())
                results.append(struct.pack(">II", CB_SEQUENCE, 0) + session +
                               struct.pack(">IIII", sequence, slot, 0, 0))
            elif operation == CB_RECALL:
                stateid = call.fixed(16)
                call.skip(4)
                self.recalls.put((time.monotonic(), stateid, call.opaque()))
                results.append(struct.pack(">II", CB_RECALL, 0))
            elif operation == CB_GETATTR:
                results.append(struct.pack(">II", CB_GETATTR, 0) +
                               self._kept_attributes(call))
            else:
                raise AssertionError(f"callback operation {operation}")
        if not self.answers_recalls:
            return None
        return number(0) + opaque(tag) + number(len(results)) + \
            b"".join(results)

    def _kept_attributes(self, call):
        """fattr4 of change and size, as far as they are asked for."""
        handle = call.opaque()
        asked = [call.number() for _ in range(call.number())]
        self.looks.put(handle)
        bits = [bit for bit in (3, 4) if asked and asked[0] >> bit & 1]
        return bitmap(*bits) + opaque(b"".join(
            wide(self.kept[handle][bit - 3]) for bit in bits))

    def _call(self, *operations, seconds=40):
        """The decoded results of a COMPOUND."""
        reply = self.connection.call(
            COMPOUND, compound_arguments(operations, self.minor), version=4,
            seconds=seconds)
        return compound_results(reply, operations)

    def _exchange_id(self):
        def decode(reply):
            clientid, sequence = reply.hyper(), reply.number()
            return clientid, sequence
        arguments = self.verifier + opaque(self.name) + number(0x10001) + \
            number(0) + number(0)           # no state protection, no id
        return 42, arguments, decode

    def _create_session(self):
        channel = struct.pack(">IIIIIII", 0, 1 << 21, 1 << 21, 1 << 16, 16,
                              1, 0)
        arguments = wide(self.clientid) + struct.pack(
            ">II", self.sequence, 2) + channel + channel + number(
                CALLBACK) + struct.pack(">II", 1, 0)
        return 43, arguments, lambda reply: reply.fixed(16)

    def compound(self, *operations, seconds=40):
        """The results of OPERATIONS in this session, on its one slot; a
        delay is waited for."""
        end = time.monotonic() + seconds
        while True:
            with self.lock:
                if self.stuck:
                    raise rpc.Gone("a renewal in this slot has no answer")
                sequence = (53, self.session + struct.pack(
                    ">IIII", next(self.slot_sequence), 0, 0, 0),
                    lambda reply: reply.skip(36))
                try:
                    return self._call(sequence, *operations,
                                      seconds=seconds)[1:]
                except TimeoutError:
                    # Nobody knows of the renewal: the next one to use the
                    # slot must not be ahead of it.
                    self.stuck = not operations
                    raise
                except Failed as err:
                    if err.status != DELAY or time.monotonic() > end:
                        raise
            time.sleep(0.1)

    def reclaim_complete(self):
        self.compound((58, number(0), None))

    def _stay_alive(self):
        """Renew the lease, for as long as there is a session."""
        while not self.gone:
            with contextlib.suppress(OSError, Failed):
                self.compound()
            time.sleep(1)

    def die(self):
        """Without a word: no more is heard, no more answered."""
        self.gone = True
        self.answers_recalls = False
        self.connection.drop()

    def leave(self):
        """End session and client, as an orderly unmount."""
        if not self.gone:
            self.gone = True
            with self.lock, contextlib.suppress(OSError, Failed):
                self._call((44, self.session, None))
                self._call((57, wide(self.clientid), None))
            self.connection.close()

    # --- operations on files, by handle

    def _root(self):
        return self.compound(*steps_to(self.pseudo))[-1]

    def lookup(self, name, directory=None):
        return self.compound(put(directory or self.root), look_up(name),
                             GETFH)[-1]

    def open(self, name, access=BOTH, deny=0, create=None, directory=None,
             mode=0o644, verifier=bytes(8), want=0, owner=None, **given):
        """An Open; CREATE is UNCHECKED, GUARDED, EXCLUSIVE (4.1) or None;
        GIVEN are more attributes of a new file."""
        if create is None:
            how = number(0)
        elif create == EXCLUSIVE:
            how = struct.pack(">II", 1, create) + verifier + \
                attributes(mode=mode, **given)
        else:
            how = struct.pack(">II", 1, create) + attributes(
                mode=mode, **given)
        claim = number(0) + opaque(os.fsencode(name))
        return self._open(directory or self.root, access, deny, how, claim,
                          want, owner)

    def reclaim_open(self, handle, access=BOTH, deny=0, owner=None,
                     deleg=NO_DELEG, want=0):
        """CLAIM_PREVIOUS."""
        return self._open(handle, access, deny, number(0),
                          struct.pack(">II", 1, deleg), want, owner)

    def _open(self, handle, access, deny, how, claim, want, owner):
        owner = owner or b"open %d" % next(self.owners)
        arguments = struct.pack(">III", 0, access | want, deny) + wide(
            self.clientid) + opaque(owner) + how + claim
        _, opened, handle = self.compound(
            put(handle), (18, arguments, decode_open), GETFH)
        return Open(self, handle, owner, *opened)

    def read(self, handle, offset, count, stateid=ANONYMOUS):
        return self.compound(put(handle), (
            25, stateid + wide(offset) + number(count),
            lambda reply: (reply.skip(4), reply.opaque())[1]))[-1]

    def read_all(self, handle):
        """To the end that the server tells."""
        data, eof = b"", False
        while not eof:
            more, eof = self.compound(put(handle), (
                25, ANONYMOUS + wide(len(data)) + number(1 << 20),
                lambda reply: (bool(reply.number()), reply.opaque())[::-1]
            ))[-1]
            data += more
        return data

    def write(self, handle, offset, data, stateid=ANONYMOUS):
        return self.compound(put(handle), (
            38, stateid + wide(offset) + number(2) + opaque(data),
            lambda reply: (reply.number(), reply.skip(12))[0]))[-1]

    def test_lock(self, handle, kind, offset, length, owner=b"tester"):
        """None, or the Conflict."""
        try:
            self.compound(put(handle), (
                13, struct.pack(">IQQ", kind, offset, length) + wide(
                    self.clientid) + opaque(owner), None))
        except Conflict as conflict:
            return conflict
        return None

    def test_lock_status(self, handle):
        """The status of a LOCKT that is refused for other reasons."""
        try:
            self.test_lock(handle, WRITE_LOCK, 0, 1)
        except Failed as err:
            return err.status
        return 0

    def create(self, kind, name, directory=None, mode=0o755, target=b""):
        """What is no file: its handle."""
        how = number(kind) + (opaque(target) if kind == SYMLINK else b"")
        return self.compound(
            put(directory or self.root),
            (6, how + opaque(os.fsencode(name)) + attributes(mode=mode),
             lambda reply: (reply.skip(20), skip_bitmap(reply))), GETFH)[-1]

    def readdir(self, directory, cookie=0, verifier=bytes(8), most=8192):
        """[(name, cookie)], is it the end, and the verifier."""
        def decode(reply):
            verifier, entries = reply.fixed(8), []
            while reply.number():
                cookie, name = reply.hyper(), reply.opaque()
                skip_bitmap(reply)
                reply.opaque()
                entries.append((name, cookie))
            return entries, bool(reply.number()), verifier
        return self.compound(put(directory), (
            26, wide(cookie) + verifier + number(most) + number(most) +
            bitmap(20), decode))[-1]

    def status_of(self, *operations):
        """Of a COMPOUND that may be refused: 0, or whose what."""
        try:
            self.compound(*operations)
        except Failed as err:
            return err.status
        return 0

    def remove(self, name, directory=None):
        self.compound(put(directory or self.root),
                      (28, opaque(os.fsencode(name)),
                       lambda reply: reply.skip(20)))

    def rename(self, source, name, target, new_name):
        self.compound(put(source), (32, b"", None), put(target), (
            29, opaque(os.fsencode(name)) + opaque(os.fsencode(new_name)),
            lambda reply: reply.skip(40)))

    def link(self, handle, name):
        """Another name, in the root of the export."""
        self.compound(put(handle), (32, b"", None), put(self.root), (
            11, opaque(os.fsencode(name)), lambda reply: reply.skip(20)))

    def set(self, handle, stateid=ANONYMOUS, **values):
        self.compound(put(handle), (
            34, stateid + attributes(**values), skip_bitmap))

    def get(self, handle, *bits):
        """The values of attributes, undecoded, and which there are."""
        def decode(reply):
            there = [reply.number() for _ in range(reply.number())]
            return reply.opaque(), there
        return self.compound(put(handle), (9, bitmap(*bits), decode))[-1]

    def change_and_size(self, handle):
        return struct.unpack(">QQ", self.get(handle, 3, 4)[0])

    def times(self, handle):
        """Those of access and of modification, in nanoseconds."""
        values, there = self.get(handle, 47, 53)
        assert there[1] == 1 << 47 - 32 | 1 << 53 - 32, there
        accessed, fraction, modified, more = struct.unpack(">qIqI", values)
        return accessed * 10**9 + fraction, modified * 10**9 + more

    def return_delegation(self, handle, stateid):
        self.compound(put(handle), (8, stateid, None))

    def free_stateid(self, stateid):
        self.compound((45, stateid, None))

    def seek(self, handle, offset, what, stateid=ANONYMOUS):
        return self.compound(put(handle), (
            69, stateid + wide(offset) + number(what),
            lambda reply: (bool(reply.number()), reply.hyper())))[-1]

    def allocate(self, handle, offset, length, stateid=ANONYMOUS):
        self.compound(put(handle),
                      (59, stateid + wide(offset) + wide(length), None))

    def deallocate(self, handle, offset, length, stateid=ANONYMOUS):
        self.compound(put(handle),
                      (62, stateid + wide(offset) + wide(length), None))

    # --- extended attributes

    def get_xattr(self, handle, name):
        return self.compound(put(handle), (
            72, opaque(name), lambda reply: reply.opaque()))[-1]

    def set_xattr(self, handle, name, value, option=0):
        self.compound(put(handle), (
            73, number(option) + opaque(name) + opaque(value),
            lambda reply: reply.skip(20)))

    def list_xattrs(self, handle, cookie=0, most=1 << 16):
        def decode(reply):
            cookie = reply.hyper()
            names = [reply.opaque() for _ in range(reply.number())]
            return names, cookie, bool(reply.number())
        return self.compound(put(handle), (
            74, wide(cookie) + number(most), decode))[-1]

    def remove_xattr(self, handle, name):
        self.compound(put(handle), (
            75, opaque(name), lambda reply: reply.skip(20)))


def decode_open(reply):
    """The stateid, the kind of delegation and its stateid."""
    stateid = reply.fixed(16)
    reply.skip(20 + 4)                      # change info, flags
    skip_bitmap(reply)
    kind = reply.number()
    delegation = None
    if kind in (READ_DELEG, WRITE_DELEG, READ_ATTRS_DELEG,
                WRITE_ATTRS_DELEG):
        delegation = reply.fixed(16)
        reply.skip(4)                       # recall flag
        if kind in (WRITE_DELEG, WRITE_ATTRS_DELEG):
            reply.skip(4 + 8)               # the limit of its space
        reply.skip(12)
        reply.opaque()                      # who
    elif kind == 3:                         # none, and why
        if reply.number() in (1, 2):
            reply.skip(4)
    return stateid, kind, delegation


class Viewer(Client):
    """A client at the pseudo root, which is there without any export."""

    def _root(self):
        return self.compound(PUTROOTFH, GETFH)[-1]

    def status(self, pseudo):
        """0 if PSEUDO can be looked up."""
        return self.status_of(*steps_to(pseudo))


class Open:
    """An open file: its stateid, its delegation, and locks by one owner."""

    def __init__(self, client, handle, owner, stateid, kind, delegation):
        self.client, self.handle, self.owner = client, handle, owner
        self.stateid, self.kind, self.delegation = stateid, kind, delegation
        self.lock_stateids = {}             # by lock owner

    def close(self):
        self.client.compound(put(self.handle), (
            4, number(0) + self.stateid, lambda reply: reply.fixed(16)))

    def downgrade(self, access, deny=0):
        self.stateid = self.client.compound(put(self.handle), (
            21, self.stateid + struct.pack(">III", 0, access, deny),
            lambda reply: reply.fixed(16)))[-1]

    def read(self, offset, count):
        return self.client.read(self.handle, offset, count, self.stateid)

    def write(self, offset, data):
        return self.client.write(self.handle, offset, data, self.stateid)

    def lock(self, kind, offset, length, owner=b"locker", reclaim=False):
        """Raises Conflict."""
        arguments = struct.pack(">IIQQ", kind, reclaim, offset, length)
        if owner in self.lock_stateids:
            arguments += number(0) + self.lock_stateids[owner] + number(0)
        else:
            arguments += number(1) + number(0) + self.stateid + number(0) + \
                wide(self.client.clientid) + opaque(owner)
        self.lock_stateids[owner] = self.client.compound(
            put(self.handle),
            (12, arguments, lambda reply: reply.fixed(16)))[-1]

    def unlock(self, offset, length, owner=b"locker"):
        self.lock_stateids[owner] = self.client.compound(
            put(self.handle),
            (14, struct.pack(">II", READ_LOCK, 0) + self.lock_stateids[owner]
             + wide(offset) + wide(length),
             lambda reply: reply.fixed(16)))[-1]

    def return_delegation(self):
        self.client.return_delegation(self.handle, self.delegation)
        self.delegation = None
