# SPDX-License-Identifier: LGPL-3.0-or-later
"""What reporters of field bugs did, where the steps are of the protocol or of
the host, and no kernel client is needed for them.

Each function is a row of docs/comparison.md.  It starts a Ganesha of the FSAL
that is asked for, raises what was wrong, and returns a note.
"""
import contextlib
import ctypes
import errno
import itertools
import json
import os
import random
import signal
import subprocess
import threading
import time
from pathlib import Path

from lab import SECOND_PORT, SECOND_PSEUDO
from lab_program import LOGS, Log, ceph, stat, until
from nfs import nfs3, nfs4, rpc
from test_delegations import EXPORT, NFSV4, Beside, delegated, recalled

RPCBIND = Path("/var/lib/casync-lab/services/rpcbind")  # its process id
SERVED_S = 20
NAMES = itertools.count(time.time_ns())


@contextlib.contextmanager
def second(cluster, fsal, **options):
    """Ganesha "b"; it must have lived to the end."""
    said = cluster.start_second(fsal=fsal, **options)
    try:
        yield said
        assert stat()["ganesha"]["b"]["pid"] == said.pid, "Ganesha ended"
    finally:
        if fsal == "CEPH":          # it may hang
            cluster.run("ganesha", "kill9", "--name", "b", check=False)
            cluster.evict_all_but_a()
        cluster.stop_second()


# --- nfs-ganesha 1387: READs of NFSv3, by libnfs from Python

PATTERN = bytes(n % 251 + 1 for n in range(251 * 800))
MOST = 160 << 10
LOAD_S, WORKERS, SHARED = 4, 8, 6


class Libnfs:
    """libnfs 5, as much of it as is needed; a client of its own each."""

    library = None

    def __init__(self, url):
        self.library = ctypes.CDLL("libnfs.so.14")
        for name in ("nfs_init_context", "nfs_parse_url_dir",
                     "nfs_get_error"):
            getattr(self.library, name).restype = ctypes.c_void_p
        self.nfs = ctypes.c_void_p(self.library.nfs_init_context())
        parsed = self.library.nfs_parse_url_dir(self.nfs, url.encode())
        assert parsed, url
        server, path = ctypes.cast(
            parsed, ctypes.POINTER(ctypes.c_char_p * 2))[0]
        self.call("mount", server, path)

    def call(self, name, *arguments):
        """Its result; OSError for a negative one."""
        result = getattr(self.library, f"nfs_{name}")(self.nfs, *arguments)
        if result < 0:
            raise OSError(-result, f"libnfs {name}")
        return result

    @contextlib.contextmanager
    def opened(self, path):
        file = ctypes.c_void_p()
        self.call("open", path.encode(), os.O_RDWR | os.O_CREAT,
                  ctypes.byref(file))
        try:
            yield file
        finally:
            with contextlib.suppress(OSError):
                self.call("close", file)

    def read(self, file, offset, count):
        buffer = ctypes.create_string_buffer(count + 1)
        got = self.call("pread", file, ctypes.c_uint64(offset),
                        ctypes.c_uint64(count), buffer)
        return buffer.raw[:got]

    def write(self, file, offset, data):
        return self.call("pwrite", file, ctypes.c_uint64(offset),
                         ctypes.c_uint64(len(data)), data)

    def truncate(self, path, size):
        self.call("truncate", path.encode(), ctypes.c_uint64(size))

    def unlink(self, path):
        self.call("unlink", path.encode())

    def end(self):
        self.library.nfs_destroy_context(self.nfs)


class LibnfsWorker(threading.Thread):
    """Opens, writes, reads, cuts and removes files that others use as well.
    A byte is what belongs at its place, or 0."""

    def __init__(self, folder, seed):
        super().__init__(daemon=True)
        self.folder, self.random = folder, random.Random(seed)
        self.end = time.monotonic() + LOAD_S
        self.reads = self.short = self.gone = 0
        self.wrong = None

    def run(self):
        try:
            client = Libnfs(
                f"nfs://127.0.0.1{SECOND_PSEUDO}?version=3"
                f"&nfsport={SECOND_PORT}&mountport={SECOND_PORT + 1}")
            while time.monotonic() < self.end:
                try:
                    self._round(client)
                except OSError as err:
                    # Of a file that another one has removed.
                    if err.errno not in (errno.ENOENT, errno.ESTALE):
                        raise
                    self.gone += 1
            client.end()
        except (OSError, AssertionError) as err:
            self.wrong = repr(err)

    def _round(self, client):
        path = f"/{self.folder}/{self.random.randrange(SHARED)}"
        with client.opened(path) as file:
            for _ in range(6):
                offset = self.random.randrange(MOST)
                count = self.random.choice((0, 1, 4096, 65536, MOST))
                if self.random.random() < .3:
                    client.write(file, offset,
                                 PATTERN[offset:][:min(count, 8192)])
                else:
                    self._look(client.read(file, offset, count), offset,
                               count)
        if self.random.random() < .2:
            client.truncate(path, self.random.randrange(MOST))
        if self.random.random() < .25:
            client.unlink(path)

    def _look(self, data, offset, count):
        self.reads += 1
        self.short += len(data) < count
        wanted = PATTERN[offset:offset + len(data)]
        assert len(data) <= count
        if data != wanted:
            assert all(byte in (0, good) for byte, good in zip(data, wanted))


def ganesha_1387(cluster, fsal, block=""):
    """Many clients of libnfs at once."""
    with second(cluster, fsal, block=block):
        folder = f"libnfs-{next(NAMES)}"
        root = nfs3.root_of(SECOND_PSEUDO, SECOND_PORT + 1)
        connection = rpc.Concurrent(SECOND_PORT)
        nfs3.make_directory(connection, root, folder, mode=0o777)
        connection.close()
        workers = [LibnfsWorker(folder, seed) for seed in range(WORKERS)]
        for worker in workers:
            worker.start()
        end = time.monotonic() + LOAD_S + 20
        for worker in workers:
            worker.join(max(0, end - time.monotonic()))
        assert not any(worker.is_alive() for worker in workers), "it hangs"
        wrong = [worker.wrong for worker in workers if worker.wrong]
        assert not wrong, wrong
        reads, short, gone = (sum(getattr(worker, what) for worker in workers)
                              for what in ("reads", "short", "gone"))
        assert reads > 200 and short > 20 and gone > 2
    return f"{reads} READs, {short} short ones, {gone} of removed files"


# --- nfs-ganesha 1390: what a second client does beside a delegation

NO_RECALL_S = 2
CHANGES = {
    "chmod": lambda other, name, handle: other.set(handle, mode=0o600),
    "size": lambda other, name, handle: other.set(handle, size=2),
    "unlink": lambda other, name, handle: other.remove(name),
    "rename": lambda other, name, handle: other.rename(
        other.root, name, other.root, f"{name}-new"),
    "rename over": lambda other, name, handle: other.rename(
        other.root, f"{name}-source", other.root, name),
    "link": lambda other, name, handle: other.link(handle, f"{name}-link"),
}


def ganesha_1390(cluster, fsal, block=""):
    """Each change by a second client waits for the delegation's return.  With
    a lock of the holder's there is no recall (docs/limits.md)."""
    with second(cluster, fsal, block=block, nfsv4=NFSV4,
                export_block=EXPORT):
        holder, other = (nfs4.Client(SECOND_PORT, f"{who}-{next(NAMES)}")
                         for who in ("holder", "other"))
        for kind, access in ((nfs4.READ_DELEG, nfs4.READ),
                             (nfs4.WRITE_DELEG, nfs4.BOTH)):
            for change in CHANGES.values():
                beside_a_delegation(cluster, holder, other, kind, access,
                                    change)
        lock_beside_a_delegation(cluster, holder, other)
        holder.leave()
        other.leave()
    return (f"{2 * len(CHANGES)} changes by another waited for a recall; "
            "without one while the holder has a lock")


def new_file(client, name):
    file = client.open(name, create=nfs4.UNCHECKED, want=nfs4.WANT_NO_DELEG)
    file.write(0, b"as it was")
    file.close()


def beside_a_delegation(cluster, holder, other, kind, access, change):
    name = f"delegated-{next(NAMES)}"
    new_file(holder, name)
    new_file(holder, f"{name}-source")
    file = delegated(holder, name, access, kind)
    before = holder.change_and_size(file.handle)[0]
    done = Beside(change, other, name, file.handle)
    recalled(holder, file)
    assert done.is_alive(), "done before the delegation is back"
    file.return_delegation()
    done.end(cluster)
    # Each of them changes the file: its mode, size, or names.
    assert holder.change_and_size(file.handle)[0] != before
    file.close()


def lock_beside_a_delegation(cluster, holder, other):
    name = f"locked-{next(NAMES)}"
    new_file(holder, name)
    file = delegated(holder, name, nfs4.BOTH, nfs4.WRITE_DELEG)
    file.lock(nfs4.WRITE_LOCK, 0, 10)
    assert holder.write(file.handle, 0, b"AS", file.delegation) == 2
    opens = Beside(other.open, name)
    time.sleep(NO_RECALL_S)
    assert holder.recalls.empty(), "a recall: the row needs another text"
    assert opens.is_alive(), "opened before the delegation is back"
    file.return_delegation()
    its = opens.end(cluster)
    assert its.read(0, 100) == b"AS it was"
    try:
        its.lock(nfs4.WRITE_LOCK, 5, 10)
        raise AssertionError("locked twice")
    except nfs4.Conflict:
        pass
    file.unlock(0, 10)
    its.lock(nfs4.WRITE_LOCK, 5, 10)
    its.unlock(5, 10)
    its.close()
    file.close()


# --- nfs-ganesha 1400: it runs, and does not listen

# As cephadm writes them.
CEPHADM = "Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false; " \
    "Protocols = {};"
# For the process that becomes Ganesha; the program `lab` would start rpcbind.
MISSING = """#!/bin/sh
kill $(cat {pid})
while kill -0 $(cat {pid}) 2> /dev/null; do sleep 0.05; done
rm -f /run/rpcbind.sock
exec "$@"
"""
SILENT = """#!/bin/sh
kill -STOP $(cat {pid})
exec "$@"
"""


def listens():
    try:
        rpc.Concurrent(2049).close()
    except OSError:
        return False
    return True


def ganesha_1400(cluster, fsal, block="", folder=Path("/tmp")):
    """rpcbind is not there, or does not answer."""
    log = Log(LOGS / "ganesha-a.log")

    def start(script, protocols):
        wrapper = folder / "without-rpcbind"
        wrapper.write_text(script.format(pid=RPCBIND), encoding="ascii")
        wrapper.chmod(0o755)
        cluster.ganesha("stop")
        cluster.ganesha("start", "--fsal", fsal, "--block", block, "--core",
                        CEPHADM.format(protocols), "--wrapper", wrapper,
                        "--no-wait")
    try:
        start(MISSING, "3, 4")
        # Before that the process is the wrapper.
        until(lambda: log.matching("Cannot register NFS V3 on TCP"), "its line",
              SERVED_S)
        until(lambda: not stat()["ganesha"]["a"]["pid"], "its end", SERVED_S)
        start(MISSING, "4")
        until(lambda: cluster.exported("/ceph", 2049), "a mount", SERVED_S)
        assert log.matching("Cannot register NFS V4 on TCP")
        start(SILENT, "4")
        time.sleep(3)
        assert stat()["ganesha"]["a"]["pid"] and not listens()
        os.kill(int(RPCBIND.read_text(encoding="ascii")), signal.SIGCONT)
        until(lambda: cluster.exported("/ceph", 2049), "a mount", SERVED_S)
    finally:
        with contextlib.suppress(OSError):
            os.kill(int(RPCBIND.read_text(encoding="ascii")), signal.SIGCONT)
        cluster.run("ganesha", "stop", check=False)
        cluster.run("ganesha", "start", "--wrapper", "", "--core", "",
                    "--block", "", "--fsal", "CEPH_ASYNC")
    return "no rpcbind: ends with NFSv3, serves without; a silent one: waits"


# --- Ceph 70675: an upgrade turns NFSv3 off

UPGRADED, UPGRADED_PORT = "upgraded", 24049
# In a kernel of its own, over the whole upgrade.
MOUNTED = """
modprobe nfsv3
mkdir -p /mnt/v3
mount -t nfs -o vers=3,nolock,tcp,port={port},mountport={mount_port},soft,\
timeo=10,retrans=1 lab:/vol /mnt/v3
echo before > /mnt/v3/file
sync
touch {folder}/mounted
wait_for() {{ while [ ! -e {folder}/$1 ]; do sleep 0.1; done; }}
wait_for upgraded
echo 3 > /proc/sys/vm/drop_caches
timeout 20 cat /mnt/v3/file > {folder}/said 2>&1 || touch {folder}/refused
touch {folder}/tried
wait_for enabled
cat /mnt/v3/file
"""


def ceph_70675(cluster, fsal, folder=Path("/tmp")):
    """cephadm's template without NFSv3, under a client that has mounted it;
    then with enable_nfsv3."""
    def start(*options):
        plugin = ["--installed"] if fsal == "CEPH" else []
        cluster.run("nfs-cluster", UPGRADED, "--port", UPGRADED_PORT,
                    "--fsal", "CEPH", *plugin, *options)
    start("--nfsv3")
    try:
        export = folder / "export"
        ceph("nfs", "export", "create", "cephfs", "--cluster-id", UPGRADED,
             "--pseudo-path", "/vol", "--fsname", "cephfs", "--path=/")
        export.write_text(json.dumps({
            **json.loads(ceph("nfs", "export", "info", UPGRADED, "/vol")),
            "protocols": [3, 4]}))
        ceph("nfs", "export", "apply", UPGRADED, "-i", export)
        until(lambda: mounts("/vol"), "a mount of NFSv3", SERVED_S)
        client = subprocess.Popen(
            ["lab", "client", "--fs", "ceph", "--timeout", "100", "--",
             "bash", "-euc", MOUNTED.format(
                 folder=folder, port=UPGRADED_PORT,
                 mount_port=UPGRADED_PORT + 1)],
            text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)
        try:
            def has(name):
                until(lambda: (folder / name).exists() or
                      client.poll() is not None, name, 40)
            has("mounted")
            start()
            (folder / "upgraded").touch()
            has("tried")
            refused = (folder / "refused").exists()
            assert not mounts("/vol")
            start("--nfsv3")
            (folder / "enabled").touch()
            printed = cluster.end_client(client, 40)
        finally:
            client.terminate()
            client.wait(30)
        said = (folder / "said").read_text(encoding="utf-8").strip()
        assert refused, f"it was served: {said}"
        assert printed.endswith("before\n"), printed
    finally:
        ceph("nfs", "export", "rm", UPGRADED, "/vol", check=False)
        cluster.run("ganesha", "stop", "--name", UPGRADED)
        cluster.evict_all_but_a()
    return f"refused ({said.rpartition(': ')[2]}), and served again"


def mounts(pseudo):
    with contextlib.suppress(rpc.Refused, OSError):
        return nfs3.root_of(pseudo, UPGRADED_PORT + 1)
    return None
