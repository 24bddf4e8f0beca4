# SPDX-License-Identifier: LGPL-3.0-or-later
"""Delegations: granted, recalled by whoever comes, revoked from who does not
answer; the data are right and the mount lives.

The lease is short: libcephfs gives up the whole mount when a delegation is
not back within two leases and five seconds (delegations.h).
"""
import threading
import time

import dbus
import pytest

import bus
from fuse import Fuse
from lab import LOGS, SECOND_PORT, Log
from nfs import nfs4

LEASE_S = 4
OTHER = 9
REVOKED_WITHIN_S = 2 * LEASE_S + 10
NFSV4 = f"Lease_Lifetime = {LEASE_S}; Delegations = true;"
EXPORT = "Delegations = rw;"
DATA = b"as it was at first"


def start(cluster):
    cluster.ganesha("restart", "--fresh", "--export-block", EXPORT,
                    "--nfsv4", NFSV4)


# The holder does not answer, or cannot be asked.
REVOKED = "Revoking delegation|Delegation will be revoked"


@pytest.fixture(scope="module")
def gateways(cluster):
    with cluster.may_delegate():
        start(cluster)
        cluster.start_second(nfsv4=NFSV4, export_block=EXPORT)
        cluster.mount = Fuse()
        yield cluster
        cluster.mount.end()
        cluster.stop_second()
        cluster.ganesha("stop")


@pytest.fixture
def path(gateways):
    name = f"delegated-{time.time_ns()}"
    (gateways.mount.folder / name).write_bytes(DATA)
    return name


@pytest.fixture
def clients():
    made = []

    def make(port=2049, **options):
        made.append(nfs4.Client(port, f"client-{port}-{time.time_ns()}",
                                **options))
        return made[-1]
    yield make
    for client in made:
        client.leave()


def delegated(client, path, access, kind, **options):
    """An open with a delegation.  CephFS grants none while it has not back
    what who wrote the file just now holds of it."""
    end = time.monotonic() + 10
    while (file := client.open(path, access=access, **options)).kind != kind:
        file.close()
        assert time.monotonic() < end, f"{file.kind} instead of {kind}"
        time.sleep(0.2)
    return file


def recalled(client, file, seconds=20):
    """The seconds until the recall came; a recall names what was given."""
    began = time.monotonic()
    when, stateid, handle = client.recalls.get(timeout=seconds)
    assert (stateid[4:], handle) == (file.delegation[4:], file.handle)
    return when - began


class Beside(threading.Thread):
    """A call that a delegation keeps waiting; `end` gives its result."""

    def __init__(self, call, *args):
        super().__init__(daemon=True)
        self.call, self.args, self.result, self.error = call, args, None, None
        self.began = time.monotonic()
        self.seconds = None
        self.start()

    def run(self):
        try:
            self.result = self.call(*self.args)
        except BaseException as err:  # noqa: BLE001 (told in `end`)
            self.error = err
        self.seconds = time.monotonic() - self.began

    def end(self, cluster, seconds=40):
        self.join(seconds)
        if self.is_alive():
            cluster.stacks()
            raise AssertionError(f"no end within {seconds} s; Ganesha's "
                                 "stacks are in the folder of logs")
        if self.error:
            raise self.error
        return self.result


def writer(cluster, clients, kind, path):
    """A function that overwrites the file as that kind of client."""
    if kind == "ceph":
        def write():
            with open(cluster.mount.folder / path, "r+b") as file:
                file.write(b"overwritten")
        return write
    client = clients(2049 if kind == "a" else SECOND_PORT)

    def write():
        file = client.open(path, access=nfs4.WRITE, want=nfs4.WANT_NO_DELEG)
        file.write(0, b"overwritten")
        file.close()
    return write


def reader(cluster, clients, kind, path):
    if kind == "ceph":
        return (cluster.mount.folder / path).read_bytes
    client = clients(2049 if kind == "a" else SECOND_PORT)

    def read():
        file = client.open(path, access=nfs4.READ, want=nfs4.WANT_NO_DELEG)
        data = file.read(0, 1000)
        file.close()
        return data
    return read


def test_off_by_default(lab, clients):
    client = clients()
    file = client.open(f"plain-{time.time_ns()}", create=nfs4.UNCHECKED)
    file.close()
    assert file.kind == nfs4.NO_DELEG


@pytest.mark.parametrize("state", ["open", "lock"])
def test_what_is_no_delegation_is_not_returned(lab, till_end, clients, state):
    """Ganesha does not look whether the state is one.  It would drop the state
    of a lock and keep its owner, and then never end the client's expiry."""
    till_end(lab.expects("release_lease_lock :STATE :MAJ :Unable to unlock"))
    one, other = clients(), clients()
    file = one.open(f"returned-{time.time_ns()}", create=nfs4.UNCHECKED)
    file.lock(nfs4.WRITE_LOCK, 0, 1)
    stateid = file.stateid if state == "open" else \
        file.lock_stateids[b"locker"]
    with pytest.raises(nfs4.Failed):
        one.return_delegation(file.handle, stateid)
    assert other.test_lock(file.handle, nfs4.WRITE_LOCK, 0, 1)
    file.unlock(0, 1)
    file.close()
    one.verifier = b"restart."
    one.connect()               # all that it had is dropped


@pytest.mark.parametrize("kind", ("a", "b", "ceph"))
def test_read_delegation_is_recalled_by_a_writer(
        gateways, clients, path, record, kind):
    holder = clients()
    file = delegated(holder, path, nfs4.READ, nfs4.READ_DELEG)
    # others may read
    assert reader(gateways, clients, kind, path)() == DATA
    assert holder.recalls.empty()
    assert holder.read(file.handle, 0, 100, file.delegation) == DATA

    change = Beside(writer(gateways, clients, kind, path))
    recalled(holder, file)
    assert change.is_alive()
    file.return_delegation()
    change.end(gateways)
    record(f"a writer ({kind}) waited {change.seconds:.2f} s for a read "
           "delegation that is returned at once")
    assert file.read(0, 11) == b"overwritten"
    file.close()


@pytest.mark.parametrize("kind", ("a", "b", "ceph"))
def test_write_delegation_is_recalled_by_a_reader(
        gateways, clients, path, record, kind):
    holder = clients()
    file = delegated(holder, path, nfs4.BOTH, nfs4.WRITE_DELEG)
    assert holder.write(file.handle, 0, b"AS", file.delegation) == 2
    look = Beside(reader(gateways, clients, kind, path))
    recalled(holder, file)
    assert look.is_alive()
    file.return_delegation()
    assert look.end(gateways) == b"AS" + DATA[2:]
    record(f"a reader ({kind}) waited {look.seconds:.2f} s for a write "
           "delegation that is returned at once")
    file.close()


@pytest.mark.parametrize("kind", ("a", "b", "ceph"))
def test_what_is_written_after_the_recall_is_not_lost(
        gateways, clients, path, record, kind):
    """A client that kept data back writes them when it hears the recall.
    When it is the MDS who recalls, it wants the right to write back already:
    the write gets through all the same, and the delegation is returned."""
    holder = clients()
    file = delegated(holder, path, nfs4.BOTH, nfs4.WRITE_DELEG)
    look = Beside(reader(gateways, clients, kind, path))
    recalled(holder, file)
    began = time.monotonic()
    assert holder.write(file.handle, 0, b"AS", file.delegation) == 2
    seconds = time.monotonic() - began
    file.return_delegation()
    said = look.end(gateways)
    record(f"a write after the recall by a reader ({kind}) took "
           f"{seconds:.1f} s, the lease is {LEASE_S} s; the reader read "
           f"{said[:2]}")
    assert seconds < 2
    assert reader(gateways, clients, "b", path)() == b"AS" + DATA[2:]
    file.close()


AFTER_RECALL = {
    "read": lambda holder, file: holder.read(
        file.handle, 0, 100, file.delegation),
    "attributes": lambda holder, file: holder.change_and_size(file.handle),
    "size": lambda holder, file: holder.set(
        file.handle, file.delegation, size=3),
    "mode": lambda holder, file: holder.set(file.handle, mode=0o600),
}


@pytest.mark.parametrize("what", AFTER_RECALL)
@pytest.mark.parametrize("kind", ("b", "ceph"))
def test_the_holder_works_on_after_the_recall(
        gateways, clients, path, record, kind, what):
    """What else a client asks for before it returns a delegation."""
    holder = clients()
    file = delegated(holder, path, nfs4.BOTH, nfs4.WRITE_DELEG)
    change = Beside(writer(gateways, clients, kind, path))
    recalled(holder, file)
    began = time.monotonic()
    AFTER_RECALL[what](holder, file)
    seconds = time.monotonic() - began
    file.return_delegation()
    change.end(gateways)
    record(f"{what} by the holder after the recall by a writer ({kind}) took "
           f"{seconds:.1f} s")
    assert seconds < 2
    file.close()


def test_close_and_reopen_while_delegated(gateways, clients, path):
    """The delegation stays when its open goes: it keeps the handle."""
    holder = clients()
    owner = b"an owner"
    file = delegated(holder, path, nfs4.BOTH, nfs4.WRITE_DELEG, owner=owner)
    file.close()
    change = Beside(writer(gateways, clients, "b", path))
    recalled(holder, file)
    assert change.is_alive()
    file.return_delegation()
    change.end(gateways)

    time.sleep(11)      # Ganesha delegates no file so soon after a recall
    file = delegated(holder, path, nfs4.READ, nfs4.READ_DELEG, owner=owner)
    file.close()
    change = Beside(writer(gateways, clients, "ceph", path))
    recalled(holder, file)
    file.return_delegation()
    change.end(gateways)


@pytest.mark.parametrize("access", (nfs4.READ, nfs4.WRITE, nfs4.BOTH))
def test_the_holder_opens_once_more(gateways, clients, path, access):
    """What libcephfs takes for a conflict with itself."""
    holder = clients()
    file = delegated(holder, path, nfs4.BOTH, nfs4.WRITE_DELEG)
    file.close()
    began = time.monotonic()
    again = holder.open(path, access=access, want=nfs4.WANT_NO_DELEG)
    assert time.monotonic() - began < 2
    recalled(holder, file)
    file.return_delegation()
    change = Beside(writer(gateways, clients, "b", path))
    change.end(gateways, seconds=10)
    again.close()


@pytest.mark.parametrize("kind", ("b", "ceph"))
def test_who_does_not_answer_is_revoked(gateways, till_end, clients, path,
                                        record, kind):
    """After its time, and the mount lives on: another file, and this one."""
    till_end(gateways.expects(REVOKED))
    holder, other = clients(), clients()
    file = delegated(holder, path, nfs4.BOTH, nfs4.WRITE_DELEG)
    holder.answers_recalls = False
    change = Beside(writer(gateways, clients, kind, path))
    recalled(holder, file)
    while change.is_alive():
        aside = other.open(f"{path}-aside", create=nfs4.UNCHECKED,
                           want=nfs4.WANT_NO_DELEG)
        assert aside.write(0, b"served") == 6
        aside.close()
        assert time.monotonic() - change.began < REVOKED_WITHIN_S + 20
        time.sleep(0.5)
    change.end(gateways)
    record(f"a writer ({kind}) waited {change.seconds:.1f} s for a "
           f"delegation that is not returned; the lease is {LEASE_S} s")
    assert change.seconds < REVOKED_WITHIN_S
    with pytest.raises(nfs4.Failed) as refusal:
        holder.write(file.handle, 0, b"too late", file.delegation)
    assert refusal.value.status == nfs4.DELEG_REVOKED
    after = other.open(path)
    assert after.read(0, 11) == b"overwritten"
    after.close()


def test_a_dead_holder_keeps_nobody_waiting(gateways, till_end, clients, path,
                                            record):
    till_end(gateways.expects(REVOKED))
    holder = nfs4.Client(2049, "to die")
    delegated(holder, path, nfs4.BOTH, nfs4.WRITE_DELEG)
    holder.die()
    change = Beside(writer(gateways, clients, "b", path))
    change.end(gateways)
    record(f"a writer waited {change.seconds:.1f} s for a delegation of a "
           f"dead client; the lease is {LEASE_S} s")
    assert change.seconds < REVOKED_WITHIN_S


def test_the_end_with_delegations_outstanding(gateways, clients, path):
    """SIGTERM: in time, nothing left behind that others would wait for."""
    holder = nfs4.Client(2049, "keeps it")
    delegated(holder, path, nfs4.BOTH, nfs4.WRITE_DELEG)
    started = time.monotonic()
    gateways.ganesha("stop", "--timeout", "30")
    assert time.monotonic() - started < 20
    holder.die()
    change = Beside(writer(gateways, clients, "ceph", path))
    change.end(gateways, seconds=10)
    gateways.ganesha("start")


def test_the_end_during_a_recall(gateways, clients, path):
    """Ganesha drops the recall, which has the export.  It says that the export
    was left, of the cache above ours first; then ours goes all the same."""
    holder = clients(answers_recalls=False)
    file = delegated(holder, path, nfs4.READ, nfs4.READ_DELEG)
    change = Beside(writer(gateways, clients, "ceph", path))
    recalled(holder, file)
    pid = gateways.stat()["ganesha"]["a"]["pid"]
    log = Log(LOGS / "ganesha-a.log")
    with gateways.expects(*(rf"Extra fsal references \(1\) .* to FSAL {name}"
                            for name in ("MDCACHE", "CEPH_ASYNC"))):
        gateways.ganesha("stop", "--timeout", "30")
    assert log.matching("FSAL CEPH_ASYNC unloaded")
    assert not gateways.sessions(pid)
    holder.die()
    change.end(gateways, seconds=10)
    gateways.ganesha("start")


@pytest.mark.parametrize("answers", (True, False))
def test_an_export_goes_with_delegations_outstanding(
        gateways, clients, path, tmp_path, record, answers):
    """RemoveExport, one of them being recalled: in time, and others get at
    the file."""
    def call(name, *args):
        bus.call(name, "exportmgr", *args)
    conf = tmp_path / "export.conf"
    conf.write_text(
        f"EXPORT {{ Export_Id = {OTHER}; Path = /; Pseudo = /other; "
        "Protocols = 3,4; Access_Type = RW; Squash = none; SecType = sys; "
        f"{EXPORT} FSAL {{ Name = CEPH_ASYNC; }} }}", encoding="ascii")
    call("AddExport", str(conf), f"EXPORT(Export_Id={OTHER})")
    holder = clients(pseudo="/other")
    file = delegated(holder, path, nfs4.BOTH, nfs4.WRITE_DELEG)
    # Not by ceph-fuse: what that writes back later recalls this one, too.
    other = clients().open(f"{path}-2", create=nfs4.UNCHECKED,
                           want=nfs4.WANT_NO_DELEG)
    other.write(0, DATA)
    other.close()
    delegated(holder, f"{path}-2", nfs4.READ, nfs4.READ_DELEG)
    holder.answers_recalls = answers
    change = Beside(writer(gateways, clients, "ceph", path))
    recalled(holder, file)
    began = time.monotonic()
    call("RemoveExport", dbus.UInt16(OTHER))
    seconds = time.monotonic() - began
    change.end(gateways)
    record(f"RemoveExport with two delegations outstanding (answers: "
           f"{answers}) took {seconds:.1f} s")
    assert seconds < 5
    holder.die()
    again = Beside(writer(gateways, clients, "ceph", f"{path}-2"))
    again.end(gateways, seconds=10)
    Beside(writer(gateways, clients, "a", path)).end(gateways, seconds=10)


def test_a_timeout_longer_than_cephs_is_told(cluster, second):
    """Ceph ends a session that keeps capabilities so long: no delegations
    then, and a line that says why."""
    def started(lease_s):
        cluster.stop_second()
        return second(nfsv4=f"Lease_Lifetime = {lease_s}; Delegations = true;",
                      export_block=EXPORT)
    assert not started(144).log.matching("no delegations")
    said = started(145)
    assert said.log.matching("no delegations: NFSv4 Lease_Lifetime = 145 s "
                             "needs 300 s to get one back, Ceph allows 300 s")
    client = nfs4.Client(SECOND_PORT, "no luck")
    file = client.open(f"refused-{time.time_ns()}", create=nfs4.UNCHECKED)
    assert file.kind == nfs4.NO_DELEG
    assert file.write(0, b"as ever") == 7
    file.close()
    client.leave()


def test_none_where_ganesha_crashes(cluster, second):
    """Ganesha 5.9: no OPEN gets one, and a line at load says so."""
    cluster.stop_second()
    said = second(nfsv4=NFSV4, export_block=EXPORT)
    assert said.log.matching("export 2: Delegations has no effect")
    client = nfs4.Client(SECOND_PORT, f"none-{time.time_ns()}")
    name = f"not-delegated-{time.time_ns()}"
    client.open(name, create=nfs4.UNCHECKED, want=nfs4.WANT_NO_DELEG).close()
    for access in (nfs4.READ, nfs4.WRITE, nfs4.BOTH):
        file = client.open(name, access=access)
        assert file.kind in (nfs4.NO_DELEG, 3)
        file.close()
    client.leave()
