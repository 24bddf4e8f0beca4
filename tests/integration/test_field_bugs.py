# SPDX-License-Identifier: LGPL-3.0-or-later
"""Bugs that others reported of FSAL_CEPH, Ganesha and libcephfs, by number.

The steps are client/field_bugs.py, in the kernel client, or field_protocol.py;
FSAL_CEPH goes through the same ones as evidence.  docs/comparison.md says how
each went: it is compared with that.  Most run on Ganesha "b", of either FSAL.
"""
import ast
import contextlib
import json
import re
import subprocess
import threading
import time
from pathlib import Path

import pytest

import field_protocol
from lab import SECOND_PORT
from lab_program import LOGS, LabFailed, Log, ceph, until
from nfs import nfs4
from nfs.rpc import Refused
from test_delegations import EXPORT, NFSV4
from test_reconnect import SERVES

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "docs/comparison.md"
PAUSE_S = 40            # at most, of a client whose gateway fails
ROUNDS = 8              # of eviction_work.py: half before a loss, half after it
AWAY_S = 25             # FSAL_CEPH gets that long to come back
PLAIN = ("ganesha_1375", "ganesha_1226", "ganesha_988", "ganesha_1323",
         "ganesha_1280", "tracker_69347", "tracker_80503")
DELEGATED = ("ganesha_1382", "ganesha_1392", "ganesha_1388")
EVICTED = ("tracker_42085", "tracker_42271")
UNLISTED = ("tracker_65647",)
MOVED = ("ganesha_758",)
# What docs/operations.md advises where the MDS does not use the blocklist.
STALE = 'Ceph_Option = "client_reconnect_stale=true";'


class Contender(threading.Thread):
    """Opens and looks at the files of ganesha_1388, beside the client."""

    def __init__(self, top):
        super().__init__(daemon=True)
        self.client = nfs4.Client(SECOND_PORT, f"contender-{top}")
        self.path = f"{top}/ganesha_1388"
        self.looks = 0
        self.ended = threading.Event()

    def look(self, number):
        directory = None
        for name in self.path.split("/"):
            directory = self.client.lookup(name, directory)
        name = f"shared{number}"
        self.client.change_and_size(self.client.lookup(name, directory))
        file = self.client.open(name, access=nfs4.READ, directory=directory)
        self.client.change_and_size(file.handle)
        file.close()
        self.looks += 1

    def run(self):
        number = 0
        while not self.ended.is_set():
            number = (number + 1) % 4
            with contextlib.suppress(Refused, OSError):  # not there yet, busy
                self.look(number)
            time.sleep(0.05)

    def end(self):
        self.ended.set()
        self.join(60)
        self.client.leave()
        return self.looks


def steps(cluster, names, **options):
    """How the steps went, by name, with a Ganesha of these options."""
    top = f"field-{time.time_ns()}"
    contender = None
    said = cluster.start_second(**options)
    try:
        if "ganesha_1388" in names:
            contender = Contender(top)
            contender.start()
        printed = cluster.script("field_bugs.py", f"/mnt/nfs/{top}", *names,
                                 name="b", seconds=170)
        line = [line for line in printed.splitlines()
                if line.startswith("{")][-1]    # the kernel may say more
        results = json.loads(line)
        if contender:
            results["ganesha_1388"]["looks"] = contender.end()
        results["lives"] = cluster.stat()["ganesha"]["b"]["pid"] == said.pid
        return results
    finally:
        if options.get("fsal") == "CEPH":       # it may hang
            cluster.run("ganesha", "kill9", "--name", "b")
            cluster.evict_all_but_a()
        cluster.stop_second()


def went_well(results, name, record):
    result = results[name]
    record(f"{name}: {result['went']} in {result['seconds']} s, "
           f"{result['note']}")
    assert result["went"] == "passes"
    assert results["lives"], "Ganesha ended"
    return result


@pytest.fixture(scope="module")
def plain(cluster):
    return steps(cluster, PLAIN)


@pytest.fixture(scope="module")
def delegated(cluster):
    with cluster.may_delegate(), cluster.may_log(
            "whether Linux reads with a delegation whose open is closed",
            "No openstate with delegation"):
        return steps(cluster, DELEGATED, nfsv4=NFSV4, export_block=EXPORT)


def test_ganesha_1375_cat_after_rename(plain, record):
    """nfs-ganesha 1375: a file renamed over another gives EIO to cat."""
    went_well(plain, "ganesha_1375", record)


def test_ganesha_1226_tac(plain, record):
    """nfs-ganesha 1226: tac reads at 2.66 MiB/s."""
    went_well(plain, "ganesha_1226", record)


def test_ganesha_988_build_with_empty_files(plain, record):
    """nfs-ganesha 988: a build hangs, an empty file's READ is unanswered."""
    went_well(plain, "ganesha_988", record)


def test_ganesha_1323_stable_writes_at_once(plain, record):
    """nfs-ganesha 1323: an assertion in libcephfs' nonblocking fsync."""
    went_well(plain, "ganesha_1323", record)


def test_ganesha_1280_many_files_at_once(plain, record):
    """nfs-ganesha 1280: the daemon crashes in SPECstorage's load."""
    went_well(plain, "ganesha_1280", record)


def test_tracker_69347_random_reads(plain, record):
    """Ceph tracker 69347: fio's asynchronous random reads fail, NFSv4.2."""
    went_well(plain, "tracker_69347", record)


def test_tracker_80503_listing(plain, record):
    """Ceph tracker 80503: ls gives EREMOTEIO to Linux 6.19 and later."""
    went_well(plain, "tracker_80503", record)


def returned(result):
    """How many delegations the kernel client had, and gave back."""
    return int(re.search(r"(\d+) delegations returned", result["note"])[1])


def test_ganesha_1382_appends_with_a_delegation(delegated, record):
    """nfs-ganesha 1382: the second append hangs, no DELEGRETURN."""
    assert returned(went_well(delegated, "ganesha_1382", record))


def test_ganesha_1392_fio_with_a_delegation(delegated, record):
    """nfs-ganesha 1392: fio hangs, no WRITE comes to the server."""
    assert returned(went_well(delegated, "ganesha_1392", record))


def test_ganesha_1388_getattr_beside_recalls(delegated, record):
    """nfs-ganesha 1388: the daemon crashes in GETATTR beside recalls."""
    result = went_well(delegated, "ganesha_1388", record)
    assert returned(result)
    assert result["looks"] > 10


# --- eviction and failover: work goes on in the kernel client meanwhile

class Away:
    """Ganesha "b", and ways to take its CephFS session away."""

    def __init__(self, cluster, folder):
        self.cluster, self.folder = cluster, folder

    def addresses(self):
        pid = str(self.cluster.stat()["ganesha"]["b"]["pid"])
        for session in json.loads(ceph("tell", "mds.0", "client", "ls")):
            if session["client_metadata"].get("pid") == pid:
                addr = session["entity"]["addr"]
                yield f"{addr['addr']}/{addr['nonce']}"

    def evict(self):
        self.cluster.evict(self.cluster.stat()["ganesha"]["b"]["pid"])

    tracker_42085 = evict

    def tracker_65647(self):
        key = "mds_session_blocklist_on_evict"
        ceph("config", "set", "mds", key, "false")
        try:
            self.evict()
        finally:
            ceph("config", "rm", "mds", key)

    def tracker_42271(self):
        listed = list(self.addresses())
        for address in listed:
            ceph("osd", "blocklist", "add", address)
        time.sleep(1)
        for address in listed:
            ceph("osd", "blocklist", "rm", address)

    def ganesha_758(self):
        """The active host dies; the other one has another name."""
        other = self.folder / "other-host"
        other.write_text('#!/bin/sh\nhostname other\nexec "$@"\n',
                         encoding="ascii")
        other.chmod(0o755)
        self.cluster.run("ganesha", "kill9", "--name", "b")
        self.cluster.run("ganesha", "start", "--name", "b", "--wrapper",
                         f"unshare --uts {other}", "--no-wait")


# As the reporter had it, but for the addresses.
TWO_HOSTS = {
    "nfsv4": "RecoveryBackend = rados_ng; Graceless = false; "
             "Lease_Lifetime = 5; Grace_Period = 5;",
    "append": ['RADOS_KV { nodeid = "supernfs"; pool = "cephfs_metadata"; '
               'namespace = "field"; }']}


@contextlib.contextmanager
def worker(cluster, folder, *words):
    """Checked work in the kernel client; give it back by `end_client`."""
    client = cluster.start_client(
        "python3", "-B", cluster.scripts / "eviction_work.py",
        f"/mnt/nfs/field-{time.time_ns()}", "0", folder, *words,
        name="b", seconds=170)
    try:
        until(lambda: (folder / "ready").exists() or
              client.poll() is not None, "the client works", 60)
        yield client
    finally:
        client.terminate()
        client.wait(30)


def lose(cluster, names, folder, fsal="CEPH_ASYNC", block=""):
    """What the client said, after these losses."""
    options = TWO_HOSTS if names == MOVED else {}
    cluster.start_second(fsal=fsal, block=block, **options)
    log = Log(LOGS / "ganesha-b.log")
    away = Away(cluster, folder)
    try:
        # Locks do not survive UNLISTED, with its option neither; nor another
        # host whose Server_Scope is another, as the reporter had it, with any
        # FSAL (docs/high-availability.md).
        words = ["nolocks"] if names in (UNLISTED, MOVED) else []
        with worker(cluster, folder, *words) as client:
            for count, name in enumerate(names, 1):
                getattr(away, name)()
                if fsal == "CEPH_ASYNC" and names == EVICTED:
                    until(lambda n=count: len(log.matching(SERVES)) >= n,
                          f"{name}: a new CephFS client serves", PAUSE_S)
                time.sleep(2)       # of work, if the machine is quick
            (folder / "stop").touch()
            printed = cluster.end_client(
                client, PAUSE_S if fsal == "CEPH_ASYNC" else AWAY_S)
        return json.loads(printed.splitlines()[-1])
    finally:
        if fsal == "CEPH":          # it may hang
            cluster.run("ganesha", "kill9", "--name", "b")
            cluster.evict_all_but_a()
        cluster.stop_second()


@pytest.fixture(scope="module")
def evicted(cluster, tmp_path_factory):
    with cluster.may_lose():
        return lose(cluster, EVICTED, tmp_path_factory.mktemp("evicted"))


def no_error(said, record, name):
    """An error would have ended the client with a status of its own.  It has
    worked before the loss and after it: see there."""
    record(f"{name}: the client's longest pause {said['longest']} s, "
           f"{said['rounds']} rounds of work")
    assert said["rounds"] >= ROUNDS
    assert said["longest"] < PAUSE_S


def test_tracker_42085_evicted_and_blocklisted(evicted, record):
    """Ceph tracker 42085: a client that was evicted does not come back."""
    no_error(evicted, record, "tracker_42085")


def test_tracker_42271_blocklist_taken_back(evicted, record):
    """Ceph tracker 42271: taken off the blocklist, still no reconnect."""
    no_error(evicted, record, "tracker_42271")


def test_tracker_65647_evicted_without_blocklist(cluster, tmp_path, record):
    """Ceph tracker 65647: evicted without blocklist, it shall reconnect.
    As it is libcephfs hangs then (docs/limits.md); with this option not."""
    no_error(lose(cluster, UNLISTED, tmp_path, block=STALE), record,
             "tracker_65647")


def test_ganesha_758_failover_to_the_other_host(cluster, tmp_path, record):
    """nfs-ganesha 758: after a failover clients wait for 300 s."""
    with cluster.may_lose():
        said = lose(cluster, MOVED, tmp_path)
    no_error(said, record, "ganesha_758")


# --- steps without a kernel client of the lab's

NO_REGISTRATION = (r"Cannot register NFS V\d on", "stack backtrace follows")


def test_ganesha_1387_reads_by_libnfs(cluster, record):
    """nfs-ganesha 1387: a crash in READ of NFSv3, by many clients of libnfs
    from Python."""
    record("ganesha_1387: " + field_protocol.ganesha_1387(
        cluster, "CEPH_ASYNC"))


def test_ganesha_1390_changes_beside_a_delegation(cluster, record):
    """nfs-ganesha 1390: cases of nfstest_delegation fail."""
    with cluster.may_delegate():
        record("ganesha_1390: " + field_protocol.ganesha_1390(
            cluster, "CEPH_ASYNC"))


def test_ganesha_1400_without_rpcbind(cluster, tmp_path, record):
    """nfs-ganesha 1400: it runs, and does not listen."""
    with cluster.expects(*NO_REGISTRATION):
        record("ganesha_1400: " + field_protocol.ganesha_1400(
            cluster, "CEPH_ASYNC", folder=tmp_path))


def test_ceph_70675_nfsv3_gone_after_an_upgrade(cluster, tmp_path, record):
    """Ceph 70675, tracker 66121: an upgrade takes NFSv3 from its clients."""
    record("ceph_70675: " + field_protocol.ceph_70675(
        cluster, "CEPH_ASYNC", folder=tmp_path))


# --- the table

def rows():
    """{name of the steps: cells} of docs/comparison.md."""
    found = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| [") and len(cells) == 6:
            kind, number = re.match(r"\[(\w+) (\d+)\]", cells[0]).groups()
            found[f"{kind}_{number}"] = cells
    return found


def functions(path):
    return [node.name for node in
            ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.FunctionDef)]


def test_each_row_has_its_test_and_each_test_its_row():
    mine = {name for name in functions(Path(__file__))
            if re.match(r"test_(ganesha|tracker|ceph)_\d+", name)}
    table = rows()
    assert len(table) >= 18
    told = set()
    for name, (_, _, *outcomes, test) in table.items():
        named = re.findall(r"`([\w/]+\.py)::(\w+)`|`(test_\w+)`", test)
        assert named, f"{name} names no test"
        for file, function, here in named:
            path = ROOT / file if file else Path(__file__)
            assert (function or here) in functions(path), (name, test)
            told.add(here)
        assert any(here.startswith(f"test_{name}_") for *_, here in named)
        assert outcomes[2].startswith("passes") or \
            re.search(r"\((limits|install)\.md#", outcomes[2]), name
        assert all(re.match("passes|fails|not run", cell)
                   for cell in outcomes), name
    assert mine <= told, f"without a row: {mine - told}"


@pytest.mark.evidence
@pytest.mark.parametrize("names", (PLAIN, DELEGATED))
@pytest.mark.parametrize("block", ("", "async = true;"))
def test_fsal_ceph_goes_through_the_same(cluster, record, names, block):
    """The table says of it what it does here."""
    options = {} if names == PLAIN else {"nfsv4": NFSV4,
                                         "export_block": EXPORT}
    results = steps(cluster, names, fsal="CEPH", block=block, **options)
    table = rows()
    wrong = []
    for name in names:
        went = results[name]["went"]
        record(f"FSAL_CEPH {block}: {name}: {went}, {results[name]['note']}, "
               f"{results[name]['seconds']} s, lives: {results['lives']}")
        if not table[name][3 if block else 2].startswith(went.split(":")[0]):
            wrong.append(name)
    assert not wrong


@pytest.mark.evidence
@pytest.mark.parametrize("name", EVICTED + UNLISTED + MOVED)
def test_fsal_ceph_is_taken_away(cluster, tmp_path, record, name):
    """The table says of it what it does here."""
    try:
        said = lose(cluster, (name,), tmp_path, "CEPH")
        went = f"passes, {said}"
    except (AssertionError, subprocess.TimeoutExpired) as err:
        went = "fails: " + " ".join(str(err).split())[-200:]
    record(f"FSAL_CEPH: {name}: {went}")
    assert rows()[name][2].startswith(re.match(r"\w+", went)[0])


@pytest.mark.evidence
@pytest.mark.parametrize("name", (
    "ganesha_1387", "ganesha_1390", "ganesha_1400", "ceph_70675"))
@pytest.mark.parametrize("block", ("", "async = true;"))
def test_fsal_ceph_by_protocol(cluster, till_end, tmp_path, record, name,
                               block):
    """The table says of it what it does here."""
    if block and name in ("ganesha_1400", "ceph_70675"):
        pytest.skip("what is done has nothing to do with this key")
    till_end(cluster.may_delegate())
    if name == "ganesha_1400":
        till_end(cluster.expects(*NO_REGISTRATION))
    steps_of = getattr(field_protocol, name)
    options = {"block": block} if block else {}
    if name in ("ganesha_1400", "ceph_70675"):
        options["folder"] = tmp_path
    try:
        said, like_ours = steps_of(cluster, "CEPH", **options), True
    except LabFailed:
        raise
    except AssertionError as err:
        said, like_ours = " ".join(str(err).split())[:200], False
    record(f"FSAL_CEPH {block}: {name}: {said}")
    known = rows()[name]
    # What Ganesha does wrong is in CEPH_ASYNC's cell as well.
    ours, its = (re.match(r"\w+", known[column])[0]
                 for column in (4, 3 if block else 2))
    assert like_ours == (its == ours)
