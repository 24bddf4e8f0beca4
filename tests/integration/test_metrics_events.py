# SPDX-License-Identifier: LGPL-3.0-or-later
"""What is counted besides plain reads and writes, made to happen for real;
Prometheus and the log tell the same number.
"""
import os
import re
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import metrics_outputs as outputs
from faults import Faults
from fuse import Fuse
from lab import LOGS, Log
from lab_program import ceph, until
from nfs import nfs4

# A tick of the metrics, and one of the log's line.
SETTLE_S = 2.5
BLOCK = 4096
MDS_PID = Path("/var/lib/casync-lab/ceph/run/mds.a.pid")
DQUOT = 69
# So that no callback can come before its call has returned.
LATER = "any delay=20"

NAMES = ("eof_reads_total", "completed_inline_total", "deferred_closes_total",
         "caps_released_total", "caps_kept_total", "invalidations_total")


@pytest.fixture(scope="module")
def counted(cluster):
    """Both outputs on, faults to inject; files without a state of NFSv4 are
    opened for each request alone."""
    cluster.ganesha("restart", "--faults", "--fsal", "CEPH_ASYNC", "--export",
                    "Stats_Interval = 1;", "--block", "", "--core",
                    "Enable_Metrics = true;", "--append",
                    "MDCACHE { Close_Fast = true; }")
    return cluster


@pytest.fixture
def faults(counted):
    shim = Faults()
    yield shim
    shim.clear()


@pytest.fixture
def fuse():
    mount = Fuse()
    yield mount
    mount.end()


@pytest.fixture
def client(counted):
    client = nfs4.Client(2049, f"events-{time.time_ns()}")
    yield client
    client.leave()


@pytest.fixture
def full(fuse):
    """A folder that has room for two blocks."""
    name = f"full-{time.time_ns()}"
    folder = fuse.folder / name
    folder.mkdir(mode=0o777)
    os.setxattr(folder, "ceph.quota.max_bytes", str(2 * BLOCK).encode())
    return name


class Watch:
    """What has been counted since it was made.

    Prometheus and the log are up to a second late, and
    what the MDS sends may be, too: they have to come to agree.
    """

    def __init__(self):
        time.sleep(SETTLE_S)
        self.before = self._now()
        self.log = Log(LOGS / "ganesha-a.log")

    @staticmethod
    def _now():
        return {name: outputs.prometheus(name, export="1") for name in NAMES}

    def _came(self):
        told = outputs.log_numbers(self.log)
        return {name: {value - self.before[name], told[name]}
                for name, value in self._now().items()}

    def came(self):
        """Name → number, the same at each output."""
        time.sleep(SETTLE_S)
        return agreed(self._came)


def agreed(look):
    """Name → number, once both outputs tell the same."""
    end = time.monotonic() + 10
    seen = look()
    while any(len(values) != 1 for values in seen.values()):
        assert time.monotonic() < end, f"the outputs do not agree: {seen}"
        time.sleep(0.5)
        seen = look()
    return {name: values.pop() for name, values in seen.items()}


def new_file(client, blocks=1):
    file = client.open(f"events-{time.time_ns()}", create=nfs4.UNCHECKED)
    file.write(0, b"e" * blocks * BLOCK)
    return file


def test_end_of_file(client):
    file = new_file(client, 4)
    watch = Watch()
    for _ in range(3):
        assert len(file.read(0, BLOCK)) == BLOCK
    for _ in range(5):
        assert not file.read(4 * BLOCK, BLOCK)
    # All of what there was: the end is asked for.
    assert len(file.read(3 * BLOCK, 2 * BLOCK)) == BLOCK
    assert watch.came()["eof_reads_total"] == 6
    file.close()


def test_callback_before_the_call_has_returned(client, faults, full):
    """Who writes beyond a quota is told at once, without an OSD; what takes
    its time is none of these."""
    faults.set(LATER)
    file = client.open("in", create=nfs4.UNCHECKED,
                       directory=client.lookup(full))
    watch = Watch()
    for _ in range(10):
        file.write(0, b"l" * BLOCK)
    assert watch.came()["completed_inline_total"] == 0
    faults.set()
    watch = Watch()
    for _ in range(7):
        with pytest.raises(nfs4.Failed) as failed:
            file.write(BLOCK, b"i" * 2 * BLOCK)
        assert failed.value.status == DQUOT
    assert watch.came()["completed_inline_total"] == 7
    file.close()


def test_close_by_a_worker(client):
    """Reads without a state, as NFSv3's are: Close_Fast gives each of them
    an fd of its own.  Those of an open file have its."""
    file = new_file(client)
    watch = Watch()
    for _ in range(6):
        assert len(client.read(file.handle, 0, BLOCK)) == BLOCK
    for _ in range(9):
        file.read(0, BLOCK)
    assert watch.came()["deferred_closes_total"] == 6
    file.close()


def test_what_the_mds_wants_back(client):
    """It is given what nobody uses; an open file stays."""
    file = new_file(client)     # first: the longest unused are wanted first
    names = [f"caps-{time.time_ns()}-{number}" for number in range(150)]
    for name in names:
        client.open(name, create=nfs4.UNCHECKED).close()
    watch = Watch()
    ceph("tell", "mds.0", "cache", "drop", "20")
    came = watch.came()
    # mds_min_caps_per_client is 100: so many may stay.
    assert came["caps_released_total"] >= 50
    assert came["caps_kept_total"] >= 1
    assert file.read(0, BLOCK) == b"e" * BLOCK
    file.close()


def test_what_others_change(client, fuse):
    """Each name that was listed here and that another client removes."""
    name = f"others-{time.time_ns()}"
    folder = fuse.folder / name
    folder.mkdir(mode=0o777)
    for number in range(40):
        (folder / str(number)).touch()
    assert len(client.readdir(client.lookup(name))[0]) == 40
    watch = Watch()
    for number in range(40):
        (folder / str(number)).unlink()
    # The first one takes the folder's capability back, and no more.
    assert watch.came()["invalidations_total"] >= 39
    assert not client.readdir(client.lookup(name))[0]


def test_a_name_that_waits_for_the_mds(client):
    """It keeps a worker; no READ or WRITE is in flight to say so."""
    mds = int(MDS_PID.read_text(encoding="ascii"))
    assert not outputs.prometheus("oldest_call_ms", export="1")
    os.kill(mds, signal.SIGSTOP)
    try:
        with ThreadPoolExecutor(1) as pool:
            made = pool.submit(client.open, f"waits-{time.time_ns()}",
                               create=nfs4.UNCHECKED)
            until(lambda: outputs.prometheus("oldest_call_ms",
                                             export="1") > 4000,
                  "a call has an age", seconds=15)
            assert not outputs.prometheus("oldest_in_flight_ms", export="1")
            os.kill(mds, signal.SIGCONT)
            made.result(30)
    finally:
        os.kill(mds, signal.SIGCONT)
    until(lambda: not outputs.prometheus("oldest_call_ms", export="1"),
          "no call has an age", seconds=10)


# --- the session; last, since it ends

SERVES, LOST = 1, 2


def state():
    """The same at each output."""
    log = Log(LOGS / "ganesha-a.log")
    time.sleep(SETTLE_S)
    told = re.findall(r"[:;] session_state (\d)", "\n".join(
        log.matching("export 1: 1 s: ")))
    assert told, "no line in the log"
    assert outputs.prometheus("session_state", export="1") == int(told[-1])
    return int(told[-1])


def ask():
    """A client that does no more than look; did it work?"""
    return subprocess.run(
        ["timeout", "20", "nfs-ls", "nfs://127.0.0.1/ceph?version=4"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, check=False).returncode == 0


def lose_session(lab):
    lab.evict(lab.stat()["ganesha"]["a"]["pid"])


def test_session_that_is_replaced(counted):
    assert ask()
    assert state() == SERVES
    before = outputs.prometheus("reconnects_total")
    lose_session(counted)
    until(lambda: outputs.prometheus("reconnects_total") == before + 1,
          "a reconnect is counted")
    assert ask()
    assert state() == SERVES
    assert 0 < outputs.prometheus("reconnect_ms") < 15_000
    assert not outputs.prometheus("locks_lost_total")


def test_session_that_is_lost_and_comes_back(counted, till_end):
    """Without a reconnect, as soon as its address is off the blocklist."""
    till_end(counted.expects("nfs4_Errno_verbose :NFS4 :CRIT :Error I/O error"))
    counted.ganesha("restart", "--block", "Reconnect = false;")
    assert ask()
    assert state() == SERVES
    assert outputs.prometheus("session_state",
                              client="admin@(default):/") == 1
    errors = outputs.prometheus("errors_total")
    lose_session(counted)
    until(lambda: not ask(), "it is noticed")
    assert state() == LOST
    # No READ and no WRITE came so far: nothing else tells of it.
    assert outputs.prometheus("errors_total") == errors
    ceph("osd", "blocklist", "clear")
    until(ask, "the session is back", pause=0.5)
    assert state() == SERVES
