# SPDX-License-Identifier: LGPL-3.0-or-later
"""An export with several CephFS clients (Clients = N): each file belongs to one
of them, and the first has all names.
"""
import time

import dbus
import pytest

import bus
from lab import AFTER_A_LOSS
from lab_program import until
from nfs import nfs3, rpc
from test_reconnect import JUKEBOX, Gateway

CLIENTS = 4
FILES = 24                  # of which each client has some
BLOCK = 65536
BACK_S = 60
EXPORT = """EXPORT {{
    Export_Id = {number}; Path = {path}; Pseudo = /{name};
    Protocols = 3,4; Access_Type = RW; Squash = none; SecType = sys;
    Transports = TCP; FSAL {{ Name = CEPH_ASYNC; {keys} }}
}}"""

# A kernel client's work on many files; each line is checked at once.
WORK = r"""
set -e
cd /mnt/nfs; mkdir clients-work; cd clients-work
for i in $(seq 24); do echo "$i" > f$i; done
for i in $(seq 24); do test "$(cat f$i)" = $i; done
for i in $(seq 24); do ln f$i l$i; test $(stat -c %h f$i) = 2; done
for i in $(seq 24); do mv f$i g$i; test "$(cat l$i)" = $i; done
for i in $(seq 24); do echo more >> l$i; test $(stat -c %s g$i) -gt 5; done
for i in $(seq 24); do truncate -s 2 g$i; test $(stat -c %s l$i) = 2; done
for i in $(seq 24); do chmod 640 l$i; test $(stat -c %a g$i) = 640; done
for i in $(seq 24); do rm l$i; test $(stat -c %h g$i) = 1; done
for i in $(seq 24); do
    exec 9< g$i; rm g$i
    dd bs=2 count=1 <&9 2> /dev/null | grep -q .
    exec 9<&-
done
test $(ls -a | grep -c '^g') = 0
cd ..; rm -r clients-work
"""


@pytest.fixture
def gateway(lab):
    lab.ganesha("restart", "--export", f"Clients = {CLIENTS};")
    yield Gateway(lab)


@pytest.fixture
def connection():
    made = rpc.Concurrent(2049)
    yield made
    made.close()


def content(number):
    return f"file {number}, acknowledged ".encode() * 50


def patient(call, *args):
    """What it answers once the server no longer says "ask again"; how long
    that took."""
    began = time.monotonic()
    while True:
        try:
            return call(*args), time.monotonic() - began
        except nfs3.Refused as err:
            assert err.status == JUKEBOX
            assert time.monotonic() - began < BACK_S
        time.sleep(0.02)


def make_files(connection, pseudo="/ceph"):
    """Handles by number, of files with known contents."""
    root = nfs3.root_of(pseudo, 2050)
    directory = nfs3.make_directory(connection, root,
                                    f"clients-{time.time_ns()}")
    handles = {}
    for number in range(FILES):
        handles[number] = nfs3.create(connection, directory, str(number))
        nfs3.write(connection, handles[number], 0, content(number))
    return directory, handles


def check_files(connection, handles):
    for number, handle in handles.items():
        data, _ = patient(nfs3.read, connection, handle, 0,
                          len(content(number)))
        assert data == content(number), number


def test_each_client_has_a_session_and_its_part_of_the_files(
        lab, gateway, connection):
    sessions = lab.sessions(gateway.pid)
    assert len(sessions) == CLIENTS
    _, handles = make_files(connection)
    check_files(connection, handles)
    # Of all files some are each client's: it has capabilities for them.
    for session in lab.sessions(gateway.pid):
        assert session["num_caps"] >= 2, session


@pytest.mark.parametrize("vers", ("3", "4.2"))
def test_names_and_data_go_together(lab, gateway, vers):
    lab.client("sh", "-c", WORK, vers=vers, seconds=100)


def test_names_that_another_client_uses(lab, gateway, connection):
    """LOOKUP and READDIR show sizes that only the file's client knows."""
    directory, handles = make_files(connection)
    for number, handle in handles.items():
        nfs3.write(connection, handle, 0, bytes(BLOCK + number),
                   nfs3.UNSTABLE)
    lab.ganesha("restart", "--export", f"Clients = {CLIENTS};",
                "--export-block", "Attr_Expiration_Time = 0;")
    again = rpc.Concurrent(2049)
    for number, handle in handles.items():
        assert nfs3.lookup(again, directory, str(number)) == handle
        assert nfs3.get_attributes(again, handle).size == BLOCK + number
    again.close()


def test_two_exports_share_their_clients(lab):
    keys = 'Cmount_Path = "/"; Clients = 3;'
    lab.ganesha("restart", "--export", "Clients = 3;", "--append", "\n".join(
        EXPORT.format(number=number, name=name, path="/", keys=keys)
        for number, name in ((11, "x"), (12, "y"))))
    assert len(lab.sessions(lab.stat()["ganesha"]["a"]["pid"])) == 3
    connection = rpc.Concurrent(2049)
    make_files(connection, "/x")
    for pseudo in ("/y", "/ceph"):
        entries, _, _ = nfs3.readdir(connection,
                                     nfs3.root_of(pseudo, 2050))
        assert entries
    check_files(connection, make_files(connection, "/y")[1])
    connection.close()


def test_a_lost_client_stops_only_its_files(lab, gateway, connection, record):
    directory, handles = make_files(connection)
    lost = lab.sessions(gateway.pid)
    names = min(lost, key=lambda session: session["id"])
    victim = max(lost, key=lambda session: session["id"])
    assert victim is not names
    before = gateway.times_back()
    lab.evict_session(victim["id"])
    waited = {}
    for number, handle in handles.items():
        _, waited[number] = patient(nfs3.write, connection, handle, 0,
                                    content(number))
    until(lambda: gateway.times_back() > before, "a new client serves",
          seconds=BACK_S, pause=0.05)
    check_files(connection, handles)
    assert gateway.times_back() == before + 1
    assert len(lab.sessions(gateway.pid)) == CLIENTS
    assert gateway.log.matching(r"client \d of 4: a new CephFS client serves")
    undisturbed = sum(seconds < 1 for seconds in waited.values())
    assert undisturbed >= FILES // 2
    nfs3.create(connection, directory, "later")
    record(f"one of {CLIENTS} clients evicted: {undisturbed} of {FILES} files "
           f"did not wait, the others {max(waited.values()):.1f} s at most")


def test_names_wait_alone_if_their_client_is_lost(lab, gateway, connection):
    directory, handles = make_files(connection)
    before = gateway.times_back()
    names = min(lab.sessions(gateway.pid), key=lambda session: session["id"])
    lab.evict_session(names["id"])
    check_files(connection, handles)
    patient(nfs3.create, connection, directory, "later")
    until(lambda: gateway.times_back() > before, "a new client serves",
          seconds=BACK_S, pause=0.05)
    for number in handles:
        found, _ = patient(nfs3.lookup, connection, directory, str(number))
        assert found == handles[number]


def test_a_killed_gateway_takes_over_all_its_sessions(lab, gateway,
                                                      connection, record):
    lab.expected += AFTER_A_LOSS
    _, handles = make_files(connection)
    lab.ganesha("kill9")
    began = time.monotonic()
    lab.run("recover", timeout=BACK_S + 60)
    seconds = time.monotonic() - began
    pid = lab.stat()["ganesha"]["a"]["pid"]
    assert len(lab.stat()["mds"]["sessions"]) >= CLIENTS
    assert len(lab.sessions(pid)) == CLIENTS
    assert len(gateway.log.matching("reclaimed from a former run")) == CLIENTS
    again = rpc.Concurrent(2049)
    check_files(again, handles)
    again.close()
    record(f"gateway of {CLIENTS} clients killed: it serves after "
           f"{seconds:.1f} s")


def test_an_unexport_ends_all_sessions(lab):
    lab.client("mkdir", "-p", "/mnt/nfs/clients-z")
    lab.ganesha("restart", "--export", "Clients = 1;", "--append",
                EXPORT.format(number=13, name="z", path="/clients-z",
                              keys="Clients = 3;"))
    pid = lab.stat()["ganesha"]["a"]["pid"]
    assert len(lab.sessions(pid)) == 4
    bus.call("RemoveExport", "exportmgr", dbus.UInt16(13))
    until(lambda: len(lab.sessions(pid)) == 1, "the export's sessions end",
          seconds=30)
