# SPDX-License-Identifier: LGPL-3.0-or-later
"""Keys, as Ganesha's parser hands them to us: every refusal with its message
and line, the ends of every range, and what the values do.

One start of a second Ganesha has dozens of exports: a bad one voids only
itself.
"""
import json
import os
import re
import subprocess
import time
from pathlib import Path

from lab_program import ceph
from nfs import nfs3, rpc
from nfs.xdr import opaque
import pytest
from fuse import Fuse
from lab import SECOND_PORT
from refusals import NO_EXPORT, VOID_BLOCK, WRONG_VALUE

SOCKETS = Path("/var/lib/casync-lab/ceph/run")
CONF = Path("/var/lib/casync-lab/ganesha/b/ganesha.conf")
SAMPLE = Path(__file__).parents[2] / "config" / "ceph_async.conf"
MIB = 1 << 20

# What is wrong in an export, and what is said of it.
REFUSED = [
    ("Stable_Write = sometimes", "one of data, fdatasync, full"),
    ("Stable_Write = 1", "one of data, fdatasync, full"),
    ("Stable_Metadata = always", "one of mds, journal"),
    ("Stable_Metadata = sent", "one of mds, journal"),
    ("Stable_Names = 1", "one of mds, journal"),
    ("Stable_Attributes = full", "one of mds, journal"),
    ("Promote_Unstable = perhaps", "one of true, false, yes, no, on, off"),
    ("Promote_Unstable = 1", "one of true, false, yes, no, on, off"),
    ("Max_Inflight = 0", "a number of requests from 1 to 1048576"),
    ("Max_Inflight = 1048577", "a number of requests from 1 to 1048576"),
    ("Max_Inflight = many", "a number of requests from 1 to 1048576"),
    ("Max_Inflight = -5", "a number of requests from 1 to 1048576"),
    ("Max_Inflight = ~5", "a number of requests from 1 to 1048576"),
    ("Max_Inflight = true", "a number of requests from 1 to 1048576"),
    ("Max_Inflight = /a/path", "a number of requests from 1 to 1048576"),
    ("Max_Inflight_Bytes = 1048575", "from 1048576 to 1099511627776"),
    ("Max_Inflight_Bytes = 1099511627777", "from 1048576 to 1099511627776"),
    ("Max_Read = 4095", "a number of bytes from 4096 to 67108864, or 0"),
    ("Max_Read = 67108865", "a number of bytes from 4096 to 67108864, or 0"),
    ("Max_Write = 4095", "a number of bytes from 4096 to 67108864, or 0"),
    ("Max_Write = 67108865", "a number of bytes from 4096 to 67108864, or 0"),
    ("Gather_Bytes = 4194305", "a number of bytes from 0 to 4194304"),
    ("Gather_Bytes = few", "a number of bytes from 0 to 4194304"),
    ("Object_Size = 65535", "from 65536 to 134217728, a multiple of 65536"),
    ("Object_Size = 98304", "from 65536 to 134217728, a multiple of 65536"),
    ("Object_Size = 134283264", "from 65536 to 134217728"),
    ("Stripe_Unit = 65537", "from 65536 to 134217728, a multiple of 65536"),
    ("Stripe_Unit = 134283264", "from 65536 to 134217728"),
    ("Stripe_Count = 1025", "a number of objects from 1 to 1024, or 0"),
    ("Stripe_Count = -1", "a number of objects from 1 to 1024, or 0"),
    (f'Data_Pool = "{"x" * 256}"', "a text of 0 to 255 characters"),
    ("Mount_Timeout = 0", "a number of seconds from 1 to 3600"),
    ("Mount_Timeout = 3601", "a number of seconds from 1 to 3600"),
    ("Session_Timeout = 29", "a number of seconds from 30 to 86400"),
    ("Session_Timeout = 86401", "a number of seconds from 30 to 86400"),
    ("Sign_Handles = 2", "one of true, false, yes, no, on, off"),
    ("Share_Client = never", "one of true, false, yes, no, on, off"),
    ("Reconnect = 2", "one of true, false, yes, no, on, off"),
    ("Reconnect = always", "one of true, false, yes, no, on, off"),
    ("Reconnect_Timeout = 604801", "of seconds from 1 to 604800, or 0"),
    ("Reconnect_Timeout = -1", "of seconds from 1 to 604800, or 0"),
    ("Reconnect_Timeout = never", "of seconds from 1 to 604800, or 0"),
    ("Drain_Timeout = 0", "a number of seconds from 1 to 3600"),
    ("Drain_Timeout = 3601", "a number of seconds from 1 to 3600"),
    ("Slow_Op_Warn = 3600001", "a number of milliseconds from 0 to 3600000"),
    ("Slow_Op_Warn = soon", "a number of milliseconds from 0 to 3600000"),
    ("Stats_Interval = 86401", "a number of seconds from 0 to 86400"),
    ("Stats_Interval = often", "a number of seconds from 0 to 86400"),
    (f'User_Id = "{"x" * 1025}"', "a text of 0 to 1024 characters"),
    (f'Filesystem = "{"x" * 256}"', "a text of 0 to 255 characters"),
    (f'Sec_Label_Xattr = "{"x" * 257}"', "a text of 0 to 256 characters"),
    ("Cmount_Path = relative", "a path that begins with /"),
    ('Ceph_Option = "client_cache_size"', '"name = value"'),
    ('Ceph_Option = "nosuch = 1"', "has no option 'nosuch'"),
    ('Ceph_Option = "client_cache_size = many"',
     "Ceph refuses the value of client_cache_size"),
    ('Ceph_Option = "client_oc = true"', "COMMIT"),
    ('Ceph_Option = "client acl type = x"', "posix_acl"),
    ('Ceph_Option = "client_permissions = false"', "checks access"),
    ('Ceph_Option = "client_force_lazyio = true"', "old data"),
    ('Ceph_Option = "client_use_faked_inos = true"', "file handles"),
    ('Ceph_Option = "client_mountpoint = /x"', "Cmount_Path"),
    ('Ceph_Option = "client_fs = x"', "Filesystem"),
    ('Ceph_Option = "client_mount_timeout = 5"', "Mount_Timeout"),
    ('Ceph_Option = "rados_osd_op_timeout = 5"', "after a later write"),
    ('Ceph_Option = "key = x"', "Secret_Access_Key"),
    ('Ceph_Option = "keyfile = x"', "Secret_Access_Key"),
]

# A secret may stand in the place of any of them.
TEXTS = {"Ceph_Option", "Cmount_Path", "Data_Pool", "Filesystem",
         "Sec_Label_Xattr", "User_Id"}

# Keys that do not go together.
CONTRADICTIONS = [
    ("Max_Inflight_Bytes = 1048576; Max_Read = 2097152;",
     "Max_Read = 2097152 with Max_Inflight_Bytes = 1048576"),
    ("Max_Inflight_Bytes = 1048576; Max_Write = 2097152;",
     "Max_Write = 2097152 with Max_Inflight_Bytes = 1048576"),
    ("Object_Size = 196608; Stripe_Unit = 131072;",
     "Object_Size = 196608 with Stripe_Unit = 131072"),
    ("Stripe_Unit = 8388608;",
     "Object_Size = 4194304 with Stripe_Unit = 8388608"),
]

ACCEPTED = [
    "Stable_Write = data; Promote_Unstable = yes;",
    "Stable_Write = FULL;", "stable_write = fdatasync;",
    "Stable_Metadata = journal;", "stable_metadata = Mds;",
    "Stable_Names = journal; Stable_Attributes = sent;",
    "Stable_Names = MDS; stable_attributes = Mds;",
    "Promote_Unstable = off;", "Max_Inflight = 1;", "Max_Inflight = 1048576;",
    "Max_Inflight = 0x10;", "Max_Inflight_Bytes = 1048576;",
    "Max_Inflight_Bytes = 1099511627776;", "Max_Read = 4096;",
    "Max_Read = 67108864; Max_Write = 67108864;", "Max_Write = 4096;",
    "Max_Read = 0; Max_Write = 0;", "Gather_Bytes = 0;",
    "Gather_Bytes = 4194304;", "Object_Size = 65536;",
    "Object_Size = 134217728;", "Object_Size = 0; Stripe_Unit = 0;",
    "Stripe_Unit = 65536;", "Stripe_Count = 1;", "Stripe_Count = 1024;",
    "Stripe_Unit = 134217728; Object_Size = 134217728;",
    'Data_Pool = "";', "Mount_Timeout = 1;", "Mount_Timeout = 3600;",
    "Session_Timeout = 30;", "Session_Timeout = 86400;",
    "Sign_Handles = no;", "Share_Client = no;", "Share_Client = true;",
    "Reconnect = no;", "Reconnect = true; Reconnect_Timeout = 1;",
    "Reconnect_Timeout = 604800;", "Reconnect = off; Reconnect_Timeout = 0;",
    "Drain_Timeout = 1;", "Drain_Timeout = 3600;", "Slow_Op_Warn = 0;",
    "Slow_Op_Warn = 3600000;",
    "Stats_Interval = 0;", "Stats_Interval = 86400;",
    'User_Id = "admin"; Filesystem = "cephfs"; Cmount_Path = "/";',
    'Sec_Label_Xattr = "user.label";',
]


def export(number, keys, path="/"):
    return (f'EXPORT {{ Export_Id = {number}; Path = "{path}"; '
            f'Pseudo = "/e{number}"; Protocols = 3,4; Access_Type = RW; '
            "Squash = none; SecType = sys; Transports = TCP; "
            f"FSAL {{ Name = CEPH_ASYNC; {keys} }} }}")


def line_of(number):
    """Where that export is in the file that lab has written."""
    for at, line in enumerate(CONF.read_text().splitlines(), 1):
        if f"Export_Id = {number};" in line:
            return at
    raise AssertionError(f"no export {number}")


def critical(log, start):
    return [line for line in log.matching(r":CRIT ?:")
            if line.partition(":CRIT :")[2].startswith(start)]


def test_refusals_name_file_line_key_value_and_range(cluster, till_end, second):
    till_end(cluster.expects(" is refused: ", *WRONG_VALUE))
    log = second(append=[export(100 + i, key + ";")
                         for i, (key, _) in enumerate(REFUSED)]).log
    wrong = []
    for i, (key, said) in enumerate(REFUSED):
        place = f"{CONF}:{line_of(100 + i)}: "
        lines = critical(log, place)
        name, _, value = key.replace('"', "").partition(" = ")
        if name in TEXTS:
            value = "(not shown)"
        if len(lines) != 1 or said not in lines[0] or \
                f"{place}{name} = {value[:256]} is refused: " not in lines[0]:
            wrong.append(f"{key}, wanted '{said}': {lines}")
    assert not wrong, "\n".join(wrong)
    assert cluster.exported("/second")
    for number in (100, 104, 100 + len(REFUSED) - 1):
        assert not cluster.exported(f"/e{number}")


def test_a_list_is_no_value_and_a_secret_is_not_shown(cluster, till_end,
                                                      second):
    till_end(cluster.expects(" is refused: ", *WRONG_VALUE))
    secret = "S" * 1025
    log = second(append=[
        export(100, "Max_Inflight = 5, 6;"),
        export(101, f'Secret_Access_Key = "{secret}";')]).log
    assert len(critical(log, f"{CONF}:{line_of(100)}: Max_Inflight = ")) == 2
    assert log.matching("Max_Inflight = 5 is refused: it must be one value")
    assert log.matching(r"Secret_Access_Key = \(not shown\) is refused: it "
                        "must be a text of 0 to 1024 characters")
    assert "SSSS" not in log.text()


AES256 = "AgAB9QNrpLhfNSAAHdBSWkcemtVIRe5dt/24f+hmVFAkA4pt/sRT1J1hNn8="


@pytest.mark.parametrize("follow, block, fsal", [
    (WRONG_VALUE, "", [
        f'Ceph_Option = "key = {AES256}";', f'Ceph_Option = "{AES256}";',
        f'Data_Pool = "{AES256 * 5}";']),
    (VOID_BLOCK, f'Ceph_Conf = "{AES256}"; Handle_Keys = "{"5a" * 32}";', []),
])
def test_no_text_that_is_refused_is_in_the_log(cluster, till_end, second,
                                               follow, block, fsal):
    """A secret in the place of another text is not logged."""
    till_end(cluster.expects(" is refused: ", *follow))
    log = second(block=block, check=False, append=[
        export(100 + i, keys) for i, keys in enumerate(fsal)]).log
    assert len(log.matching(r"= \(not shown\) is refused: ")) >= 2
    assert AES256[:20].lower() not in log.text().lower()
    assert "5a5a5a" not in log.text()


def test_contradictions_are_refused_with_the_reason(cluster, till_end, second):
    till_end(cluster.expects("this block is refused: ", *WRONG_VALUE))
    log = second(append=[export(100 + i, keys)
                         for i, (keys, _) in enumerate(CONTRADICTIONS)]).log
    for i, (keys, said) in enumerate(CONTRADICTIONS):
        place = f"{CONF}:{line_of(100 + i)}: this block is refused: "
        lines = critical(log, place)
        assert len(lines) == 1 and said in lines[0], (keys, lines)
        assert not cluster.exported(f"/e{100 + i}")


@pytest.mark.parametrize("keys, said", [
    ("Umask = 01000;", "Umask = 01000 is refused: it must be an octal"),
    ("Umask = rw;", "Umask = rw is refused: it must be an octal number"),
    ("Client_OC = maybe;", "it must be one of true, false, yes"),
    ("Zerocopy = 2;", "it must be one of true, false, yes"),
    ("Use_Old_Uuid = 2;", "it must be one of true, false, yes"),
    ("Register_Service = 2;", "it must be one of true, false, yes"),
    ("Reconnect = maybe;", "it must be one of true, false, yes"),
    ("Reconnect_Timeout = 604801;", "of seconds from 1 to 604800, or 0"),
    ("Max_Inflight_Total = 255;", "a number of requests from 256 to 16777216"),
    ("Max_Inflight_Bytes_Total = 1048576;",
     "a number of bytes from 67108864 to 1099511627776"),
    ('NodeId = "";', "it must be a text of 1 to 4096 characters"),
    ("Ceph_Conf = ceph.conf;", "it must be a path that begins with /"),
    ("Handle_Keys = handle-keys;", "it must be a path that begins with /, or "
     "rados://POOL/NAMESPACE/OBJECT"),
    ("Metrics_File = metrics.prom;", "it must be a path that begins with /"),
    ("Object_Size = 196608; Stripe_Unit = 131072;",
     "Object_Size = 196608 with Stripe_Unit = 131072"),
    ('Ceph_Option = "nosuch = 1";', "has no option 'nosuch'"),
])
def test_the_block(cluster, till_end, second, keys, said):
    """What is wrong there voids all exports of this FSAL."""
    till_end(cluster.expects(" is refused: ", *VOID_BLOCK))
    log = second(fsal="CEPH", append=[f"CEPH_ASYNC {{ {keys} }}",
                                      export(100, "")]).log
    lines = [line for line in critical(log, f"{CONF}:") if said in line]
    assert len(lines) == 1, log.text()
    assert not cluster.exported("/e100")


def test_an_error_of_another_fsal_is_not_ours(cluster, till_end, second):
    """An export of FSAL CEPH that fails first leaves ours alone."""
    till_end(cluster.expects(
        "Unable to init Ceph handle : Permission denied",
        "create_export on underlying FSAL Ceph", *NO_EXPORT[1:]))
    second(fsal="CEPH", append=[
        'EXPORT { Export_Id = 99; Path = "/"; Pseudo = "/e99"; '
        "Protocols = 4; Access_Type = RW; FSAL { Name = CEPH; "
        'User_Id = "nosuch"; } }', export(100, "")])
    assert not cluster.exported("/e99")
    assert cluster.exported("/e100")


def test_what_is_in_range_is_served(cluster, second):
    second(append=[export(100 + i, keys) for i, keys in enumerate(ACCEPTED)],
           block='Umask = 022; Ceph_Option = "client_cache_size = 5000"; '
                 "Use_Old_Uuid = on; Async = yes; Client_OC = no; "
                 'NodeId = "n"; Max_Inflight = 77;')
    closed = [keys for i, keys in enumerate(ACCEPTED)
              if not cluster.exported(f"/e{100 + i}")]
    assert not closed


@pytest.fixture
def handle_keys():
    """The file that the reference sample names."""
    path = Path("/etc/ganesha/handle-keys")
    path.touch(mode=0o600)
    path.write_text(f"{'5a' * 32}\n")
    yield
    path.unlink()


def test_the_reference_sample(cluster, second, tmp_path, handle_keys):
    """As it is, and with every key's # taken away."""
    text = SAMPLE.read_text()
    every = re.sub(r"(?m)^(\t+)# (\w+ = [^;\n]+;)$", r"\1\2", text)
    assert every.count("\n\t\t") > 5 and "\tStable_Write = data;" in every
    # The lab's ports and recovery folder; the rest is the file's.
    result = second()
    core = CONF.read_text()
    core = core[core.index("NFS_CORE_PARAM"):core.index("EXPORT {")]
    for sample in (text, every):
        conf = tmp_path / "ganesha.conf"
        conf.write_text(core + sample[sample.index("CEPH_ASYNC {"):])
        cluster.run("ganesha", "restart", "--name", "b", "--pseudo",
                    "/cephfs", "--conf", conf)
        assert cluster.exported("/cephfs"), result.log.text()


# --- what the values do

def inode_of(handle):
    """Of the 24 bytes that are ours, behind five of Ganesha."""
    return int.from_bytes(handle[5:13], "little")


@pytest.fixture
def history(cluster):
    """The OSD remembers every op of the test, not the 20 slowest."""
    osd = str(SOCKETS / "osd.0.asok")
    before = json.loads(ceph("daemon", osd, "config", "get",
                             "osd_op_history_size"))["osd_op_history_size"]
    ceph("daemon", osd, "config", "set", "osd_op_history_size", "5000")
    yield
    ceph("daemon", osd, "config", "set", "osd_op_history_size", before)


def written(inode, offset_and_length=r"\d+~\d+"):
    """OSD writes of that inode that the OSDs remember, in their order."""
    done = subprocess.run(
        ["ceph", "daemon", str(SOCKETS / "osd.0.asok"), "dump_historic_ops"],
        check=True, stdout=subprocess.PIPE, timeout=60)
    ops = sorted((op["initiated_at"], op["description"])
                 for op in json.loads(done.stdout)["ops"])
    pattern = rf":{inode:x}\.([0-9a-f]+):head .*\[write ({offset_and_length})"
    return [match.groups() for _, description in ops
            if (match := re.search(pattern, description))]


def pieces_of(inode, size):
    """Its writes, once their bytes are all there: an OSD tells of an op a
    moment after it has answered."""
    end = time.monotonic() + 10
    while True:
        pieces = written(inode, r"\d{2,}~\d+|0~\d{2,}")
        if sum(int(at.partition("~")[2]) for _, at in pieces) >= size or \
                time.monotonic() > end:
            return pieces
        time.sleep(0.1)


def osd_writes():
    done = subprocess.run(
        ["ceph", "daemon", str(SOCKETS / "osd.0.asok"), "perf", "dump",
         "osd"], check=True, stdout=subprocess.PIPE, timeout=60)
    osd = json.loads(done.stdout)["osd"]
    return osd["op_w"], osd["op_w_in_bytes"]


def sizes(connection, root):
    """FSINFO: largest READ and WRITE."""
    reply = nfs3.call(connection, nfs3.FSINFO, opaque(root))
    nfs3.optional_attributes(reply)
    read, _, _, write = (reply.number() for _ in range(4))
    return read, write


def write(connection, handle, offset, data):
    nfs3.write(connection, handle, offset, data, seconds=60)


class Mounted:
    def __init__(self, number):
        self.root = nfs3.root_of(f"/e{number}", SECOND_PORT + 1)
        self.connection = rpc.Concurrent(SECOND_PORT)

    def create(self, name, directory=None):
        return nfs3.create(self.connection, directory or self.root, name)


def test_sizes_are_advertised(cluster, till_end, second):
    """The block's too: with a smaller limit of the export they disagree."""
    till_end(cluster.expects(
        "Max_Read = 8388608 with Max_Inflight_Bytes = 3145728", *WRONG_VALUE))
    second(append=[export(100, ""),
                   export(101, "Max_Read = 2097152; Max_Write = 4096;"),
                   export(102, "Max_Inflight_Bytes = 3145728;"),
                   export(103, "Max_Write = 33554432;")],
           block="Max_Read = 8388608;")
    for number, wanted in ((100, (8 * MIB, 64 * MIB)),
                           (101, (2 * MIB, 4096)), (103, (8 * MIB, 32 * MIB))):
        mounted = Mounted(number)
        assert sizes(mounted.connection, mounted.root) == wanted, number
        mounted.connection.close()
    assert not cluster.exported("/e102")


@pytest.mark.parametrize("mib", (1, 4, 16, 64))
def test_a_write_reaches_rados_in_one_piece(second, history, record, mib):
    """One NFS WRITE is one OSD write where one object holds it."""
    second(append=[export(100, "Object_Size = 67108864;")])
    mounted = Mounted(100)
    handle = mounted.create(f"piece-{mib}-{time.time_ns()}")
    write(mounted.connection, handle, 0, b"x")   # asks for the pool once
    ops, size = osd_writes()
    write(mounted.connection, handle, 0, os.urandom(mib * MIB))
    ops_after, size_after = osd_writes()
    pieces = pieces_of(inode_of(handle), mib * MIB)
    record(f"a WRITE of {mib} MiB: {len(pieces)} OSD write of that size; the "
           f"OSD counts {ops_after - ops} writes, {size_after - size} bytes")
    mounted.connection.close()
    assert pieces == [("00000000", f"0~{mib * MIB}")]
    # The MDS may have written a little in between.
    assert 0 <= size_after - size - mib * MIB < 65536


def test_what_the_linux_client_sends(cluster, second, history, record):
    """It asks for 1 MiB at most; an aligned one is one OSD write."""
    second(block="Max_Write = 4194304;")
    name = f"linux-{time.time_ns()}"
    said = cluster.client(
        "sh", "-c", "grep -o 'wsize=[0-9]*' /proc/mounts; dd if=/dev/zero "
        f"of=/mnt/nfs/{name} bs=4M count=1 oflag=direct conv=notrunc; "
        f"stat -c inode=%i /mnt/nfs/{name}", name="b")
    wsize = int(re.search(r"wsize=(\d+)", said)[1])
    inode = int(re.search(r"inode=(\d+)", said)[1])
    pieces = sorted(int(at.split("~")[0])
                    for _, at in pieces_of(inode, 4 * MIB))
    record(f"Linux client: wsize {wsize}, 4 MiB become writes at {pieces}")
    assert pieces == list(range(0, 4 * MIB, wsize))


@pytest.fixture(scope="module")
def fuse(cluster):
    client = Fuse()
    yield client
    client.end()


def layout(fuse, name):
    """ceph.file.layout, as another client of CephFS sees it."""
    text = os.getxattr(fuse.folder / name, "ceph.file.layout").decode()
    return dict(part.split("=") for part in text.split())


def test_layout_of_new_files(second, fuse):
    second(append=[
        export(100, ""), export(101, "Object_Size = 33554432;"),
        export(102, "Stripe_Unit = 65536; Stripe_Count = 3; "
                    "Object_Size = 1048576;"),
        export(103, "Stripe_Count = 2;")])
    wanted = {100: (4 * MIB, 1, 4 * MIB), 101: (32 * MIB, 1, 32 * MIB),
              102: (65536, 3, MIB), 103: (4 * MIB, 2, 4 * MIB)}
    for number, (unit, count, size) in wanted.items():
        mounted = Mounted(number)
        name = f"layout-{number}-{time.time_ns()}"
        handle = mounted.create(name)
        data = os.urandom(2 * MIB + 5)
        write(mounted.connection, handle, 0, data)
        got = layout(fuse, name)
        assert (int(got["stripe_unit"]), int(got["stripe_count"]),
                int(got["object_size"])) == (unit, count, size), number
        assert (fuse.folder / name).read_bytes() == data
        assert nfs3.read(mounted.connection, handle, 0, len(data)) == data
        mounted.connection.close()


def test_a_folder_with_a_layout_keeps_it(second, fuse):
    """Its own, and what the ones below inherit."""
    top = f"own-{time.time_ns()}"
    (fuse.folder / top / "below").mkdir(parents=True)
    plain = f"plain-{time.time_ns()}"
    (fuse.folder / plain).mkdir()
    os.setxattr(fuse.folder / top, "ceph.dir.layout.object_size", b"8388608")
    same = f"same-{time.time_ns()}"
    (fuse.folder / same).mkdir()
    os.setxattr(fuse.folder / same, "ceph.dir.layout.stripe_count", b"1")
    paths = {100: f"/{top}", 101: f"/{top}/below", 102: f"/{plain}",
             103: f"/{same}"}
    second(append=[export(number, "Object_Size = 33554432;", path)
                   for number, path in paths.items()])
    for number, size in ((100, 8 * MIB), (101, 8 * MIB), (102, 32 * MIB),
                         (103, 4 * MIB)):
        mounted = Mounted(number)
        mounted.create("file")
        mounted.connection.close()
        got = layout(fuse, f"{paths[number][1:]}/file")
        assert int(got["object_size"]) == size, paths[number]
    with pytest.raises(OSError):
        os.getxattr(fuse.folder / plain, "ceph.dir.layout")


@pytest.fixture(scope="module")
def pools(cluster):
    """One more data pool of the file system, and one that is none."""
    for name in ("second_pool", "foreign_pool"):
        ceph("osd", "pool", "create", name, "8")
    known = json.loads(ceph("fs", "ls", "--format", "json"))[0]["data_pools"]
    if "second_pool" not in known:
        ceph("fs", "add_data_pool", "cephfs", "second_pool")
    ceph("osd", "pool", "application", "enable", "foreign_pool", "rados")


def test_data_pool(cluster, till_end, second, fuse, pools):
    till_end(cluster.expects(
        "export 101: Data_Pool 'nosuch'",
        "export 102: files cannot be created", *NO_EXPORT))
    log = second(append=[
        export(100, "Data_Pool = second_pool;"),
        export(101, "Data_Pool = nosuch;"),
        export(102, "Data_Pool = foreign_pool;")]).log
    mounted = Mounted(100)
    name = f"pool-{time.time_ns()}"
    handle = mounted.create(name)
    write(mounted.connection, handle, 0, b"x" * 100000)
    mounted.connection.close()
    assert layout(fuse, name)["pool"] == "second_pool"
    objects = subprocess.run(["rados", "-p", "second_pool", "ls"], check=True,
                             stdout=subprocess.PIPE, timeout=60).stdout
    assert f"{inode_of(handle):x}.00000000" in objects.decode()

    assert len(critical(log, "export 101: Data_Pool 'nosuch': Ceph has no "
                             "pool of that name")) == 1
    assert not cluster.exported("/e101")

    mounted = Mounted(102)
    name = f"foreign-{time.time_ns()}"
    for _ in range(3):
        with pytest.raises(nfs3.Refused):
            mounted.create(name)
    mounted.connection.close()
    assert not (fuse.folder / name).exists(), "an unfinished create stays"
    lines = critical(log, "export 102: files cannot be created")
    assert len(lines) == 1, "one line a minute"
    assert "add_data_pool" in lines[0]


def test_a_user_who_may_not_set_layouts(cluster, till_end, second, fuse):
    till_end(cluster.expects("export 100: files cannot be created"))
    ceph("fs", "authorize", "cephfs", "client.nolayout", "/", "rw")
    key = ceph("auth", "print-key", "client.nolayout").strip()
    log = second(append=[export(
        100, f'User_Id = nolayout; Secret_Access_Key = "{key}"; '
             "Object_Size = 8388608;")]).log
    mounted = Mounted(100)
    name = f"nolayout-{time.time_ns()}"
    with pytest.raises(nfs3.Refused):
        mounted.create(name)
    mounted.connection.close()
    lines = critical(log, "export 100: files cannot be created")
    assert len(lines) == 1 and "capability p" in lines[0], log.text()
    assert not (fuse.folder / name).exists()


def option(pid, name):
    """What the one mount of that Ganesha has."""
    found = list(SOCKETS.glob(f"client.admin.{pid}.*.asok"))
    assert len(found) == 1, found
    return json.loads(ceph("--admin-daemon", str(found[0]), "config", "get",
                           name))[name]


def test_options_reach_the_client(second):
    """The block's, the export's, the last one of a name; over the default
    that the plugin has."""
    options = ('Ceph_Option = "client_cache_size = 7000", '
               '"client_readahead_max_bytes = 1048576"; '
               'Ceph_Option = "debug client = 0/5"; ')
    result = second(block=options + 'Ceph_Option = "client_cache_size=8000";')
    assert option(result.pid, "client_cache_size") == "8000"
    assert option(result.pid, "client_readahead_max_bytes") == "1048576"
    assert option(result.pid, "debug_client") == "0/5"


def test_options_of_a_shared_mount_must_agree(cluster, till_end, second):
    till_end(cluster.expects(
        "export 101: Ceph_Option: not the options of export 100", *NO_EXPORT))
    shared = 'Cmount_Path = "/"; '
    cached = 'Ceph_Option = "client_cache_size = 7000";'
    log = second(fsal="CEPH", append=[
        export(100, shared + cached), export(101, shared),
        export(102, shared + cached)]).log
    assert len(critical(log, "export 101: Ceph_Option: not the options of "
                             "export 100, which shares the mount")) == 1
    assert cluster.exported("/e100")
    assert not cluster.exported("/e101")
    assert cluster.exported("/e102")
