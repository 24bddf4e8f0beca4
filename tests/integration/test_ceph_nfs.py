# SPDX-License-Identifier: LGPL-3.0-or-later
"""Exports as most gateways get them: from `ceph nfs`, by way of RADOS.

Two clusters of the manager's module nfs, a Ganesha each, configured by
cephadm's own template (`lab nfs-cluster`).  In "managed" the manager writes
the exports, always with `Name = CEPH`: the stand-in serves them.  In "own"
they are in the user's configuration, with `Name = CEPH_ASYNC`, because the
manager accepts no other FSAL in exports of its own.

The lab's cluster has no orchestrator.  So nobody restarts the gateways: what
the manager changes has to be taken by a reload.
"""
import contextlib
import itertools
import json
import re
import subprocess
import threading
import time
from pathlib import Path

import pytest

from casync_check import daemon
from fuse import Fuse
from lab import LOGS
from lab_program import Log, ceph, has_reread, until
from nfs import nfs3, nfs4, rpc
from nfs.xdr import number, wide
from test_logs import ALWAYS

SERVED_S = 15
KEPT = "/kept"
FOLDER = "nfs-clusters"         # of CephFS, for all of this file
PAUSE_S = 2
# Ganesha's Anonymous_Uid is -2.
NOBODY, ACCESS = 0xFFFFFFFE, 13
READ_ONE = (25, nfs4.ANONYMOUS + wide(0) + number(1), None)
# Folders of an earlier run may be there.
NAMES = itertools.count(time.time_ns())


def fresh(what="file"):
    return f"{what}-{next(NAMES)}"


class Gateway:
    """A cluster of `ceph nfs` and its Ganesha; DISK is CephFS itself."""

    def __init__(self, lab, name, port, fsal, disk):
        self.lab, self.name, self.port, self.fsal = lab, name, port, fsal
        self.disk = disk / FOLDER
        self.path = LOGS / f"ganesha-{name}.log"
        self.config = ""        # the user's configuration
        self.whole_log = self.log()

    def start(self):
        self.lab.run("nfs-cluster", self.name, "--port", self.port, "--fsal",
                     self.fsal, "--nfsv3")

    @property
    def pid(self):
        return self.lab.stat()["ganesha"][self.name]["pid"]

    def log(self):
        return Log(self.path)

    # --- `ceph nfs`

    def nfs(self, *words, text=None, check=True):
        """`ceph nfs WORDS`, with a file of TEXT."""
        if text is None:
            return ceph("nfs", *words, check=check)
        file = LOGS / f"ceph-nfs-{self.name}.in"
        file.write_text(text)
        return ceph("nfs", *words, "-i", file, check=check)

    def exports(self):
        return json.loads(self.nfs("export", "ls", self.name))

    def info(self, pseudo):
        return json.loads(self.nfs("export", "info", self.name, pseudo))

    def config_set(self, text):
        """It takes none while there is one.  Each command ends by asking the
        orchestrator, which is not there, for a restart: it fails, done."""
        if self.config:
            self.nfs("cluster", "config", "reset", self.name, check=False)
        self.config = text
        if text:
            self.nfs("cluster", "config", "set", self.name, text=text,
                     check=False)
        assert self.nfs("cluster", "config", "get",
                        self.name).strip() == text.strip()

    # --- RADOS, as a manager that writes other things than today's

    def rados(self, *words):
        return subprocess.run(
            ["rados", "-p", ".nfs", "-N", self.name, *words], check=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
            timeout=60).stdout

    def put(self, name, text):
        file = LOGS / f"rados-{self.name}.in"
        file.write_text(text)
        self.rados("put", name, str(file))

    def notify(self):
        self.rados("notify", f"conf-nfs.{self.name}", "reload")

    # --- as a client sees it

    @contextlib.contextmanager
    def client(self, pseudo=KEPT, uid=0, host="127.0.0.1"):
        client = nfs4.Client(self.port, fresh("client"), pseudo=pseudo,
                             uid=uid, host=host)
        try:
            yield client
        finally:
            client.leave()

    def status(self, pseudo, host="127.0.0.1"):
        """0 if it can be looked up."""
        viewer = nfs4.Viewer(self.port, fresh("viewer"), host=host)
        try:
            return viewer.status(pseudo)
        finally:
            viewer.leave()

    def wait(self, pseudo, status=0, host="127.0.0.1"):
        until(lambda: self.status(pseudo, host) == status,
              f"status {status} of {pseudo}", SERVED_S)

    def creates(self, pseudo, uid=0, host="127.0.0.1"):
        """The status of creating a file, and its name."""
        name = fresh()
        try:
            with self.client(pseudo, uid, host) as client:
                client.open(name, create=nfs4.UNCHECKED).close()
        except nfs4.Failed as err:
            return err.status, name
        return 0, name

    def wait_creates(self, pseudo, status, **who):
        seen = []

        def is_seen():
            seen.append(self.creates(pseudo, **who)[0])
            return seen[-1] == status
        try:
            until(is_seen, f"status {status} of a create in {pseudo}",
                  SERVED_S)
        except AssertionError as err:
            raise AssertionError(f"{err}, but {set(seen)}") from None

    def folder(self, name=None):
        """A new folder of CephFS: its path for an export, and where it is."""
        name = name or fresh("folder")
        (self.disk / name).mkdir(exist_ok=True)
        (self.disk / name).chmod(0o777)
        return f"/{FOLDER}/{name}", self.disk / name


class Managed(Gateway):
    """The manager has the exports."""

    def add(self, pseudo, path, *options):
        self.nfs("export", "create", "cephfs", "--cluster-id", self.name,
                 "--pseudo-path", pseudo, "--fsname", "cephfs",
                 f"--path={path}", *options)

    def change(self, pseudo, /, **keys):
        text = json.dumps({**self.info(pseudo), **keys})
        return self.nfs("export", "apply", self.name, text=text)

    def remove(self, pseudo):
        self.nfs("export", "rm", self.name, pseudo)

    def listed(self):
        return set(self.exports())

    def configure(self, text):
        self.config_set(text)

    def object_of(self, pseudo):
        return f"export-{self.info(pseudo)['export_id']}"

    def text_of(self, pseudo):
        return self.rados("get", self.object_of(pseudo), "-")

    def rewrite(self, pseudo, old, new):
        """As a later manager might write this export."""
        text = self.text_of(pseudo)
        assert old in text, text
        self.put(self.object_of(pseudo), text.replace(old, new, 1))
        self.notify()
        return text

    def clear(self):
        for pseudo in self.listed() - {KEPT}:
            self.remove(pseudo)
        if self.config:
            self.config_set("")


BLOCK = """EXPORT {{
    Export_Id = {export_id}; Path = "{path}"; Pseudo = "{pseudo}";
    Access_Type = {access_type}; Squash = {squash};
    Protocols = {protocols}; SecType = sys; Transports = TCP;
    Attr_Expiration_Time = 0;
    FSAL {{ Name = CEPH_ASYNC; }}
{clients}}}
"""
CLIENT_BLOCK = """    CLIENT {{ Clients = {addresses}; Access_Type = \
{access_type}; Squash = {squash}; }}
"""


class Own(Gateway):
    """The user's configuration has the exports."""

    def __init__(self, *args):
        super().__init__(*args)
        self.blocks = {}
        self.more = ""
        self.ids = itertools.count(101)

    def add(self, pseudo, path):
        self.blocks[pseudo] = {
            "export_id": next(self.ids), "path": path, "pseudo": pseudo,
            "access_type": "RW", "squash": "none", "protocols": [4],
            "clients": []}
        self._set()

    def change(self, pseudo, /, **keys):
        self.blocks[pseudo].update(keys)
        self._set()

    def remove(self, pseudo):
        del self.blocks[pseudo]
        self._set()

    def listed(self):
        return set(re.findall(r'Pseudo = "(.*?)"', self.nfs(
            "cluster", "config", "get", self.name)))

    def configure(self, text):
        self.more = text
        self._set()

    def text(self):
        return self.more + "\n" + "".join(
            BLOCK.format(**{
                **block, "protocols": ", ".join(map(str, block["protocols"])),
                "clients": "".join(CLIENT_BLOCK.format(**{
                    **client, "addresses": ", ".join(client["addresses"])})
                    for client in block["clients"])})
            for block in self.blocks.values())

    def _set(self):
        """The manager sets a configuration where there is none.  To change it
        by a reset would take all exports from their clients meanwhile."""
        if self.config:
            self.replace(self.text())
        else:
            self.config_set(self.text())

    def rewrite(self, pseudo, old, new):
        """The object itself, not by way of a reset."""
        before, inside, after = self.text().partition(f'Pseudo = "{pseudo}"')
        self.replace(before + inside + after.replace(old, new, 1))
        return self.text()

    def replace(self, text):
        self.config = text
        self.put(f"userconf-nfs.{self.name}", text)
        self.notify()

    def clear(self):
        blocks = {KEPT: self.blocks[KEPT]}
        if self.blocks != blocks or self.more or self.config != self.nfs(
                "cluster", "config", "get", self.name):
            self.blocks, self.more = blocks, ""
            self._set()


# --- the gateways, for all tests of this file

@pytest.fixture(scope="module")
def disk():
    """CephFS beside the gateways."""
    fuse = Fuse()
    (fuse.folder / FOLDER).mkdir(exist_ok=True)
    yield fuse.folder
    fuse.end()


@pytest.fixture(scope="module")
def gateways(cluster, disk):
    both = {"managed": Managed(cluster, "managed", 22049, "CEPH", disk),
            "own": Own(cluster, "own", 23049, "CEPH_ASYNC", disk)}
    for gateway in both.values():
        gateway.start()
        gateway.add(KEPT, gateway.folder("kept")[0])
    for gateway in both.values():
        gateway.wait(KEPT)
    yield both
    for gateway in both.values():
        gateway.clear()
        gateway.remove(KEPT)
        cluster.run("ganesha", "stop", "--name", gateway.name)
    cluster.evict_left()


def usable(gateway):
    """For a test; after it the export that all share is as before."""
    pid = gateway.pid
    yield gateway
    gateway.clear()
    gateway.wait(KEPT)
    assert gateway.pid == pid, "it was started anew"


@pytest.fixture(params=["managed", "own"])
def gateway(request, gateways):
    yield from usable(gateways[request.param])


@pytest.fixture(scope="module")
def lab_address(cluster):
    """An address of this host that is not 127.0.0.1: who connects to it comes
    from it."""
    return re.search(r"public_addr = (\S+)", Path(
        "/etc/ceph/ceph.conf").read_text())[1]


@pytest.fixture
def managed(gateways):
    yield from usable(gateways["managed"])


@pytest.fixture
def own(gateways):
    yield from usable(gateways["own"])


# --- exports come, change and go

def test_a_created_export_is_served_without_a_restart(gateway, record):
    path, folder = gateway.folder()
    begun = time.monotonic()
    gateway.add("/vol", path)
    gateway.wait("/vol")
    record(f"{gateway.name}: served {time.monotonic() - begun:.1f} s after "
           "the command began")
    status, name = gateway.creates("/vol")
    assert status == 0
    assert (folder / name).exists()
    assert gateway.listed() == {KEPT, "/vol"}


def test_the_check_finds_no_error(gateway):
    """In what cephadm's template writes: a rank that is a number, exports of
    RADOS, and all of them are served."""
    done = subprocess.run(
        ["ganesha-ceph-async-check", "--json", "-f",
         f"/var/lib/casync-lab/ganesha/{gateway.name}/ganesha.conf"],
        text=True, timeout=90, stdin=subprocess.DEVNULL, capture_output=True,
        check=False)
    assert [one for one in json.loads(done.stdout)["findings"]
            if one["severity"] == "error"] == []
    assert daemon.exports_of(gateway.pid, gateway.name) - {0}


def test_info_is_what_was_asked_for(managed):
    path, _ = managed.folder()
    managed.add("/vol", path, "--readonly", "--squash", "root_squash",
                "--client_addr", "127.0.0.1")
    info = managed.info("/vol")
    assert (info["path"], info["pseudo"]) == (path, "/vol")
    assert info["fsal"]["name"] == "CEPH"
    # With addresses these two are theirs, and the export has none.
    assert [(client["addresses"], client["squash"], client["access_type"])
            for client in info["clients"]] == [
                (["127.0.0.1"], "root_squash", "ro")]
    managed.wait("/vol")
    managed.wait_creates("/vol", nfs4.ROFS)


def test_several_exports_are_apart(gateway):
    folders = {}
    for pseudo in ("/vol/one", "/vol/two", "/three"):
        path, folders[pseudo] = gateway.folder()
        gateway.add(pseudo, path)
    for pseudo, folder in folders.items():
        gateway.wait(pseudo)
        status, name = gateway.creates(pseudo)
        assert status == 0
        assert [f for f in folders.values() if (f / name).exists()] == [
            folder]
    assert gateway.listed() == {KEPT, *folders}


def test_read_only_and_back(gateway):
    gateway.add("/vol", gateway.folder()[0])
    gateway.wait_creates("/vol", 0)
    gateway.change("/vol", access_type="RO")
    gateway.wait_creates("/vol", nfs4.ROFS)
    assert gateway.creates(KEPT)[0] == 0
    gateway.change("/vol", access_type="RW")
    gateway.wait_creates("/vol", 0)


def test_an_open_file_meets_read_only(managed):
    """The same client, handle and stateid before, meanwhile and after."""
    managed.add("/vol", managed.folder()[0])
    managed.wait("/vol")
    with managed.client("/vol") as client:
        file = client.open("file", create=nfs4.UNCHECKED)
        file.write(0, b"before")

        def status():
            try:
                file.write(0, b"later!")
            except nfs4.Failed as err:
                return err.status
            return 0
        managed.change("/vol", access_type="RO")
        until(lambda: status() == nfs4.ROFS, "it is read-only", SERVED_S)
        assert file.read(0, 6) in (b"before", b"later!")
        managed.change("/vol", access_type="RW")
        until(lambda: status() == 0, "it is writable", SERVED_S)
        assert file.read(0, 6) == b"later!"
        file.close()


@pytest.mark.parametrize("squash, of_root, of_user", [
    ("no_root_squash", 0, 1000),
    ("root_squash", NOBODY, 1000),
    ("all_squash", NOBODY, NOBODY)])
def test_squash(gateway, squash, of_root, of_user):
    """The owner of a new file, as CephFS has it."""
    path, folder = gateway.folder()
    gateway.add("/vol", path)
    gateway.change("/vol", squash=squash)

    def owners():
        made = [gateway.creates("/vol", uid) for uid in (0, 1000)]
        return [status or (folder / name).stat().st_uid
                for status, name in made]
    until(lambda: owners() == [of_root, of_user], f"owners by {squash}",
          SERVED_S)


def test_only_listed_clients(gateway, lab_address):
    """One export, two addresses of a client."""
    path, _ = gateway.folder()
    gateway.add("/vol", path)
    gateway.wait("/vol", host=lab_address)
    gateway.change("/vol", access_type="NONE", clients=[
        {"addresses": ["127.0.0.1"], "access_type": "RW", "squash": "none"}])
    until(lambda: gateway.status("/vol", lab_address) != 0, "refused",
          SERVED_S)
    assert gateway.status("/vol", lab_address) in (nfs4.NOENT, ACCESS)
    assert gateway.creates("/vol")[0] == 0
    # The other way round.
    gateway.change("/vol", access_type="NONE", clients=[
        {"addresses": [lab_address], "access_type": "RW", "squash": "none"}])
    gateway.wait_creates("/vol", 0, host=lab_address)
    assert gateway.status("/vol") in (nfs4.NOENT, ACCESS)


def test_a_listed_client_may_have_less(gateway, lab_address):
    gateway.add("/vol", gateway.folder()[0])
    gateway.change("/vol", access_type="RW", clients=[
        {"addresses": [lab_address], "access_type": "RO", "squash": "none"}])
    gateway.wait_creates("/vol", nfs4.ROFS, host=lab_address)
    assert gateway.creates("/vol")[0] == 0


def test_a_removed_export_is_gone(gateway):
    gateway.add("/vol", gateway.folder()[0])
    gateway.add("/stays", gateway.folder()[0])
    gateway.wait("/vol")
    gateway.wait("/stays")
    with gateway.client("/vol") as client:
        file = client.open("file", create=nfs4.UNCHECKED)
        gateway.remove("/vol")
        gateway.wait("/vol", nfs4.NOENT)
        assert client.status_of(nfs4.put(file.handle)) == nfs4.STALE
    gateway.wait("/stays")
    assert gateway.listed() == {KEPT, "/stays"}


def test_the_id_of_a_removed_export_is_used_again(managed):
    """The manager gives a new export the number of one that was removed.  Who
    was a client of that still reaches its files, by handle: the handle has the
    export's number, and the user of all exports may reach all files.  So
    docs/security.md says; with a mount of its own path it would not.
    """
    managed.add("/vol", managed.folder()[0])
    managed.wait("/vol")
    number = managed.info("/vol")["export_id"]
    with managed.client("/vol") as client:
        file = client.open("secret", create=nfs4.UNCHECKED)
        file.write(0, b"of the first")
        managed.remove("/vol")
        managed.add("/other", managed.folder()[0])
        managed.wait("/other")
        assert managed.info("/other")["export_id"] == number
        managed.wait("/vol", nfs4.NOENT)
        assert client.status_of(nfs4.put(file.handle), READ_ONE) == 0


def test_many_exports_in_a_row(managed):
    """Each command has a reload; they come faster than Ganesha reads."""
    pseudos = {f"/many/{n}" for n in range(8)}
    for pseudo in pseudos:
        managed.add(pseudo, managed.folder()[0])
    for pseudo in pseudos:
        managed.wait(pseudo)
    # All of them have one user and mount: that of the cluster.
    assert len(managed.lab.sessions(managed.pid)) == 1


def test_export_apply_takes_a_block_of_ganesha_conf(managed):
    path, _ = managed.folder()
    managed.nfs("export", "apply", managed.name, text=f"""EXPORT {{
        Export_Id = 77; Path = "{path}"; Pseudo = "/vol";
        Access_Type = "RO"; Squash = "none"; Protocols = 4;
        Transports = "TCP";
        FSAL {{ Name = "CEPH"; Filesystem = "cephfs"; }}
    }}""")
    managed.wait_creates("/vol", nfs4.ROFS)


# --- NFSv3 and Linux' client

def test_nfsv3_when_the_export_has_it(gateway):
    path, folder = gateway.folder()
    gateway.add("/vol", path)
    gateway.wait("/vol")
    with pytest.raises(rpc.Refused):
        nfs3.root_of("/vol", gateway.port + 1)
    gateway.change("/vol", protocols=[3, 4])

    def root():
        with contextlib.suppress(rpc.Refused):
            return nfs3.root_of("/vol", gateway.port + 1)
    until(root, "a mount of NFSv3", SERVED_S)
    connection = rpc.Concurrent(gateway.port)
    handle = nfs3.create(connection, root(), "file")
    nfs3.write(connection, handle, 0, b"by NFSv3")
    connection.close()
    assert (folder / "file").read_bytes() == b"by NFSv3"


def test_linux_mounts_what_was_created(gateway):
    path, folder = gateway.folder()
    gateway.add("/vol", path)
    gateway.wait("/vol")
    said = gateway.lab.client(
        "sh", "-ec", "ls /mnt/nfs; echo by Linux > /mnt/nfs/vol/file; "
        "cat /mnt/nfs/vol/file; mkdir /mnt/nfs/vol/folder; sync",
        name=gateway.name)
    assert "vol" in said.split()
    assert said.endswith("by Linux\n")
    assert (folder / "file").read_text() == "by Linux\n"
    assert (folder / "folder").is_dir()


# --- what goes wrong, and what others change

def test_a_path_that_is_missing(gateway):
    """Nobody else notices; it can be made good."""
    log = gateway.log()
    missing = f"/{FOLDER}/{fresh('missing')}"
    if isinstance(gateway, Managed):
        said = gateway.nfs(
            "export", "create", "cephfs", "--cluster-id", gateway.name,
            "--pseudo-path", "/gone", "--fsname", "cephfs",
            f"--path={missing}", check=False)
        assert "/gone" not in gateway.listed(), said
    else:
        gateway.add("/gone", missing)
        until(lambda: log.matching(f":CRIT :.*{missing}"), "a line",
              SERVED_S)
        gateway.remove("/gone")
    assert gateway.creates(KEPT)[0] == 0
    path, _ = gateway.folder(missing.rpartition("/")[2])
    gateway.add("/gone", path)
    gateway.wait_creates("/gone", 0)


def test_our_block_by_config_set(gateway):
    """It reaches Ganesha without a restart, and our log says so."""
    log = gateway.log()
    gateway.configure("CEPH_ASYNC { Slow_Op_Warn = 1234; }")
    until(lambda: log.matching(r"Slow_Op_Warn = 1234 \(was 10000\)"),
          "a line of the new value", SERVED_S)
    assert gateway.creates(KEPT)[0] == 0
    gateway.configure("")
    until(lambda: log.matching(r"Slow_Op_Warn = 10000 \(was 1234\)"),
          "a line of the old value", SERVED_S)


@pytest.mark.parametrize("block, said", [
    ("CEPH_ASYNC { Nosuch_Key = 1; }", "Nosuch_Key"),
    ("CEPH_ASYNC { Max_Inflight = 0; }",
     "Max_Inflight = 0 is refused: it must be a number of requests")])
def test_a_bad_block_by_config_set(gateway, block, said):
    """The line names the key; what is served stays served."""
    log = gateway.log()
    with gateway.client() as client:
        file = client.open(fresh(), create=nfs4.UNCHECKED)
        gateway.configure(block)
        until(lambda: log.matching(said), f"a line with {said}", SERVED_S)
        file.write(0, b"goes on")
        assert file.read(0, 7) == b"goes on"
        file.close()
    gateway.configure("")
    gateway.wait_creates(KEPT, 0)


class Load(threading.Thread):
    """WRITEs and READs of one file; the longest of them, and errors."""

    def __init__(self, gateway):
        super().__init__(daemon=True)
        self.gateway = gateway
        self.stop = threading.Event()
        self.rounds, self.longest_s, self.wrong = 0, 0.0, []

    def run(self):
        try:
            with self.gateway.client() as client:
                file = client.open(fresh(), create=nfs4.UNCHECKED)
                while not self.stop.is_set():
                    self.one(file)
                file.close()
        except (OSError, nfs4.Failed, AssertionError) as err:
            self.wrong.append(repr(err))

    def one(self, file):
        data = f"{self.rounds:4096d}".encode()
        begun = time.monotonic()
        file.write(0, data)
        assert file.read(0, len(data)) == data
        self.longest_s = max(self.longest_s, time.monotonic() - begun)
        self.rounds += 1


def test_changes_under_load_disturb_no_other_export(gateway, record):
    load = Load(gateway)
    load.start()
    for n in range(4):
        pseudo = f"/changed/{n}"
        gateway.add(pseudo, gateway.folder()[0])
        gateway.wait_creates(pseudo, 0)
        gateway.change(pseudo, access_type="RO")
        gateway.wait_creates(pseudo, nfs4.ROFS)
        gateway.remove(pseudo)
        gateway.wait(pseudo, nfs4.NOENT)
    load.stop.set()
    load.join(30)
    assert not load.is_alive() and not load.wrong
    record(f"{gateway.name}: 4 exports made, changed and removed beside "
           f"{load.rounds} WRITEs and READs: the longest took "
           f"{load.longest_s * 1000:.0f} ms")
    assert load.rounds > 100 and load.longest_s < PAUSE_S


@pytest.mark.parametrize("where, keys", [
    ("FSAL", 'kmip_key_id = "a"; clients_per_pool = 4;'),
    ("EXPORT", 'xprtsec = "none";'),
    ("EXPORT", "qos_block { enable_qos = true; enable_bw_ctrl = true; }"),
])
def test_keys_of_a_later_manager(gateway, where, keys):
    """They must not take an export from its clients: it goes on with what it
    had, and other exports can still be made."""
    gateway.add("/vol", gateway.folder()[0])
    gateway.wait_creates("/vol", 0)
    log = gateway.log()
    head = re.search(rf"{where}\s*{{", gateway.text_of("/vol")
                     if isinstance(gateway, Managed) else BLOCK)[0]
    head = head.replace("{{", "{")
    if isinstance(gateway, Managed):
        gateway.rewrite("/vol", head, f"{head}\n{keys}\n")
    else:       # the block is behind its pseudo path: this takes the last one
        gateway.replace(gateway.text()[::-1].replace(
            head[::-1], f"{head}\n{keys}\n"[::-1], 1)[::-1])
    until(lambda: has_reread(log), "the configuration is read", SERVED_S)
    assert gateway.creates("/vol")[0] == 0
    assert gateway.creates(KEPT)[0] == 0
    gateway.add("/later", gateway.folder()[0])
    gateway.wait_creates("/later", 0)


def test_two_clusters_are_apart(gateways):
    """The same pseudo path, another folder."""
    folders = {}
    for name, gateway in gateways.items():
        path, folders[name] = gateway.folder()
        gateway.add("/vol", path)
    for name, gateway in gateways.items():
        gateway.wait("/vol")
        status, file = gateway.creates("/vol")
        assert status == 0
        assert [other for other, folder in folders.items()
                if (folder / file).exists()] == [name]
    gateways["managed"].clear()
    gateways["managed"].wait("/vol", nfs4.NOENT)
    assert gateways["own"].creates("/vol")[0] == 0
    gateways["own"].clear()


def test_the_manager_dies_and_comes_back(gateway):
    gateway.add("/vol", gateway.folder()[0])
    gateway.wait("/vol")
    load = Load(gateway)
    load.start()
    gateway.lab.run("mgr", "kill9")
    gateway.lab.run("mgr", "start")
    until(lambda: gateway.listed() == {KEPT, "/vol"}, "exports are listed",
          30)
    gateway.add("/after", gateway.folder()[0])
    gateway.wait_creates("/after", 0)
    load.stop.set()
    load.join(30)
    assert not load.wrong and load.longest_s < PAUSE_S


# --- last: it starts the gateway anew, as cephadm does after `config set`

def test_a_client_for_each_export(gateways):
    """Share_Client = false reaches exports that the manager has written."""
    managed = gateways["managed"]
    pseudos = ["/one", "/two"]
    for pseudo in pseudos:
        managed.add(pseudo, managed.folder()[0])
        managed.wait(pseudo)
    assert len(managed.lab.sessions(managed.pid)) == 1
    with managed.client("/one") as client:
        handle = client.open("file", create=nfs4.UNCHECKED).handle
    # A client that found no export has left: the start waits for nobody.
    assert managed.creates("/missing")[0] == nfs4.NOENT
    managed.configure("CEPH_ASYNC { Share_Client = false; }")
    managed.start()
    for pseudo in pseudos:
        managed.wait_creates(pseudo, 0)
    assert len(managed.lab.sessions(managed.pid)) == 3
    with managed.client("/one") as client:
        assert client.status_of(nfs4.put(handle)) == 0
    managed.clear()
    managed.start()
    managed.wait_creates(KEPT, 0)
    assert len(managed.lab.sessions(managed.pid)) == 1


def test_keys_of_handles_by_notify(gateways):
    """The command makes the object beside the manager's, and tells the gateway
    to read it again."""
    managed = gateways["managed"]
    keys = f"rados://.nfs/{managed.name}/{fresh('handle-keys')}"
    watched = f"rados://.nfs/{managed.name}/conf-nfs.{managed.name}"

    def command(*words):
        subprocess.run(["ganesha-ceph-async-config", "handle-keys", *words],
                       check=True, timeout=60, stdin=subprocess.DEVNULL)
    command("--create", keys)
    managed.configure(f'CEPH_ASYNC {{ Handle_Keys = "{keys}"; '
                      "Sign_Handles = true; }")
    managed.start()
    log = managed.log()
    command("--add", keys, "--notify", watched)
    until(lambda: log.matching("the first of 2 keys signs"), "both keys",
          SERVED_S)
    assert managed.creates(KEPT)[0] == 0
    managed.clear()
    managed.start()
    managed.wait_creates(KEPT, 0)


# --- last of all

# Ganesha's, of each start and end, of clients without a callback channel, and
# of keys and blocks of cephadm's template; 5.9 does not know three of them.
USUAL = (*ALWAYS, r":NFS STARTUP :WARN",
         r"Unknown (block|parameter) \((RGW|RADOS_URLS|Monitoring_Port|"
         r"allow_set_io_flusher_fail)\)",
         "stopped/paused fridge reaper", r"Extra (fsal )?references",
         "initial_cb_null", "nfs_rpc_get_chan failed",
         "Cannot acquire credentials", "gssd_refresh_krb5",
         "while getting full hostname")
# What tests of this file provoke, and what Ganesha says after it.
PROVOKED = (
    r"Unknown parameter \((kmip_key_id|clients_per_pool|xprtsec|qos_block|"
    r"Nosuch_Key)\)", "keys that this FSAL does not know",
    "it has an unknown key or value", "Max_Inflight = 0 is refused",
    r"missing-\d+", r"need a new mount: (Share_Client|Sign_Handles) = ",
    r"CEPH \{ \}: reload refused", "Handle_Keys was removed",
    r"Could not (update|create) export for", "Error while parsing EXPORT",
    r"Failed to call (update|create)_export on underlying",
    "fsal_export is NULL", "errors found block", "Errors processing block",
    r"\d+ (validation errors in|errors while processing)")


@pytest.mark.parametrize("name", ["managed", "own"])
def test_no_line_that_no_test_expects(gateways, name):
    """From a WARN on, in all that this gateway has logged."""
    log = gateways[name].whole_log
    assert log.matching(r"FSAL (CEPH|CEPH_ASYNC) [\d.]+: FSAL API")
    known = re.compile("|".join([*USUAL, *PROVOKED]))
    lines = [line for line in log.matching(
        r" :(WARN|CRIT|MAJ|FATAL|EMER|ALERT) ?:") if not known.search(line)]
    assert not lines, " | ".join(lines[:40])
