# SPDX-License-Identifier: LGPL-3.0-or-later
"""As much of NFSv3 (RFC 1813) as the tests need.

What ends in `_arguments` encodes a call, what ends in `_result` decodes a
reply with its status; the others make the call on a rpc.Connection or
rpc.Concurrent, and raise Refused when the status is not 0.
"""
import os
import struct
from collections import namedtuple

from nfs import rpc
from nfs.xdr import number, opaque, wide

MNT = 1
GETATTR, SETATTR, LOOKUP, ACCESS, READLINK, READ, WRITE, CREATE, MKDIR, \
    SYMLINK, MKNOD, REMOVE, RMDIR, RENAME, LINK = range(1, 16)
READDIR, READDIRPLUS, FSINFO, PATHCONF, COMMIT = 16, 17, 19, 20, 21
ACCESS_DENIED, READ_ONLY = 13, 30
UNSTABLE, DATA_SYNC, FILE_SYNC = range(3)
REGULAR, DIRECTORY, SYMBOLIC_LINK, FIFO = 1, 2, 5, 7

# Times in ns.
Attrs = namedtuple("Attrs", "mode size fileid mtime ctime type uid gid")
Written = namedtuple("Written", "count committed verifier attrs")


class Refused(rpc.Refused):
    """The status is an error."""

    def __init__(self, status, procedure=None):
        where = "" if procedure is None else f"procedure {procedure}: "
        super().__init__(f"{where}NFS status {status}")
        self.status = status


def check(reader, procedure=None):
    """Reads the status; READER, if it is 0."""
    status = reader.number()
    if status:
        raise Refused(status, procedure)
    return reader


def call(connection, procedure, arguments, **seconds):
    """A Reader of what comes after the status."""
    return check(connection.call(procedure, arguments, **seconds), procedure)


# --- attributes

def attributes(reader):
    """fattr3."""
    fields = reader.take("IIIII QQ II QQ")
    _, mtime, ctime = (s * 10**9 + ns for s, ns in
                       (reader.take("II") for _ in range(3)))
    return Attrs(fields[1], fields[5], fields[10], mtime, ctime, fields[0],
                 *fields[3:5])


def optional_attributes(reader):
    """post_op_attr: Attrs, or None."""
    return attributes(reader) if reader.number() else None


def attributes_after(reader):
    """wcc_data: the attributes after the operation, or None."""
    if reader.number():
        reader.skip(24)
    return optional_attributes(reader)


def get_attributes(connection, handle):
    return attributes(call(connection, GETATTR, opaque(handle)))


def give(connection, handle, uid, mode):
    """A new owner, group of the same number, and mode."""
    call(connection, SETATTR, opaque(handle) + struct.pack(
        ">IIIIII", 1, mode, 1, uid, 1, uid) + bytes(16))


def truncation(handle, size=0):
    """The arguments of a SETATTR."""
    return setting(handle, size=size)


def setting(handle, mode=None, uid=None, gid=None, size=None, mtime=None):
    """The arguments of a SETATTR; MTIME in ns."""
    def given(value, encode):
        return number(0) if value is None else number(1) + encode(value)
    numbers = b"".join(given(value, number) for value in (mode, uid, gid))
    modified = number(0) if mtime is None else struct.pack(
        ">III", 2, *divmod(mtime, 10**9))
    return opaque(handle) + numbers + given(size, wide) + number(0) + \
        modified + number(0)


# --- names

def root_of(pseudo, mount_port, host="127.0.0.1"):
    connection = rpc.Connection(mount_port, timeout=30, host=host)
    try:
        return check(connection.call(MNT, opaque(pseudo.encode()),
                                     program=rpc.MOUNT)).opaque()
    finally:
        connection.close()


def named(directory, name):
    """diropargs3."""
    return opaque(directory) + opaque(os.fsencode(name))


def mode_alone(mode):
    """sattr3."""
    return struct.pack(">IIIIIII", 1, mode, 0, 0, 0, 0, 0)


def new_handle(reader):
    """Of a reply to CREATE, MKDIR, SYMLINK or MKNOD, behind its status."""
    assert reader.number(), "no handle in the answer"
    return reader.opaque()


def create_arguments(directory, name, mode=0o644):
    """UNCHECKED."""
    return named(directory, name) + number(0) + mode_alone(mode)


def directory_arguments(directory, name, mode=0o755):
    """Of a MKDIR."""
    return named(directory, name) + mode_alone(mode)


def symlink_arguments(directory, name, target=b"nowhere"):
    return named(directory, name) + mode_alone(0o777) + opaque(target)


def fifo_arguments(directory, name, mode=0o644):
    """Of a MKNOD."""
    return named(directory, name) + number(FIFO) + mode_alone(mode)


def rename_arguments(directory, name, new_directory, new_name):
    return named(directory, name) + named(new_directory, new_name)


def link_arguments(handle, directory, name):
    return opaque(handle) + named(directory, name)


def create(connection, directory, name):
    """The handle of a new file."""
    return new_handle(call(connection, CREATE,
                           create_arguments(directory, name)))


def make_directory(connection, directory, name, mode=0o755):
    return new_handle(call(connection, MKDIR,
                           directory_arguments(directory, name, mode)))


def lookup(connection, directory, name):
    return call(connection, LOOKUP, named(directory, name)).opaque()


def remove(connection, directory, name, procedure=REMOVE):
    call(connection, procedure, named(directory, name))


def _entries(reader, of_each):
    while reader.number():
        reader.skip(8)          # fileid
        name, cookie = reader.opaque(), reader.hyper()
        of_each(reader)
        yield name, cookie


def readdir(connection, directory, cookie=0, verifier=bytes(8), most=8192,
            plus=False):
    """[(name, cookie)], is it the end, and the verifier."""
    def attributes_and_handle(reader):
        optional_attributes(reader)
        if reader.number():
            reader.opaque()
    arguments = opaque(directory) + wide(cookie) + verifier + \
        number(most) * (1 + plus)
    reader = call(connection, READDIRPLUS if plus else READDIR, arguments)
    optional_attributes(reader)
    verifier = reader.fixed(8)
    entries = list(_entries(
        reader, attributes_and_handle if plus else lambda _: None))
    return entries, bool(reader.number()), verifier


# --- data

def write_arguments(handle, offset, data, stable=FILE_SYNC):
    return opaque(handle) + struct.pack(
        ">QII", offset, len(data), stable) + opaque(data)


def written(reader):
    """A reply to WRITE behind its status."""
    attrs = attributes_after(reader)
    count, committed = reader.take("II")
    return Written(count, committed, reader.fixed(8), attrs)


def write_result(reader):
    """Status, and how much was written how stably."""
    status = reader.number()
    if status:
        return status, 0, 0
    reply = written(reader)
    return status, reply.count, reply.committed


def write(connection, handle, offset, data, stable=FILE_SYNC, **seconds):
    return written(call(connection, WRITE, write_arguments(
        handle, offset, data, stable), **seconds))


def read_arguments(handle, offset, count):
    return opaque(handle) + struct.pack(">QI", offset, count)


def found(reader):
    """A reply to READ behind its status: data, and is it the end."""
    optional_attributes(reader)
    _, eof = reader.take("II")
    return reader.opaque(), bool(eof)


def read_result(reader):
    """Status and data."""
    status = reader.number()
    return status, b"" if status else found(reader)[0]


def read(connection, handle, offset, count):
    return found(call(connection, READ,
                      read_arguments(handle, offset, count)))[0]


def read_all(connection, handle, step=1 << 18):
    """Every byte up to the end that the server names."""
    data, eof = bytearray(), False
    while not eof:
        piece, eof = found(call(connection, READ, read_arguments(
            handle, len(data), step)))
        assert piece or eof, "an empty READ that is not the end"
        data += piece
    return bytes(data)


def commit_arguments(handle):
    """The whole file."""
    return opaque(handle) + struct.pack(">QI", 0, 0)


def committed(reader):
    """The write verifier of a reply to COMMIT, behind its status."""
    attributes_after(reader)
    return reader.fixed(8)
