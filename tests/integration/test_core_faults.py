# SPDX-License-Identifier: LGPL-3.0-or-later
"""Faults of Ganesha's core, with any FSAL.  The day one fails, Ganesha is
mended: take it out of docs/limits.md, and of tests/fuzz/wire_calls.py, which
does not send what ends a daemon.

With PATCHED_GANESHA=DIR the daemon's library is DIR's, as ci/upstream.sh DIR
builds it from docs/upstream/.  Each test then asks for the right answer.
"""
import grp
import os
import resource
import struct
import time
from pathlib import Path

import dbus
import pytest

import bus
from gateway_clock import SEEN_S, GatewayClock
from lab import SECOND_PORT
from lab_program import until
from nfs import nfs4, rpc
from nfs.xdr import number, opaque, wide

pytestmark = [
    pytest.mark.evidence,
    pytest.mark.parametrize("fsal", ["CEPH", "CEPH_ASYNC"]),
]

RANGE = nfs4.ANONYMOUS + wide(0) + wide(4096)
WITHOUT_HANDLE = {
    "ALLOCATE": (59, RANGE), "DEALLOCATE": (62, RANGE),
    "READ_PLUS": (68, nfs4.ANONYMOUS + wide(0) + number(4096)),
    # of a whole file system
    "LAYOUTRETURN": (51, struct.pack(">IIII", 0, 1, 1, 2))}
HELD_S = 8
NOFILEHANDLE, BAD_STATEID, NOT_SAME = 10020, 10025, 10027
BADOWNER, EXPIRED, RESOURCE, BADSESSION = 10039, 10011, 10018, 10052
RETRY_UNCACHED_REP = 10068
FOLDER = os.environ.get("PATCHED_GANESHA")
STOCK = not FOLDER
WRAPPER = f"env LD_LIBRARY_PATH={FOLDER}" if FOLDER else ""


@pytest.fixture
def start(cluster, second, fsal):
    """Starts a daemon by start(…), whose end is expected."""
    def begin(clock=None, **keys):
        wrapper = f"{clock.wrapper() if clock else ''} {WRAPPER}".strip()
        result = second(fsal, wrapper=wrapper, **keys)
        resource.prlimit(result.pid, resource.RLIMIT_CORE, (0, 0))
        if FOLDER:
            assert f"{FOLDER}/libganesha_nfsd.so" in \
                Path(f"/proc/{result.pid}/maps").read_text()
        return result
    yield begin
    if pid_of(cluster):     # it may end before we do it
        cluster.run("ganesha", "kill9", "--name", "b", check=False)
    cluster.evict_all_but_a()


@pytest.fixture
def gateway(start):
    return start()


def pid_of(cluster):
    return cluster.stat()["ganesha"]["b"]["pid"]


def client(name):
    return nfs4.Client(SECOND_PORT, f"{name} {time.time_ns()}")


def status_of(call, *arguments, **options):
    """0, or the error of an operation.  "ended" if there is no answer."""
    try:
        call(*arguments, **options)
    except nfs4.Failed as err:
        return err.status
    except rpc.Rejected:
        return "rejected"
    except (OSError, TimeoutError):
        return "ended"
    return 0


def stays_or_ends(cluster, one, right, status):
    """The stock daemon ends; a patched one gives the RIGHT answer."""
    assert status == ("ended" if STOCK else right)
    one.die()
    if STOCK:
        until(lambda: not pid_of(cluster), "ganesha.nfsd ends", 10)
    assert bool(pid_of(cluster)) != STOCK


@pytest.mark.parametrize("operation", WITHOUT_HANDLE)
def test_an_operation_without_a_handle(cluster, gateway, operation):
    """One COMPOUND of anybody who reaches the port: no export is named in
    it."""
    one = client("no handle")
    stays_or_ends(cluster, one, NOFILEHANDLE, status_of(
        one.compound, (*WITHOUT_HANDLE[operation], None), seconds=5))


def test_a_write_without_its_data(cluster, gateway):
    """Ganesha asks for as many bytes as the count says before it looks for
    them.  It ends where the system does not promise that many."""
    one = client("no data")
    taken = int(Path(f"/proc/{gateway.pid}/statm").read_text().split()[0]) * \
        resource.getpagesize()
    resource.prlimit(gateway.pid, resource.RLIMIT_AS,
                     (taken + (1 << 30), resource.RLIM_INFINITY))
    stays_or_ends(cluster, one, "rejected", status_of(
        one.compound, (38, nfs4.ANONYMOUS + wide(0) + number(0) +
                       number(0xfffffff0), None), seconds=5))


def test_a_close_of_a_lock(cluster, gateway, fsal):
    """CLOSE takes the stateid of a LOCK, and its list of locks for one of
    states."""
    one = client("close")
    opened = one.open(f"close-{fsal}", create=nfs4.UNCHECKED)
    opened.lock(nfs4.WRITE_LOCK, 0, 1)
    opened.stateid = opened.lock_stateids[b"locker"]
    stays_or_ends(cluster, one, BAD_STATEID, status_of(opened.close))


def test_a_stateid_of_another_client(cluster, gateway, record, fsal):
    """A LOCK goes by another client's OPEN.  When that client comes back as
    new, a thread of Ganesha goes round for ever, and its answer never comes."""
    victim, other = client("victim"), client("other")
    opened = victim.open(f"foreign-{fsal}", create=nfs4.UNCHECKED)
    status = status_of(other.compound, nfs4.put(opened.handle), (
        12, struct.pack(">IIQQII", nfs4.WRITE_LOCK, 0, 0, 1, 1, 0) +
        opened.stateid + number(0) + wide(other.clientid) + opaque(b"other"),
        lambda reply: reply.fixed(16)))
    assert status == (0 if STOCK else BAD_STATEID)
    if STOCK:
        goes_round(gateway, victim, record, fsal)
    victim.die()
    other.die()


def goes_round(gateway, one, record, fsal):
    """ONE comes back as a new client, and gets no answer."""
    one.gone, one.verifier = True, b"restart."
    before = seconds_of_cpu(gateway.pid)
    begin = time.monotonic()
    with pytest.raises(TimeoutError):
        one.connect()
    used = seconds_of_cpu(gateway.pid) - before
    record(f"{fsal}: {used:.0f} s of CPU in "
           f"{time.monotonic() - begin:.0f} s, without an answer")
    assert used > HELD_S
    assert gateway.log.matching("Possibly extra references")


def seconds_of_cpu(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return sum(map(int, file.read().split()[13:15])) / 100


@pytest.mark.parametrize("operation", ["READ", "READDIR"])
def test_a_replay_of_data(cluster, gateway, operation, fsal):
    """A client has the answer to a READ or READDIR kept, and sends the request
    again: its data were freed when it was answered first."""
    one = client("replay")
    one.gone = True
    handle, request = one.root, (
        26, wide(0) + bytes(8) + number(4096) * 2 + nfs4.bitmap(20))
    if operation == "READ":
        handle = one.open(f"replay-{fsal}", create=nfs4.UNCHECKED).handle
        one.write(handle, 0, b"d" * 4096)
        request = (25, nfs4.ANONYMOUS + wide(0) + number(4096))
    answers = [sent_twice(one, handle, request)
               for _ in range(20 if FOLDER else 1)]
    while STOCK and answers[-1] == 0 and len(answers) < 200:
        answers.append(sent_twice(one, handle, request))
    assert answers[-1] == ("ended" if STOCK else RETRY_UNCACHED_REP)
    assert STOCK or pid_of(cluster)


def sent_twice(one, handle, request):
    """What the second answer says.  "ended": there is none, or it has the
    memory of something else."""
    operations = [(53, one.session + struct.pack(
        ">IIII", next(one.slot_sequence), 0, 0, 1),
        lambda reply: reply.skip(36)), nfs4.put(handle), (*request, None)]
    arguments = nfs4.compound_arguments(operations, one.minor)
    try:
        first, again = (one.connection.call(
            nfs4.COMPOUND, arguments, version=4, seconds=5) for _ in "ab")
    except (rpc.Gone, TimeoutError):
        return "ended"
    if again.data[again.at:] == first.data[first.at:]:
        return 0
    return status_of(nfs4.compound_results, again, operations) or "ended"


def four_letters():
    """Groups of the system whose name in NFSv4 has 4 x N bytes."""
    return [(f"{group.gr_name}@localdomain", str(group.gr_gid))
            for group in grp.getgrall() if len(group.gr_name) % 4 == 0]


NUMBERS = [(str(number), str(number)) for number in range(1000, 1100)]


@pytest.mark.parametrize("groups, mapping", [
    (NUMBERS, "true"), (four_letters(), "true"), (NUMBERS, "false")],
    ids=["numbers", "names", "mapping-off"])
def test_an_owner_of_four_bytes(start, record, fsal, groups, mapping):
    """An owner's name of 4 x N bytes ends where the attributes end.  The stock
    daemon reads the byte behind it as well: chown is refused, or another group
    is stored without an error."""
    start(nfsv4="Only_Numeric_Owners = true;", append=[
        f"DIRECTORY_SERVICES {{ Idmapping_Active = {mapping}; }}"])
    one = client("owner")
    handle = one.open(f"owner-{fsal}-{mapping}",
                      create=nfs4.UNCHECKED).handle
    refused, wrong = 0, set()
    for name, gid in groups:
        # What the next request finds behind its attributes.
        for length in (20, 32):
            status_of(one.set, handle, file_owner="7" * length)
        status = status_of(one.set, handle, file_owner="0", file_group=name)
        assert status in (0, BADOWNER)
        refused += status == BADOWNER
        stored = one.get(handle, 37)[0][4:].rstrip(b"\0").decode()
        if not status and stored != gid:
            wrong.add(f"{name} = {stored}")
    one.leave()
    record(f"{fsal}, mapping {mapping}: of {len(groups)} groups {refused} are "
           f"refused, {len(wrong)} wrong {sorted(wrong)[:3]}")
    assert bool(refused or wrong) == STOCK


def test_verify_of_more_than_there_is(gateway, fsal):
    """VERIFY goes by the lengths that the client sent.  Here the values are
    longer than the attributes; shorter ones have it read past their end."""
    one = client("verify")
    handle = one.open(f"verify-{fsal}", create=nfs4.UNCHECKED).handle
    right = number(1)                                       # a regular file
    for values, stock, patched in ((right, 0, 0),
                                   (right + b"more", 0, NOT_SAME),
                                   (number(2), NOT_SAME, NOT_SAME)):
        assert status_of(one.compound, nfs4.put(handle), (
            37, nfs4.bitmap(1) + opaque(values), None)) == \
            (stock if STOCK else patched)
    one.leave()


@pytest.mark.parametrize("same_file", [True, False])
@pytest.mark.parametrize("minor", [1, 2])
def test_a_lock_owner_of_two_open_owners(gateway, fsal, minor, same_file):
    """The second LOCK gets NFS4ERR_RESOURCE, of which Linux makes
    EREMOTEIO."""
    one = nfs4.Client(SECOND_PORT, f"owners {time.time_ns()}", minor=minor)
    name = f"owners-{fsal}"
    first = one.open(name, create=nfs4.UNCHECKED, owner=b"first")
    first.lock(nfs4.READ_LOCK, 0, 10)
    other = one.open(name + "-2" * (not same_file), create=nfs4.UNCHECKED,
                     owner=b"other")
    assert status_of(other.lock, nfs4.READ_LOCK, 20, 10) == \
        (RESOURCE if STOCK else 0)
    if not STOCK:
        # Both are held, and each is given back.  A lock owner has one stateid
        # for a file.
        if same_file:
            first.lock_stateids = other.lock_stateids
        two = client("conflicts")
        asked = two.open(name, create=nfs4.UNCHECKED)
        with pytest.raises(nfs4.Conflict):
            asked.lock(nfs4.WRITE_LOCK, 0, 10)
        first.unlock(0, 10)
        other.unlock(20, 10)
        first.close()
        other.close()
        asked.lock(nfs4.WRITE_LOCK, 0, 30)
        two.leave()
    one.leave()


def test_a_lease_that_is_over(start):
    """RFC 8881 does not allow NFS4ERR_EXPIRED for SEQUENCE; Linux makes EIO
    of it."""
    clock = GatewayClock("core")
    start(clock=clock, nfsv4="Expired_Client_Threshold = 0;")
    one = client("late")
    one.gone = True
    clock.set(3600)
    time.sleep(SEEN_S)
    assert status_of(one.compound) == (EXPIRED if STOCK else BADSESSION)
    one.die()


EXPORT = """EXPORT {{ Export_Id = {0}; Path = "/"; Pseudo = "{1}";
    Access_Type = RW; Squash = none; SecType = sys;
    Attr_Expiration_Time = 0; FSAL {{ Name = {2}; }} }}"""


@pytest.fixture
def on_the_bus(cluster, fsal):
    """Ganesha "a", whose name is on D-Bus; its end is expected."""
    cluster.ganesha("restart", "--fsal", fsal, "--wrapper", WRAPPER)
    pid = cluster.stat()["ganesha"]["a"]["pid"]
    resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))
    yield lambda: cluster.stat()["ganesha"]["a"]["pid"] == pid
    cluster.ganesha("kill9", check=False)
    cluster.ganesha("restart", "--fsal", "CEPH_ASYNC", "--wrapper", "")
    cluster.evict_all_but_a()


@pytest.mark.parametrize("text, expression", [
    ("", "EXPORT(Export_Id=49)"), ("# nothing\n", "EXPORT(Export_Id=49)"),
    (EXPORT, "")], ids=["empty", "comment", "no-expression"])
def test_add_export_of_nothing(on_the_bus, tmp_path, fsal, text, expression):
    """`ceph nfs` and ganeshactl add exports by this call."""
    file = tmp_path / "export.conf"
    file.write_text(text.format(49, "/x49", fsal))
    with pytest.raises(dbus.exceptions.DBusException) as err:
        bus.call("AddExport", "exportmgr", str(file), expression)
    assert ("NoReply" in err.value.get_dbus_name()) == STOCK, err.value
    if STOCK:
        until(lambda: not on_the_bus(), "ganesha.nfsd ends", 10)
    assert on_the_bus() != STOCK


def test_a_reload_that_nests_pseudo_paths(cluster, start, fsal):
    """One export takes the other's pseudo path.  The other one goes below,
    where there is no such folder."""
    def exports(first, other):
        return [EXPORT.format(100, first, fsal),
                EXPORT.format(101, other, fsal)]

    def reload(*paths):
        cluster.run("ganesha", "reload", "--name", "b", *(
            f"--append={text}" for text in exports(*paths)))

    gateway = start(append=exports("/e0", "/e1"))
    reload("/e0/no-such-folder", "/e0")
    if STOCK:
        until(lambda: not pid_of(cluster), "ganesha.nfsd ends", 10)
        return
    until(lambda: gateway.log.matching("Reread exports complete"),
          "the reload", 10)
    assert gateway.log.matching("has no place in the PseudoFS")
    assert cluster.exported("/e0") and cluster.exported("/second")
    assert not cluster.exported("/e0/no-such-folder")
    # The first of two refuses /e0, which is the other's until its end.
    for count in (2, 3):
        reload("/e0", "/e1")
        until(lambda n=count: len(gateway.log.matching(
            "Reread exports complete")) == n, "the reload", 10)
    assert cluster.exported("/e0") and cluster.exported("/e1")
    assert pid_of(cluster)
