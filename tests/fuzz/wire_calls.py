# SPDX-License-Identifier: LGPL-3.0-or-later
"""Calls of NFSv3 and operations of NFSv4.0 to 4.2 with random arguments, and
what their answers give for later ones.

    call3()     procedure and arguments
    operation() an operation and its arguments
    harvest3(), harvest4()  keep what a reply has, and say its status
"""
import struct

from nfs import nfs3, nfs4
from nfs.xdr import number, opaque, wide

# --- NFSv3

# A weight for each procedure: those that do more come more often.
PROCEDURES3 = {
    0: 1, nfs3.GETATTR: 4, nfs3.SETATTR: 8, nfs3.LOOKUP: 8, nfs3.ACCESS: 3,
    nfs3.READLINK: 2, nfs3.READ: 10, nfs3.WRITE: 10, nfs3.CREATE: 7,
    nfs3.MKDIR: 3, nfs3.SYMLINK: 3, nfs3.MKNOD: 3, nfs3.REMOVE: 5,
    nfs3.RMDIR: 3, nfs3.RENAME: 5, nfs3.LINK: 4, nfs3.READDIR: 6,
    nfs3.READDIRPLUS: 6, 18: 1, nfs3.FSINFO: 1, nfs3.PATHCONF: 1,
    nfs3.COMMIT: 4, 22: 1, 99: 1}
READ_ONLY3 = {nfs3.GETATTR, nfs3.LOOKUP, nfs3.ACCESS, nfs3.READLINK,
              nfs3.READ, nfs3.READDIR, nfs3.READDIRPLUS}
NAMES3 = dict(enumerate((
    "NULL", "GETATTR", "SETATTR", "LOOKUP", "ACCESS", "READLINK", "READ",
    "WRITE", "CREATE", "MKDIR", "SYMLINK", "MKNOD", "REMOVE", "RMDIR",
    "RENAME", "LINK", "READDIR", "READDIRPLUS", "FSSTAT", "FSINFO",
    "PATHCONF", "COMMIT")))


def _create3(v, where):
    how = v.number(0, 1, 2)
    return where + number(how) + (v.rng.randbytes(8) if how == 2
                                  else v.sattr3())


def _mknod3(v, where):
    kind = v.number(7, 6, 3, 4)
    body = b""
    if kind in (3, 4):
        body = v.sattr3() + number(v.number(1)) + number(v.number(3))
    elif kind in (6, 7):
        body = v.sattr3()
    return where + number(kind) + body


def _readdir3(v, handle, plus):
    cookie = v.found.cookies.pick(v.place()) if not v.odd() else v.offset()
    arguments = opaque(handle) + wide(cookie) + v.found.verifiers.pick(
        v.place(), bytes(8))
    return arguments + number(v.count()) * (1 + plus)


def call3(v):
    """A procedure and its arguments."""
    procedure = v.rng.choices(list(PROCEDURES3), PROCEDURES3.values())[0]
    handle = v.handle(3, procedure in READ_ONLY3)
    where = opaque(handle) + opaque(v.name())
    if procedure in (nfs3.LOOKUP, nfs3.REMOVE, nfs3.RMDIR):
        return procedure, where
    if procedure == nfs3.SETATTR:
        guard = v.number(0, 0, 1)
        return procedure, opaque(handle) + v.sattr3() + number(guard) + (
            v.rng.randbytes(8) if guard == 1 else b"")
    if procedure == nfs3.ACCESS:
        return procedure, opaque(handle) + number(v.number(0x3f))
    if procedure == nfs3.READ:
        return procedure, nfs3.read_arguments(handle, v.offset(), v.count())
    if procedure == nfs3.WRITE:
        data = v.data()
        return procedure, opaque(handle) + struct.pack(
            ">QII", v.offset(), v.number(len(data)), v.number(0, 1, 2)) + \
            opaque(data)
    if procedure == nfs3.CREATE:
        return procedure, _create3(v, where)
    if procedure == nfs3.MKDIR:
        return procedure, where + v.sattr3()
    if procedure == nfs3.SYMLINK:
        return procedure, where + v.sattr3() + opaque(v.text(4097))
    if procedure == nfs3.MKNOD:
        return procedure, _mknod3(v, where)
    if procedure == nfs3.RENAME:
        return procedure, where + opaque(v.handle(3)) + opaque(v.name())
    if procedure == nfs3.LINK:
        return procedure, opaque(v.handle(3)) + where
    if procedure in (nfs3.READDIR, nfs3.READDIRPLUS):
        return procedure, _readdir3(v, handle,
                                    procedure == nfs3.READDIRPLUS)
    if procedure == nfs3.COMMIT:
        return procedure, opaque(handle) + struct.pack(
            ">QI", v.offset(), v.count())
    return procedure, opaque(handle) if procedure else b""


def harvest3(found, procedure, arguments, reader):
    """The status; None if the answer has none."""
    if procedure not in NAMES3 or not procedure:
        return None
    status = reader.number()
    if status:
        return status
    if procedure == nfs3.LOOKUP:
        # No way up, out of our folder.
        if not arguments.endswith((opaque(b".."), opaque(b"."))):
            found.handles[3].add(reader.opaque())
    elif procedure in (nfs3.CREATE, nfs3.MKDIR, nfs3.SYMLINK, nfs3.MKNOD):
        if reader.number():
            found.handles[3].add(reader.opaque())
    elif procedure == nfs3.READDIR:
        nfs3.optional_attributes(reader)
        found.verifiers.add(reader.fixed(8))
        while reader.number():
            reader.skip(8)
            reader.opaque()
            found.cookies.add(reader.hyper())
    return status


# --- NFSv4: the arguments of each operation

def _how(v):
    """openflag4."""
    if v.chance(0.4):
        return number(0)
    mode = v.number(0, 1, 2, 3)
    if mode == 2:
        return struct.pack(">II", 1, 2) + v.rng.randbytes(8)
    if mode == 3:
        return struct.pack(">II", 1, 3) + v.rng.randbytes(8) + \
            v.attributes()
    return struct.pack(">II", 1, mode) + v.attributes()


def _claim(v):
    kind = v.number(0, 0, 0, 0, 4, 1, 5)
    if kind in (0, 3):
        return number(kind) + opaque(v.name())
    if kind == 1:
        return struct.pack(">II", 1, v.number(0, 1, 2))
    if kind == 2:
        return number(2) + v.stateid() + opaque(v.name())
    if kind == 5:
        return number(5) + v.stateid()
    return number(kind)


def open_arguments(v, client):
    owner = v.owner()
    return number(client.seqid(owner, v)) + struct.pack(
        ">II", v.number(1, 2, 3, 0x403), v.number(0, 0, 0, 1, 2, 3)) + wide(
            v.clientid(client.clientid)) + opaque(owner) + _how(v) + _claim(v)


# CLOSE, OPEN_CONFIRM, OPEN_DOWNGRADE, DELEGRETURN and LOCK get stateids of the
# kind that they are for: Ganesha 9.14 does not look (docs/limits.md).

def _lock(v, client):
    owner = v.owner()
    new = v.number(0, 1)
    locker = number(new)
    if new == 1:
        locker += number(client.seqid(owner, v)) + v.stateid(v.own.opens) + \
            number(client.seqid(owner, v)) + wide(
                v.clientid(client.clientid)) + opaque(owner)
    else:
        locker += v.stateid(None if client.minor else v.own.locks) + number(
            client.seqid(owner, v))
    return struct.pack(">IIQQ", v.number(1, 2, 3, 4), v.number(0, 0, 1),
                       v.offset(), v.length() or 1) + locker


def _readdir(v):
    cookie = v.found.cookies.pick(v.place()) if not v.odd() else v.offset()
    return wide(cookie) + v.found.verifiers.pick(
        v.place(), bytes(8)) + number(v.count()) + number(
            v.number(4096, 8192, 65536)) + v.bitmap()


def _create(v):
    kind = v.number(2, 2, 5, 7, 6, 3, 4)
    body = b""
    if kind == 5:
        body = opaque(v.text(4097))
    elif kind in (3, 4):
        body = number(v.number(1)) + number(v.number(3))
    return number(kind) + body + opaque(v.name()) + v.attributes()


def _exchange_id(v, client):
    return v.rng.randbytes(8) + opaque(b"wire " + v.owner()[:200]) + number(
        v.number(0, 0x10001, 1 << 30, 0x40010000)) + _protection(v) + \
        number(v.rng.choice((0, 0, 1))) + (
            b"" if v.chance(0.5) else opaque(v.text()) * 2 + bytes(12))


def _protection(v):
    how = v.number(0, 0, 0, 1, 2)
    if how == 0:
        return number(0)
    both = v.bitmap() + v.bitmap()
    if how == 1:
        return number(1) + both
    return number(how) + both + number(1) + opaque(v.text()) + number(
        1) + opaque(v.text()) + number(v.number()) * 2


def _channel(v):
    return struct.pack(
        ">IIIIII", v.number(0), v.number(1 << 20), v.number(1 << 20),
        v.number(1 << 12), v.number(8, 64), v.number(16, 1)) + number(0)


def _create_session(v, client):
    security = v.number(0, 1)
    return wide(v.clientid(client.clientid)) + number(v.number(1)) + number(
        v.number(0, 1, 2, 3)) + _channel(v) + _channel(v) + number(
            v.number(0x40000000)) + number(1) + number(security) + (
                number(0) + opaque(b"x") + bytes(12) if security == 1 else b"")


def _layoutget(v):
    return struct.pack(">IIIQQQ", v.number(0, 1), v.number(1, 4),
                       v.number(1, 2), v.offset(), v.length(), v.length()) + \
        v.stateid() + number(v.count())


def _layoutreturn(v):
    kind = v.number(1, 2, 3)
    body = struct.pack(">QQ", v.offset(), v.length()) + v.stateid() + opaque(
        v.text()) if kind == 1 else b""
    return struct.pack(">IIII", v.number(0, 1), v.number(1, 4),
                       v.number(1, 2), kind) + body


def _layoutcommit(v):
    return struct.pack(">QQI", v.offset(), v.length(), v.number(0, 1)) + \
        v.stateid() + number(1) + wide(v.offset()) + number(0) + number(
            v.number(1, 4)) + opaque(v.text())


def _copy(v):
    return v.stateid() + v.stateid() + struct.pack(
        ">QQQII", v.offset(), v.offset(), v.length(), v.number(0, 1),
        v.number(0, 1)) + number(0)


def _clone(v):
    return v.stateid() + v.stateid() + struct.pack(
        ">QQQ", v.offset(), v.offset(), v.length())


def _range(v):
    return v.stateid() + struct.pack(">QQ", v.offset(), v.length())


def _write(v):
    data = v.data()
    return v.stateid() + wide(v.offset()) + number(v.number(0, 1, 2)) + \
        opaque(data)


def _write_same(v):
    return v.stateid() + number(v.number(0, 1, 2)) + struct.pack(
        ">QQQ", v.offset(), v.length(), v.length()) + wide(
            v.offset()) + number(v.number()) + opaque(v.data())


def _setclientid(v):
    return v.rng.randbytes(8) + opaque(b"wire " + v.owner()[:900]) + number(
        v.number(0x40000000)) + opaque(v.rng.choice(
            (b"tcp", b"tcp6", b"udp", v.text()))) + opaque(v.rng.choice(
                (b"127.0.0.1.0.1", b"0.0.0.0.0.0", b"::1.0.1", v.text()))) + \
        number(v.number())


def _test_stateid(v):
    count = v.rng.choice((0, 1, 2, 10, 300))
    return number(count) + b"".join(v.stateid() for _ in range(count))


def _layoutstats(v):
    return struct.pack(">QQ", v.offset(), v.length()) + v.stateid() + \
        bytes(16) * 2 + v.rng.randbytes(16) + number(v.number(4)) + opaque(
            v.text())


def _secinfo_no_name(v):
    return number(v.number(0, 1))


def _verify(v):
    chosen = [bit for bit in (0, 1, 3, 4, 8, 20, 33) if v.chance(0.3)]
    return v.bitmap(*chosen) + opaque(v.rng.randbytes(4 * len(chosen)))


# number: name, first minor version, weight, arguments of (Values, client)
OPERATIONS = {
    3: ("ACCESS", 0, 3, lambda v, c: number(v.number(0x3f))),
    4: ("CLOSE", 0, 6, lambda v, c: number(c.seqid(v.owner(), v)) +
        v.stateid(v.own.opens)),
    5: ("COMMIT", 0, 4, lambda v, c: wide(v.offset()) + number(v.count())),
    6: ("CREATE", 0, 8, lambda v, c: _create(v)),
    7: ("DELEGPURGE", 0, 1, lambda v, c: wide(v.clientid(c.clientid))),
    8: ("DELEGRETURN", 0, 2, lambda v, c: v.stateid(v.own.delegations)),
    9: ("GETATTR", 0, 8, lambda v, c: v.bitmap()),
    10: ("GETFH", 0, 10, lambda v, c: b""),
    11: ("LINK", 0, 5, lambda v, c: opaque(v.name())),
    12: ("LOCK", 0, 10, _lock),
    13: ("LOCKT", 0, 4, lambda v, c: struct.pack(
        ">IQQ", v.number(1, 2), v.offset(), v.length()) + wide(
            v.clientid(c.clientid)) + opaque(v.owner())),
    14: ("LOCKU", 0, 5, lambda v, c: struct.pack(
        ">II", v.number(1, 2), c.seqid(v.owner(), v)) + v.stateid() +
        struct.pack(">QQ", v.offset(), v.length())),
    15: ("LOOKUP", 0, 8, lambda v, c: opaque(v.name())),
    16: ("LOOKUPP", 0, 1, lambda v, c: b""),
    17: ("NVERIFY", 0, 2, lambda v, c: _verify(v)),
    18: ("OPEN", 0, 16, open_arguments),
    19: ("OPENATTR", 0, 2, lambda v, c: number(v.number(0, 1))),
    20: ("OPEN_CONFIRM", 0, 2, lambda v, c: v.stateid(
        v.own.opens) + number(c.seqid(v.owner(), v))),
    21: ("OPEN_DOWNGRADE", 0, 4, lambda v, c: v.stateid(
        v.own.opens) + struct.pack(
        ">III", c.seqid(v.owner(), v), v.number(1, 2, 3),
        v.number(0, 1, 2, 3))),
    22: ("PUTFH", 0, 8, lambda v, c: opaque(v.handle(4))),
    23: ("PUTPUBFH", 0, 1, lambda v, c: b""),
    24: ("PUTROOTFH", 0, 1, lambda v, c: b""),
    25: ("READ", 0, 10, lambda v, c: v.stateid() + wide(v.offset()) +
         number(v.count())),
    26: ("READDIR", 0, 8, lambda v, c: _readdir(v)),
    27: ("READLINK", 0, 2, lambda v, c: b""),
    28: ("REMOVE", 0, 6, lambda v, c: opaque(v.name())),
    29: ("RENAME", 0, 6, lambda v, c: opaque(v.name()) + opaque(v.name())),
    30: ("RENEW", 0, 1, lambda v, c: wide(v.clientid(c.clientid))),
    31: ("RESTOREFH", 0, 4, lambda v, c: b""),
    32: ("SAVEFH", 0, 5, lambda v, c: b""),
    33: ("SECINFO", 0, 2, lambda v, c: opaque(v.name())),
    34: ("SETATTR", 0, 14, lambda v, c: v.stateid() + v.attributes()),
    35: ("SETCLIENTID", 0, 1, lambda v, c: _setclientid(v)),
    36: ("SETCLIENTID_CONFIRM", 0, 1, lambda v, c: wide(
        v.clientid(c.clientid)) + v.rng.randbytes(8)),
    37: ("VERIFY", 0, 2, lambda v, c: _verify(v)),
    38: ("WRITE", 0, 10, lambda v, c: _write(v)),
    39: ("RELEASE_LOCKOWNER", 0, 2, lambda v, c: wide(
        v.clientid(c.clientid)) + opaque(v.owner())),
    40: ("BACKCHANNEL_CTL", 1, 1, lambda v, c: number(v.number()) +
         number(1) + number(0)),
    41: ("BIND_CONN_TO_SESSION", 1, 1, lambda v, c: v.session(c.session) +
         number(v.number(1, 2, 3)) + number(0)),
    42: ("EXCHANGE_ID", 1, 1, _exchange_id),
    43: ("CREATE_SESSION", 1, 1, _create_session),
    44: ("DESTROY_SESSION", 1, 1, lambda v, c: v.session(c.session)),
    45: ("FREE_STATEID", 1, 3, lambda v, c: v.stateid()),
    46: ("GET_DIR_DELEGATION", 1, 1, lambda v, c: number(0) + v.bitmap() +
         bytes(24) + v.bitmap() + v.bitmap()),
    47: ("GETDEVICEINFO", 1, 1, lambda v, c: v.rng.randbytes(16) + number(
        v.number(1, 4)) + number(v.count()) + v.bitmap()),
    48: ("GETDEVICELIST", 1, 1, lambda v, c: number(v.number(1)) + number(
        v.number()) + wide(v.offset()) + bytes(8)),
    49: ("LAYOUTCOMMIT", 1, 2, lambda v, c: _layoutcommit(v)),
    50: ("LAYOUTGET", 1, 3, lambda v, c: _layoutget(v)),
    51: ("LAYOUTRETURN", 1, 2, lambda v, c: _layoutreturn(v)),
    52: ("SECINFO_NO_NAME", 1, 2, lambda v, c: _secinfo_no_name(v)),
    53: ("SEQUENCE", 1, 1, lambda v, c: v.session(c.session) + struct.pack(
        ">IIII", v.number(1), v.number(0), v.number(0), 0)),
    54: ("SET_SSV", 1, 1, lambda v, c: opaque(v.text()) * 2),
    55: ("TEST_STATEID", 1, 2, lambda v, c: _test_stateid(v)),
    56: ("WANT_DELEGATION", 1, 1, lambda v, c: number(v.number(1)) +
         number(v.number(0)) + opaque(v.name())),
    57: ("DESTROY_CLIENTID", 1, 1, lambda v, c: wide(
        v.clientid(c.clientid))),
    58: ("RECLAIM_COMPLETE", 1, 1, lambda v, c: number(v.number(0, 1))),
    59: ("ALLOCATE", 2, 3, lambda v, c: _range(v)),
    60: ("COPY", 2, 3, lambda v, c: _copy(v)),
    61: ("COPY_NOTIFY", 2, 1, lambda v, c: v.stateid() + number(1) + opaque(
        v.text())),
    62: ("DEALLOCATE", 2, 6, lambda v, c: _range(v)),
    63: ("IO_ADVISE", 2, 2, lambda v, c: _range(v) + v.bitmap()),
    64: ("LAYOUTERROR", 2, 1, lambda v, c: _range(v) + number(0)),
    65: ("LAYOUTSTATS", 2, 1, lambda v, c: _layoutstats(v)),
    66: ("OFFLOAD_CANCEL", 2, 1, lambda v, c: v.stateid()),
    67: ("OFFLOAD_STATUS", 2, 1, lambda v, c: v.stateid()),
    68: ("READ_PLUS", 2, 5, lambda v, c: v.stateid() + wide(v.offset()) +
         number(v.count())),
    69: ("SEEK", 2, 5, lambda v, c: v.stateid() + wide(v.offset()) + number(
        v.number(0, 1))),
    70: ("WRITE_SAME", 2, 1, lambda v, c: _write_same(v)),
    71: ("CLONE", 2, 3, lambda v, c: _clone(v)),
    72: ("GETXATTR", 2, 6, lambda v, c: opaque(v.name())),
    73: ("SETXATTR", 2, 8, lambda v, c: number(v.number(0, 1, 2)) + opaque(
        v.name()) + opaque(v.data(9000))),
    74: ("LISTXATTR", 2, 5, lambda v, c: wide(v.found.cookies.pick(
        v.place())) + number(v.count())),
    75: ("REMOVEXATTR", 2, 4, lambda v, c: opaque(v.name())),
    0: ("0", 0, 1, lambda v, c: b""),
    76: ("76", 0, 1, lambda v, c: b""),
    10044: ("ILLEGAL", 0, 1, lambda v, c: b""),
    4294967295: ("-1", 0, 1, lambda v, c: b""),
}
# What ends Ganesha 9.14, whatever the FSAL (docs/limits.md).  LAYOUTRETURN,
# ALLOCATE, DEALLOCATE and READ_PLUS: when no handle is before them.
ENDS_IT = {51, 59, 62, 68}
TAKES_HANDLE = {33, 52}         # SECINFO, SECINFO_NO_NAME
# READ, READDIR and READ_PLUS: when their answer is kept for a replay, and asked
# for again.
NEVER_AGAIN = {25, 26, 68}
# They change no object that our folder does not have: what may follow a step
# out of it.
HARMLESS = (3, 9, 10, 13, 15, 16, 17, 23, 24, 25, 26, 27, 33, 37, 52, 68, 69,
            72, 74)
STEPS_OUT = {16, 23, 24}


def operations(v, client, count):
    """COUNT of them, of the client's minor version; some of a later one."""
    out = v.chance(0.05)
    most = client.minor if not v.chance(0.03) else 2
    known = [one for one, (_, first, _, _) in OPERATIONS.items()
             if first <= most and (one in HARMLESS if out
                                   else one not in STEPS_OUT)]
    weights = [OPERATIONS[one][2] for one in known]
    return [(one, OPERATIONS[one][3](v, client))
            for one in v.rng.choices(known, weights, k=count)]


# --- what comes back

def _listing(reader, found):
    found.verifiers.add(reader.fixed(8))
    while reader.number():
        found.cookies.add(reader.hyper())
        reader.opaque()
        nfs4.skip_bitmap(reader)
        reader.opaque()
    reader.number()


def _opened(reader, found):
    stateid, _, delegation = nfs4.decode_open(reader)
    found.keep(stateid, found.own.opens)
    found.opened = stateid
    if delegation:
        found.keep(delegation, found.own.delegations)


def _list_xattrs(reader, found):
    found.cookies.add(reader.hyper())
    for _ in range(reader.number()):
        reader.opaque()
    reader.number()


def _keep_open(reader, found):
    found.keep(reader.fixed(16), found.own.opens)


def _keep_lock(reader, found):
    found.keep(reader.fixed(16), found.own.locks)


RESULTS = {
    3: lambda r, f: r.skip(8), 4: _keep_open, 5: lambda r, f: r.skip(8),
    6: lambda r, f: (r.skip(20), nfs4.skip_bitmap(r)),
    9: lambda r, f: (nfs4.skip_bitmap(r), r.opaque()),
    11: lambda r, f: r.skip(20), 12: _keep_lock, 14: _keep_lock,
    18: _opened, 20: _keep_open, 21: _keep_open,
    25: lambda r, f: (r.number(), r.opaque()), 26: _listing,
    27: lambda r, f: r.opaque(), 28: lambda r, f: r.skip(20),
    29: lambda r, f: r.skip(40), 34: lambda r, f: nfs4.skip_bitmap(r),
    38: lambda r, f: r.skip(16), 53: lambda r, f: r.skip(36),
    55: lambda r, f: [r.number() for _ in range(r.number())],
    69: lambda r, f: r.skip(12), 72: lambda r, f: r.opaque(),
    73: lambda r, f: r.skip(20), 74: _list_xattrs,
    75: lambda r, f: r.skip(20),
    **dict.fromkeys((7, 8, 13, 15, 16, 17, 19, 22, 23, 24, 30, 31, 32, 36, 37,
                     39, 44, 45, 57, 58, 59, 62), lambda r, f: None)}


def harvest4(found, reader, own):
    """[(operation, status)] of a COMPOUND's answer, as far as results can be
    read.  Stateids go to OWN, too."""
    found.own = own
    reader.number()
    reader.opaque()
    seen, out = [], False
    for _ in range(reader.number()):
        operation, status = reader.number(), reader.number()
        seen.append((operation, status))
        out = out or operation in STEPS_OUT
        if status:
            break
        if operation == 10:
            handle = reader.opaque()
            if not out:
                found.handles[4].add(handle)
        elif operation in RESULTS:
            RESULTS[operation](reader, found)
        else:
            break
    return seen
