# SPDX-License-Identifier: LGPL-3.0-or-later
"""NFSv3 and a little NFSv4.0 over one TCP connection, nothing retried.

libnfs and kernels reconnect and send again behind the caller's back.  Here a
reply is a reply of this connection, and what has none when the connection
breaks is not acknowledged.
"""
import itertools
import os
import socket
import struct
from collections import namedtuple

NFS, MOUNT = 100003, 100005
UNSTABLE, DATA_SYNC, FILE_SYNC = range(3)
COMPOUND = 1            # NFSv4's only procedure
GETATTR, LOOKUP, READ, WRITE, CREATE, MKDIR, REMOVE, COMMIT = \
    1, 3, 6, 7, 8, 9, 12, 21

Attrs = namedtuple("Attrs", "size mtime ctime")     # times in ns
Written = namedtuple("Written", "count committed verifier attrs")
Change = namedtuple("Change", "change size ctime")


class Gone(Exception):
    """The server closed the connection, or it never was."""


class Refused(Exception):
    """The server answered with an error status; to the call XID, if it was
    the RPC itself."""

    def __init__(self, why, xid=None):
        super().__init__(why)
        self.xid = xid


class Reader:
    """XDR, decoded in order."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def take(self, form):
        values = struct.unpack_from(">" + form, self.data, self.at)
        self.at += struct.calcsize(">" + form)
        return values if len(values) > 1 else values[0]

    def fixed(self, count):
        data = self.data[self.at:self.at + count]
        self.at += count + -count % 4
        return data

    def opaque(self):
        return self.fixed(self.take("I"))


def opaque(data):
    return struct.pack(">I", len(data)) + data + bytes(-len(data) % 4)


def auth_sys():
    body = struct.pack(">I", 0) + opaque(os.uname().nodename.encode()) + \
        struct.pack(">III", 0, 0, 0)
    return struct.pack(">I", 1) + opaque(body) + struct.pack(">II", 0, 0)


class Connection:
    """send() gives an id, receive() whatever reply comes next."""

    def __init__(self, port, timeout=60):
        try:
            self.sock = socket.create_connection(("127.0.0.1", port), timeout)
        except OSError as err:
            raise Gone(err) from err
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.ids = itertools.count(int.from_bytes(os.urandom(3)) << 7)
        self.auth = auth_sys()
        self.buffer = bytearray()

    def fileno(self):
        return self.sock.fileno()

    def close(self):
        self.sock.close()

    def send(self, procedure, body, program=NFS, version=3):
        xid = next(self.ids) & 0xffffffff
        message = struct.pack(">IIIIII", xid, 0, 2, program, version,
                              procedure) + self.auth + body
        try:
            self.sock.sendall(struct.pack(">I", 1 << 31 | len(message)) +
                              message)
        except OSError as err:
            raise Gone(err) from err
        return xid

    def receive(self):
        """The next reply's id and results; Gone when there is no more."""
        message = bytearray()
        last = False
        while not last:
            head = struct.unpack(">I", self._exactly(4))[0]
            last = bool(head >> 31)
            message += self._exactly(head & 0x7fffffff)
        reader = Reader(bytes(message))
        xid, kind, denied = reader.take("III")
        assert kind == 1
        if denied:
            raise Refused("the call was denied", xid)
        reader.take("I")
        reader.opaque()
        status = reader.take("I")
        if status:
            raise Refused(f"the call was not accepted: {status}", xid)
        return xid, reader

    def pending(self):
        """A whole reply has come already."""
        return len(self.buffer) >= 4 and len(self.buffer) - 4 >= \
            struct.unpack_from(">I", self.buffer)[0] & 0x7fffffff

    def _exactly(self, count):
        while len(self.buffer) < count:
            try:
                more = self.sock.recv(1 << 20)
            except OSError as err:
                raise Gone(err) from err
            if not more:
                raise Gone("end of the connection")
            self.buffer += more
        data = bytes(self.buffer[:count])
        del self.buffer[:count]
        return data

    def call(self, procedure, body, **program):
        xid = self.send(procedure, body, **program)
        got, reader = self.receive()
        assert got == xid
        return reader


# --- NFSv3

def status(reader):
    code = reader.take("I")
    if code:
        raise Refused(f"NFS status {code}")


def attributes(reader):
    """fattr3."""
    fields = reader.take("IIIII QQ II QQ")
    _, mtime, ctime = (s * 10**9 + ns for s, ns in
                       (reader.take("II") for _ in range(3)))
    return Attrs(fields[5], mtime, ctime)


def maybe_attributes(reader):
    return attributes(reader) if reader.take("I") else None


def after(reader):
    """wcc_data: the attributes after the operation, if they came."""
    if reader.take("I"):
        reader.take("QIIII")
    return maybe_attributes(reader)


def write_body(handle, offset, data, stable):
    return opaque(handle) + struct.pack(">QII", offset, len(data), stable) + \
        opaque(data)


def written(reader):
    status(reader)
    attrs = after(reader)
    count, committed = reader.take("II")
    return Written(count, committed, reader.fixed(8), attrs)


def commit_body(handle):
    return opaque(handle) + struct.pack(">QI", 0, 0)


def committed(reader):
    """The write verifier."""
    status(reader)
    after(reader)
    return reader.fixed(8)


def mount(port, pseudo):
    """The root's handle."""
    conn = Connection(port)
    reader = conn.call(1, opaque(pseudo.encode()), program=MOUNT)
    conn.close()
    status(reader)
    return reader.opaque()


def make_body(procedure, folder, name):
    """CREATE (unchecked) or MKDIR, with default attributes but the mode."""
    how = struct.pack(">I", 0) if procedure == CREATE else b""
    return opaque(folder) + opaque(name.encode()) + how + \
        struct.pack(">IIIIIII", 1, 0o755, 0, 0, 0, 0, 0)


def made(reader):
    """The new handle."""
    status(reader)
    assert reader.take("I"), "no handle came back"
    return reader.opaque()


def make(conn, procedure, folder, name):
    return made(conn.call(procedure, make_body(procedure, folder, name)))


def lookup(conn, folder, name):
    reader = conn.call(LOOKUP, opaque(folder) + opaque(name.encode()))
    status(reader)
    return reader.opaque()


def remove(conn, folder, name):
    status(conn.call(REMOVE, opaque(folder) + opaque(name.encode())))


def getattr3(conn, handle):
    reader = conn.call(GETATTR, opaque(handle))
    status(reader)
    return attributes(reader)


def write(conn, handle, offset, data, stable=FILE_SYNC):
    return written(conn.call(WRITE, write_body(handle, offset, data, stable)))


def read_all(conn, handle, step=1 << 18):
    """Every byte up to the end that the server names."""
    data = bytearray()
    while True:
        reader = conn.call(READ, opaque(handle) +
                           struct.pack(">QI", len(data), step))
        status(reader)
        maybe_attributes(reader)
        _, eof = reader.take("II")
        piece = reader.opaque()
        data += piece
        if eof:
            return bytes(data)
        assert piece, "an empty READ that is not the end"


# --- NFSv4.0: the change attribute, which NFSv3 does not have

PUTFH, GETFH, V4_GETATTR, V4_LOOKUP, PUTROOTFH = 22, 10, 9, 15, 24
# change, size; time_metadata
MASK = struct.pack(">III", 2, 1 << 3 | 1 << 4, 1 << 52 - 32)


def compound(*operations):
    return opaque(b"") + struct.pack(">II", 0, len(operations)) + \
        b"".join(operations)


def results(reader):
    """Skip to the first operation's results."""
    code = reader.take("I")
    if code:
        raise Refused(f"NFSv4 status {code}")
    reader.opaque()
    reader.take("I")


def handle4(conn, path):
    """The NFSv4 handle of a path below the pseudo root."""
    lookups = [struct.pack(">I", V4_LOOKUP) + opaque(part.encode())
               for part in path.strip("/").split("/")]
    reader = conn.call(COMPOUND, compound(
        struct.pack(">I", PUTROOTFH), *lookups, struct.pack(">I", GETFH)),
        version=4)
    results(reader)
    for _ in range(len(lookups) + 2):
        reader.take("II")
    return reader.opaque()


def change_body(handle):
    return compound(struct.pack(">I", PUTFH) + opaque(handle),
                    struct.pack(">I", V4_GETATTR) + MASK)


def change(reader):
    results(reader)
    reader.take("II")
    reader.take("II")
    words = [reader.take("I") for _ in range(reader.take("I"))]
    assert words == [1 << 3 | 1 << 4, 1 << 52 - 32], words
    reader.take("I")
    value, size, seconds, nanoseconds = reader.take("QQqI")
    return Change(value, size, seconds * 10**9 + nanoseconds)


def get_change(conn, handle):
    return change(conn.call(COMPOUND, change_body(handle), version=4))
