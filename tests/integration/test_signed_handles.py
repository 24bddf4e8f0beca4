# SPDX-License-Identifier: LGPL-3.0-or-later
"""Sign_Handles: a handle is taken only from whom a gateway of ours gave it, for
the export that it was given for, and the MDS is not asked about any other."""
import hmac
import json
import os
import re
import secrets
import time
from pathlib import Path

from lab import SECOND_PORT
from lab_program import ceph
from nfs import nfs3, nfs4, rpc
import pytest
from refusals import NO_BLOCK, NO_EXPORT, REREAD
from test_every_key import CONF, critical, export

SOCKETS = Path("/var/lib/casync-lab/ceph/run")
KEYS = CONF.parent / "handle-keys"
STALE = 70              # RFC 1813, 2.6; NFS4ERR_STALE is the same number
HEAD, PLAIN, SIGNED = 5, 24, 40     # Ganesha's bytes, ours, ours signed
READ = "Handle_Keys = .*: the first of"
SAYS_SO = "sent a file handle without our signature"
DATA = b"only through its own export\n" * 100


def write_keys(*keys, mode=0o600):
    KEYS.parent.mkdir(parents=True, exist_ok=True)
    KEYS.touch(mode=0o600)
    KEYS.chmod(0o600)
    KEYS.write_text("".join(f"{key}\n" for key in keys))
    KEYS.chmod(mode)


@pytest.fixture
def key():
    """One key, in the file."""
    one = secrets.token_hex(32)
    write_keys(one)
    return one


class Export:
    def __init__(self, number):
        self.conn = rpc.Connection(SECOND_PORT)
        self.root = nfs3.root_of(f"/e{number}", SECOND_PORT + 1)


@pytest.fixture
def signing(cluster, second, key):
    """Two folders, an export each, with one user: 100 and 101 sign, 102 is
    the folder of 101 and does not."""
    cluster.client("mkdir", "-p", "/mnt/nfs/signed/a", "/mnt/nfs/signed/b")
    return second(append=[export(100, "Sign_Handles = true;", "/signed/a"),
                          export(101, "Sign_Handles = true;", "/signed/b"),
                          export(102, "", "/signed/b")],
                  block=f'Handle_Keys = "{KEYS}";')


def file_in(where):
    handle = nfs3.create(where.conn, where.root, f"f{time.time_ns()}")
    nfs3.write(where.conn, handle, 0, DATA)
    return handle


def ours(handle):
    """Where FSAL's bytes are: behind version, flags, export, length."""
    return bytes(handle[HEAD:HEAD + handle[HEAD - 1]])


def made_of(handle, fsal_bytes, number=None):
    """A handle of other bytes, with a right length; of another export."""
    head = bytearray(handle[:HEAD])
    head[HEAD - 1] = len(fsal_bytes)
    if number is not None:
        head[2:4] = number.to_bytes(2, "big")
    whole = bytes(head) + fsal_bytes
    return whole + bytes(-len(whole) % 4)


def status_of(conn, handle):
    try:
        assert nfs3.read_all(conn, handle) == DATA
        return 0
    except nfs3.Refused as refused:
        return refused.status


def mds_requests():
    mds = next(SOCKETS.glob("mds.*.asok"))
    return json.loads(ceph("daemon", str(mds), "perf", "dump",
                           "mds_server"))["mds_server"][
                               "handle_client_request"]


def test_signature_is_what_the_documents_say(signing, key):
    """HMAC-SHA256 of 24 bytes and the export's number, 16 bytes of it."""
    handle = file_in(Export(100))
    data = ours(handle)
    assert len(data) == SIGNED
    expected = hmac.new(bytes.fromhex(key), data[:PLAIN] +
                        (100).to_bytes(2, "little"), "sha256").digest()
    assert data[PLAIN:] == expected[:16]
    # NFSv4 gives the same.
    v4 = nfs4.handle_of(rpc.Connection(SECOND_PORT), "/e100")
    assert ours(v4) == ours(Export(100).root)


def test_neighbour_is_out_of_reach(cluster, signing):
    """With the handle of its file, which a client of another export knows."""
    a, b = Export(100), Export(101)
    handle = file_in(b)
    data = ours(handle)
    assert status_of(b.conn, handle) == 0
    assert status_of(a.conn, made_of(handle, data, 100)) == STALE
    assert status_of(a.conn, made_of(handle, data[:PLAIN], 100)) == STALE
    # The plugin without Sign_Handles, as FSAL_CEPH: one user, one realm.
    outside = made_of(file_in(a), ours(file_in(a))[:PLAIN], 102)
    assert nfs3.get_attributes(b.conn, outside).fileid


def test_altered_and_made_up_handles_do_not_reach_the_mds(cluster, signing,
                                                          record):
    where = Export(100)
    handle = file_in(where)
    data = ours(handle)
    wrong = [made_of(handle, bytes(byte ^ (1 << bit % 8) if at == bit // 8
                                   else byte for at, byte in enumerate(data)))
             for bit in range(8 * SIGNED)]
    # Inodes that exist, of which Ganesha has nothing in its cache, and none.
    ino = int.from_bytes(data[:8], "little")
    wrong += [made_of(handle, (ino + n).to_bytes(8, "little") + data[8:])
              for n in range(1, 200)]
    wrong += [made_of(handle, data[:PLAIN] + secrets.token_bytes(16))
              for _ in range(200)]
    wrong += [made_of(handle, data[:length]) for length in range(1, SIGNED)]
    wrong += [made_of(handle, data + bytes(n)) for n in (1, 8, 19)]
    before = mds_requests()
    seen = {}
    for one in wrong:
        for call, more in ((nfs3.get_attributes, ()), (nfs3.lookup, ("x",))):
            with pytest.raises(nfs3.Refused) as refused:
                call(where.conn, one, *more)
            seen[refused.value.status] = seen.get(refused.value.status, 0) + 1
    asked = mds_requests() - before
    record(f"signed handles: {2 * len(wrong)} requests with wrong ones: "
           f"{seen}; the MDS was asked {asked} times")
    assert set(seen) == {STALE}
    assert asked == 0
    assert status_of(where.conn, handle) == 0


def test_v4_says_stale_too(signing):
    conn = rpc.Connection(SECOND_PORT)
    root = nfs4.handle_of(conn, "/e100")
    forged = root[:-1] + bytes([root[-1] ^ 1])
    assert nfs4.get_change(conn, root)
    with pytest.raises(rpc.Refused, match=str(STALE)):
        nfs4.get_change(conn, forged)


def test_one_line_a_minute_names_client_and_way_out(signing):
    where = Export(100)
    handle = file_in(where)
    for _ in range(50):
        forged = made_of(handle, secrets.token_bytes(SIGNED))
        assert status_of(where.conn, forged) == STALE
    lines = signing.log.matching(SAYS_SO)
    assert len(lines) == 1, lines
    assert "export 100: client " in lines[0] and "127.0.0.1" in lines[0]
    assert "has to mount again" in lines[0]


def test_rotation_without_a_pause(cluster, signing, key):
    """The steps of docs/security.md, each with a reload."""
    new = secrets.token_hex(32)
    where = Export(100)
    old_handle = file_in(where)

    def rotate(*keys):
        before = len(signing.log.matching(READ))
        write_keys(*keys)
        cluster.run("ganesha", "reload", "--name", "b")
        deadline = time.monotonic() + 20
        while len(signing.log.matching(READ)) == before:
            assert time.monotonic() < deadline, signing.log.text()
            time.sleep(0.2)
        assert signing.log.matching(f"the first of {len(keys)} keys signs")

    rotate(key, new)
    assert ours(Export(100).root) == ours(where.root)
    rotate(new, key)
    assert ours(Export(100).root) != ours(where.root)
    assert status_of(where.conn, old_handle) == 0
    new_handle = file_in(Export(100))
    rotate(new)
    assert status_of(where.conn, new_handle) == 0
    assert status_of(where.conn, old_handle) == STALE


def test_reload_with_a_bad_file_changes_nothing(cluster, signing, key,
                                                till_end):
    till_end(cluster.expects("Handle_Keys = .* is refused", "reload refused",
                             REREAD))
    where = Export(100)
    handle = file_in(where)
    write_keys("no key")
    cluster.run("ganesha", "reload", "--name", "b")
    deadline = time.monotonic() + 20
    while not signing.log.matching("all old values and handle keys stay"):
        assert time.monotonic() < deadline, signing.log.text()
        time.sleep(0.2)
    assert signing.log.matching(
        rf"Handle_Keys = {re.escape(str(KEYS))} is refused: line 1 is no key")
    assert status_of(where.conn, handle) == 0
    assert status_of(where.conn, file_in(where)) == 0


def test_handles_survive_a_restart_and_turning_it_off(cluster, second, key,
                                                      signing):
    """After a restart the same key makes the same signatures.  Without
    Sign_Handles signed handles are as good as others: a way back."""
    where = Export(100)
    handle = file_in(where)
    cluster.stop_second()
    second(append=[export(100, "Sign_Handles = true;", "/signed/a")],
           block=f'Handle_Keys = "{KEYS}";')
    conn = rpc.Connection(SECOND_PORT)
    assert status_of(conn, handle) == 0
    cluster.stop_second()
    second(append=[export(100, "", "/signed/a")])
    conn = rpc.Connection(SECOND_PORT)
    assert status_of(conn, handle) == 0
    assert len(ours(Export(100).root)) == PLAIN


@pytest.mark.parametrize("vers", ["3", "4.2"])
def test_kernel_client_works(cluster, second, key, vers):
    """A folder, a rename, an open file that is removed."""
    second(export="Sign_Handles = true;", block=f'Handle_Keys = "{KEYS}";')
    cluster.client("sh", "-ec", f"""
        mkdir -p /mnt/nfs/signed/v{vers}; cd /mnt/nfs/signed/v{vers}
        head -c 3000000 /dev/urandom > one; cp one two; mv two three
        cmp one three; exec 3< three; rm three
        cmp one /proc/self/fd/3; exec 3<&-; mkdir sub; ls -la . sub
        cd ..; rm -r v{vers}""",
                   vers=vers, name="b")


@pytest.mark.parametrize("text, mode, said", [
    (None, 0o600, "No such file or directory"),
    ("", 0o600, "it has no key"),
    ("0" * 63, 0o600, "line 1 is no key"),
    ("0" * 64, 0o640, "chmod 600"),
])
def test_bad_key_files_void_the_block(cluster, till_end, second, text, mode,
                                      said):
    till_end(cluster.expects("is refused: ", *NO_BLOCK))
    write_keys(text or "", mode=mode)
    if text is None:
        os.unlink(KEYS)
    log = second(fsal="CEPH", block="", append=[
        f'CEPH_ASYNC {{ Handle_Keys = "{KEYS}"; }}', export(100, "")]).log
    lines = critical(log, f"Handle_Keys = {KEYS} is refused: ")
    assert len(lines) == 1 and said in lines[0], log.text()
    assert not cluster.exported("/e100")


def test_sign_handles_without_keys_is_refused(cluster, till_end, second):
    till_end(cluster.expects("is refused: ", *NO_EXPORT))
    log = second(append=[export(100, "Sign_Handles = true;"),
                         export(101, "")]).log
    assert log.matching("export 100: Sign_Handles = true is refused: there "
                        r"are no keys; set Handle_Keys in CEPH_ASYNC \{ \}")
    assert not cluster.exported("/e100")
    assert cluster.exported("/e101")
