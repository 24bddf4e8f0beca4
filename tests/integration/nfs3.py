# SPDX-License-Identifier: LGPL-3.0-or-later
"""Just enough of an NFSv3 client (RFC 1813, RFC 5531) to have thousands of
requests in flight, and to know which of them were answered.
"""
import itertools
import os
import socket
import struct
import threading

MOUNT, NFS = 100005, 100003
MNT, SETATTR, READ, WRITE, CREATE = 1, 2, 6, 7, 8
GETATTR, LOOKUP, MKDIR, REMOVE, RMDIR, RENAME = 1, 3, 9, 12, 13, 14
READDIR, READDIRPLUS, FSINFO, PATHCONF = 16, 17, 19, 20
ACCESS_DENIED, READ_ONLY = 13, 30
UNSTABLE, DATA_SYNC, FILE_SYNC = 0, 1, 2
LAST_FRAGMENT = 1 << 31
POST_OP_ATTR_BYTES = 84
WCC_ATTR_BYTES = 24


def opaque(data):
    return struct.pack(">I", len(data)) + data + bytes(-len(data) % 4)


class Reply:
    """An answer, taken apart from its beginning."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def number(self):
        self.at += 4
        return struct.unpack_from(">I", self.data, self.at - 4)[0]

    def skip(self, count):
        self.at += count

    def opaque(self):
        size = self.number()
        self.skip(size + -size % 4)
        begin = self.at - size - -size % 4
        return self.data[begin:begin + size]

    def skip_attributes(self, size=POST_OP_ATTR_BYTES):
        if self.number():
            self.skip(size)


class Connection:
    """One TCP connection; answers are collected by a thread of its own."""

    def __init__(self, port, uid=0, gid=0):
        self.socket = socket.create_connection(("127.0.0.1", port), 30)
        self.socket.settimeout(None)
        self.xids = itertools.count(1)
        self.waiting = {}           # xid: called with the Reply
        self.lock = threading.Lock()
        self.credential = struct.pack(
            ">II", 1, 24) + struct.pack(">II", 0, 3) + b"lab\0" + \
            struct.pack(">III", uid, gid, 0)
        self.thread = threading.Thread(target=self._collect, daemon=True)
        self.thread.start()

    def send(self, program, procedure, arguments, answered):
        """ANSWERED gets the Reply, on the connection's thread; after an end
        of the connection it never will."""
        xid = next(self.xids)
        with self.lock:
            self.waiting[xid] = answered
        call = struct.pack(">IIIIII", xid, 0, 2, program, 3, procedure) + \
            self.credential + struct.pack(">II", 0, 0) + arguments
        self.socket.sendall(
            struct.pack(">I", LAST_FRAGMENT | len(call)) + call)

    def call(self, program, procedure, arguments, seconds=30):
        """Send and wait; the Reply after its status, which must be 0."""
        there = threading.Event()
        replies = []

        def answered(reply):
            replies.append(reply)
            there.set()
        self.send(program, procedure, arguments, answered)
        if not there.wait(seconds):
            raise AssertionError(f"procedure {procedure}: no answer")
        status = replies[0].number()
        if status:
            raise Refused(procedure, status)
        return replies[0]

    def _collect(self):
        try:
            while True:
                size, = struct.unpack(">I", self._exactly(4))
                reply = Reply(self._exactly(size & ~LAST_FRAGMENT))
                xid = reply.number()
                reply.skip(8)       # it is a reply, and accepted
                reply.skip(4)       # the verifier's flavour
                reply.opaque()
                if reply.number():
                    raise AssertionError("the RPC itself was refused")
                with self.lock:
                    answered = self.waiting.pop(xid)
                answered(reply)
        except OSError:
            return

    def _exactly(self, count):
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise ConnectionError("closed")
            data += more
        return data

    def close(self):
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.thread.join(30)
        self.socket.close()


def root_of(pseudo, mount_port):
    connection = Connection(mount_port)
    handle = connection.call(MOUNT, MNT, opaque(pseudo.encode())).opaque()
    connection.close()
    return handle


def create(connection, directory, name):
    """The handle of a new file."""
    reply = connection.call(
        NFS, CREATE, opaque(directory) + opaque(name.encode()) +
        struct.pack(">IIIIIIII", 0, 1, 0o644, 0, 0, 0, 0, 0))
    assert reply.number(), "no handle in the answer"
    return reply.opaque()


def named(directory, name):
    """diropargs3."""
    return opaque(directory) + opaque(os.fsencode(name))


def lookup(connection, directory, name):
    return connection.call(NFS, LOOKUP, named(directory, name)).opaque()


def make_directory(connection, directory, name, mode=0o755):
    reply = connection.call(NFS, MKDIR, named(directory, name) + struct.pack(
        ">IIIIIII", 1, mode, 0, 0, 0, 0, 0))
    assert reply.number(), "no handle in the answer"
    return reply.opaque()


def remove(connection, directory, name, procedure=REMOVE):
    connection.call(NFS, procedure, named(directory, name))


def mode_of(connection, handle):
    reply = connection.call(NFS, GETATTR, opaque(handle))
    reply.skip(4)               # its type
    return reply.number()


def _entries(reply, of_each):
    while reply.number():
        reply.skip(8)           # fileid
        name = reply.opaque()
        reply.skip(8)
        cookie, = struct.unpack_from(">Q", reply.data, reply.at - 8)
        of_each(reply)
        yield name, cookie


def readdir(connection, directory, cookie=0, verifier=bytes(8), most=8192,
            plus=False):
    """[(name, cookie)], is it the end, and the verifier."""
    def attributes_and_handle(reply):
        reply.skip_attributes()
        if reply.number():
            reply.opaque()
    arguments = opaque(directory) + struct.pack(">Q", cookie) + verifier + \
        struct.pack(">I", most) * (1 + plus)
    reply = connection.call(NFS, READDIRPLUS if plus else READDIR, arguments)
    reply.skip_attributes()
    reply.skip(8)
    verifier = reply.data[reply.at - 8:reply.at]
    entries = list(_entries(
        reply, attributes_and_handle if plus else lambda _: None))
    return entries, bool(reply.number()), verifier


def write_arguments(handle, offset, data, stable=FILE_SYNC):
    return opaque(handle) + struct.pack(
        ">QII", offset, len(data), stable) + opaque(data)


def write_result(reply):
    """Status, and how much was written how stably."""
    status = reply.number()
    reply.skip_attributes(WCC_ATTR_BYTES)
    reply.skip_attributes()
    if status:
        return status, 0, 0
    return status, reply.number(), reply.number()


def give(connection, handle, uid, mode):
    """A new owner, group of the same number, and mode."""
    connection.call(NFS, SETATTR, opaque(handle) + struct.pack(
        ">IIIIII", 1, mode, 1, uid, 1, uid) + bytes(16))


def truncation(handle, size=0):
    """The arguments of a SETATTR."""
    return opaque(handle) + struct.pack(">IIIIQIII", 0, 0, 0, 1, size, 0, 0,
                                        0)


class Refused(AssertionError):
    """The server's answer is an error."""

    def __init__(self, procedure, status):
        super().__init__(f"procedure {procedure}: status {status}")
        self.status = status


def read_arguments(handle, offset, count):
    return opaque(handle) + struct.pack(">QI", offset, count)


def read(connection, handle, offset, count):
    reply = connection.call(NFS, READ, read_arguments(handle, offset, count))
    reply.skip_attributes()
    reply.skip(8)               # count, eof
    return reply.opaque()
