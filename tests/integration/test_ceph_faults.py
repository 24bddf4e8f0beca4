# SPDX-License-Identifier: LGPL-3.0-or-later
"""A pool, a key, ceph.conf, the monitors, the OSD are taken away and given
back: what a client is answered meanwhile, what the log says, and that the
gateway serves again by itself.
"""
import json
import os
import signal
import time
from pathlib import Path

import cephfs
import pytest

from nfs3_requests import IO, JUKEBOX, OK, SERVES, Asker, content
from lab_program import LOGS, Log, ceph, until
from nfs import nfs3
from refusals import NO_EXPORT
from test_crash import bluestore  # noqa: F401 (pytest finds it here)
from test_stalled_osd import Flight, stands_still

ANSWER_S = 2        # each request of a healthy export
BACK_S = 25         # the longest pause between two tries is longer only later
MOUNT_S = 5
LOST_S = 30
# 60 for the figures of operations.md; in each run it is shorter.
MONS_AWAY_S = int(os.environ.get("CASYNC_MONS_AWAY_S", "33"))
MONS_UNNOTICED_S = 30    # the session_timeout of 60 s, less its renewal, 20 s
OSD_AWAY_S = 8
CONF = Path("/etc/ceph/ceph.conf")
MON_PID = Path("/var/lib/casync-lab/ceph/run/mon.a.pid")
CAPS = {"mon": "allow r", "mds": "allow rwp", "osd": "allow rw"}

EXPORT = """EXPORT {{
    Export_Id = {number}; Path = {path}; Pseudo = {pseudo};
    Protocols = 3,4; Access_Type = RW; Squash = none; SecType = sys;
    Transports = TCP; Attr_Expiration_Time = 0;
    FSAL {{ Name = CEPH_ASYNC; {more} }}
}}"""


def words(caps):
    return [word for pair in caps.items() for word in pair]


# --- a data pool is deleted

@pytest.fixture
def pool(lab):
    """An export with a data pool of its own; its name."""
    name = f"pool-{time.time_ns()}"
    ceph("osd", "pool", "create", name, "8")
    ceph("fs", "add_data_pool", "cephfs", name)
    fs = cephfs.LibCephFS(conffile=str(CONF))
    fs.mount()
    fs.mkdirs(f"/{name}", 0o755)
    fs.shutdown()
    lab.ganesha("restart", "--append", EXPORT.format(
        number=71, path=f"/{name}", pseudo="/pool",
        more=f'Data_Pool = "{name}";'))
    return name


def test_a_data_pool_is_deleted(lab, till_end, pool, record):
    """No zeros in place of data, and the other export does not notice."""
    till_end(lab.expects("files cannot be created: layout 'pool=",
                         "error code 5 in nfs3_read_cb",
                         "error code 5 in nfs3_write_cb"))
    gone, other = Asker("/pool"), Asker()
    until(lambda: gone.create("-first") == OK, "the MDS knows the pool")
    files = [gone.new_file(f"-{number}", blocks=4) for number in range(2)]
    healthy = other.new_file()
    ceph("fs", "rm_data_pool", "cephfs", pool)
    ceph("osd", "pool", "rm", pool, pool, "--yes-i-really-really-mean-it")
    until(lambda: gone.write(files[0]) != OK, "the gateway knows")
    gone.longest = other.longest = 0
    found = set()
    for number in range(8):
        for file in files:
            found.add(("READ", gone.read(file, number % 4)))
            found.add(("WRITE", gone.write(file, number % 4)))
            assert gone.look(file) == OK
        assert other.write(healthy) == other.read(healthy) == OK
    log = Log(LOGS / "ganesha-a.log")
    created = gone.create("-new")
    record(f"a deleted data pool: {sorted(found)}, CREATE {created}, within "
           f"{gone.longest:.2f} s; the other export within "
           f"{other.longest:.2f} s")
    assert found == {("READ", IO), ("WRITE", IO)}
    assert created != OK
    assert log.matching(r"layout 'pool=\d+' is refused")
    assert max(gone.longest, other.longest) < ANSWER_S
    gone.close()
    other.close()


# --- a key is taken away, or ceph.conf

class User:
    """A cephx user with an export of its own."""

    def __init__(self):
        self.name = f"user-{time.time_ns()}"
        self.ring = Path(f"/etc/ceph/ceph.client.{self.name}.keyring")
        self.conf = CONF
        self.key = ceph("auth", "get-or-create", f"client.{self.name}",
                        *words(CAPS))
        self.ring.write_text(self.key, encoding="ascii")

    def key_removed(self, lab):
        ceph("auth", "rm", f"client.{self.name}")

    def key_put_back(self):
        whole = self.ring.with_suffix(".whole")
        whole.write_text(self.key + "".join(
            f'\tcaps {who} = "{what}"\n' for who, what in CAPS.items()),
            encoding="ascii")
        ceph("auth", "import", "-i", whole)
        whole.unlink()

    def key_rotated(self, lab):
        ceph("auth", "rotate", f"client.{self.name}")

    def keyring_renewed(self):
        self.ring.write_text(ceph("auth", "get", f"client.{self.name}"),
                             encoding="ascii")

    def caps_taken(self, lab):
        ceph("auth", "caps", f"client.{self.name}", "mon", "allow r")

    def caps_given(self):
        ceph("auth", "caps", f"client.{self.name}", *words(CAPS))

    def conf_moved(self, lab):
        self.conf = CONF.with_suffix(".away")
        CONF.rename(self.conf)

    def conf_back(self):
        if self.conf != CONF:
            self.conf.rename(CONF)
            self.conf = CONF

    def evict(self):
        sessions = json.loads(ceph("-c", self.conf, "tell", "mds.0",
                                   "client", "ls"))
        for session in sessions:
            if session["client_metadata"].get("entity_id") == self.name:
                ceph("-c", self.conf, "tell", "mds.0", "client", "evict",
                     f"id={session['id']}")

    def end(self):
        self.conf_back()
        self.ring.unlink()
        ceph("auth", "rm", f"client.{self.name}", check=False)


@pytest.fixture
def user(lab):
    made = User()
    lab.ganesha("restart", "--append", EXPORT.format(
        number=72, path="/", pseudo="/user",
        more=f'User_Id = "{made.name}"; Mount_Timeout = {MOUNT_S}; '
             f'Ceph_Option = "keyring = {made.ring}";'))
    yield made
    made.end()
    lab.ganesha("restart", "--append", "")


DENIED = r"User_Id '{name}', starting libcephfs: Permission denied"
TAKEN = {
    "key removed": (User.key_removed, User.key_put_back, DENIED),
    "key rotated": (User.key_rotated, User.keyring_renewed, DENIED),
    "caps taken": (User.caps_taken, User.caps_given,
                   r"User_Id '{name}', reclaiming session .*no answer from"),
    "ceph.conf away": (User.conf_moved, User.conf_back,
                       r"Ceph_Conf '{conf}': No such file"),
}


@pytest.mark.parametrize("what", TAKEN)
def test_no_new_client_can_be_made(lab, till_end, user, record, what):
    """Its session goes on without what was taken, until it is evicted."""
    take, give, pattern = TAKEN[what]
    pattern = pattern.format(name=user.name, conf=CONF)
    till_end(lab.expects(pattern))
    asker, other = Asker("/user"), Asker()
    file, healthy = asker.new_file(blocks=2), other.new_file()
    log = Log(LOGS / "ganesha-a.log")
    take(user, lab)
    time.sleep(1)
    assert asker.write(file, 1) == OK, "the session has its tickets"
    user.evict()
    until(lambda: asker.write(file) == JUKEBOX, "the loss is noticed")
    asker.longest = other.longest = 0

    def told():
        assert asker.write(file) == asker.look(file) == JUKEBOX
        assert asker.read(file) == JUKEBOX
        assert other.write(healthy) == OK
        return log.matching(pattern)
    until(told, "the log says why", seconds=LOST_S)
    give(user)
    seconds, others = asker.served_after(lambda: asker.write(file), BACK_S)
    record(f"{what}, then evicted: JUKEBOX within {asker.longest:.2f} s, "
           f"served {seconds:.1f} s after it was put back")
    assert others <= {JUKEBOX}
    assert max(asker.longest, other.longest) < ANSWER_S
    assert len(log.matching(SERVES)) == 1
    assert asker.content_is(file) and asker.content_is(file, 1)
    asker.close()
    other.close()


# --- all monitors are away

@pytest.fixture
def monitors():
    """monitors(False): they stand still."""
    pid = int(MON_PID.read_text(encoding="ascii"))

    def make(yes):
        os.kill(pid, signal.SIGCONT if yes else signal.SIGSTOP)
        if not yes:
            until(lambda: stands_still(pid), "it stands still", pause=0.01)
    yield make
    make(True)


def test_the_monitors_are_away(lab, till_end, monitors, second, record):
    """An MDS that has not heard of one for 15 s (mds_beacon_grace) lets
    requests wait, and renews no session.  So files that are open are served
    until the session's time is up.  A gateway that starts meanwhile says what
    is missing."""
    till_end(lab.expects("no answer from the cluster in time", *NO_EXPORT))
    asker = Asker()
    file = asker.new_file(blocks=8)
    creates, writes = Flight(asker.connection), Flight(asker.connection)
    monitors(False)
    began = time.monotonic()
    gateway = second(block=f"Mount_Timeout = {MOUNT_S};", timeout=100,
                     check=False)
    asker.longest = 0
    rounds = 0
    while time.monotonic() - began < MONS_UNNOTICED_S:
        assert asker.write(file, rounds % 8) == OK
        assert asker.content_is(file, rounds % 8)
        if rounds % 10 == 0:
            creates.send(rounds, nfs3.CREATE, nfs3.create_arguments(
                asker.root, f"{asker.name}-{rounds}"))
        rounds += 1
        time.sleep(0.5)
    while time.monotonic() - began < MONS_AWAY_S:
        writes.write(writes.sent, file, content(writes.sent))
        time.sleep(1)
    waiting = [flight.sent - len(flight.results)
               for flight in (creates, writes)]
    monitors(True)
    began = time.monotonic()
    until(creates.complete, "all are made", seconds=BACK_S)
    until(writes.complete, "all are written", seconds=BACK_S)
    seconds = time.monotonic() - began
    record(f"no monitor for {MONS_AWAY_S} s: WRITEs and READs of the first "
           f"{MONS_UNNOTICED_S} s within {asker.longest:.2f} s each; "
           f"{waiting[0]} of {creates.sent} CREATEs and {waiting[1]} of "
           f"{writes.sent} later WRITEs waited, until {seconds:.1f} s after "
           "it was back")
    assert set(creates.results.values()) == {OK}
    assert {status for status, *_ in writes.results.values()} == {OK}
    assert asker.longest < ANSWER_S
    assert gateway.log.matching(
        r"no answer from the cluster in time \(Mount_Timeout")
    assert not lab.exported("/second"), "Ganesha drops such an export"
    asker.close()


# --- the OSD is killed and comes back

def test_the_osd_is_killed_and_back(bluestore, record):  # noqa: F811 (the fixture)
    """The only one: who reads and writes waits, and gets no error."""
    bluestore.ganesha("restart", "--block", "Slow_Op_Warn = 2000;")
    asker = Asker()
    file = asker.new_file(blocks=8)
    log = Log(LOGS / "ganesha-a.log")
    flight = Flight(asker.connection)
    bluestore.run("osd", "kill9")
    try:
        for number in range(8):
            flight.send(number, nfs3.WRITE, nfs3.write_arguments(
                file, number * 4096, b"w" * 4096), nfs3.write_result)
            flight.send(100 + number, nfs3.READ, nfs3.read_arguments(
                file, number * 4096, 4096), nfs3.read_result)
        asker.longest = 0
        end = time.monotonic() + OSD_AWAY_S
        while time.monotonic() < end:
            assert asker.look(file) == OK
            time.sleep(0.2)
        looked = asker.longest
        assert not flight.results, "the OSD was there"
    finally:
        bluestore.run("osd", "start")
    began = time.monotonic()
    until(flight.complete, "all are answered", seconds=60)
    seconds = time.monotonic() - began
    record(f"the OSD killed for {OSD_AWAY_S} s: GETATTR within {looked:.2f} "
           f"s, 8 READs and 8 WRITEs wait; answered {seconds:.1f} s after "
           "it was started")
    assert {result[0] for result in flight.results.values()} == {OK}
    assert looked < ANSWER_S
    assert log.matching("slow request")
    assert nfs3.read(asker.connection, file, 0, 4096) == b"w" * 4096
    asker.close()
