# SPDX-License-Identifier: LGPL-3.0-or-later
"""A cluster that is full: clients are told so at once, all else goes on, and
the gateway serves by itself when there is room again.

An OSD that is fuller than osd_failsafe_full_ratio drops writes without an
answer, those of the MDS too.  Then no name can be made, and who asks waits.
"""
import time

import pytest

from nfs3_requests import BLOCK, JUKEBOX, NOSPC, OK, SERVES, Asker, content
from lab_program import LOGS, Log, ceph, until
from nfs import nfs3, nfs4

ANSWER_S = 2        # each request, by a gateway that is well
BACK_S = 15
MAP_S = 8           # libcephfs asks for a new map each 5 s
DRAIN_S = 5
MORE_S = 10         # for all else that an end takes
TINY = "0.00001"
RATIOS = {"nearfull": "0.85", "backfillfull": "0.9", "full": "0.95"}
WAITING = 12


def is_full():
    return "OSD_FULL" in ceph("health", "detail")


def quota(size):
    ceph("osd", "pool", "set-quota", "cephfs_data", "max_bytes", size)


@pytest.fixture
def room(lab):
    """room(False): the OSD is full; room(True): it is not."""
    def make(yes):
        for name, ratio in RATIOS.items():
            ceph("osd", f"set-{name}-ratio", ratio if yes else TINY)
        until(lambda: is_full() != yes, f"room: {yes}", seconds=60)
    yield make
    make(True)


@pytest.fixture
def failsafe(room):
    """The OSD drops writes: failsafe(False) begins it."""
    drops = False

    def make(yes):
        nonlocal drops
        if yes:
            ceph("config", "rm", "osd", "osd_failsafe_full_ratio")
        else:
            ceph("config", "set", "osd", "osd_failsafe_full_ratio", TINY)
        drops = True
        room(yes)
        if yes:
            # Ceph 20.2.4 does not send again by itself what was dropped.
            # Who needs the OSD or the MDS waits for some seconds.
            ceph("osd", "down", "0")
            drops = False
    yield make
    if drops:
        make(True)


@pytest.mark.parametrize("how", ("the OSD", "the pool's quota"))
def test_full_and_freed(lab, room, record, how):
    def full(yes):
        if how == "the OSD":
            room(not yes)
        else:
            quota("1" if yes else "0")
    asker = Asker()
    file = asker.new_file(blocks=4)
    empty = asker.new_file("-empty", blocks=0)
    log = Log(LOGS / "ganesha-a.log")
    full(True)
    try:
        until(lambda: asker.write(file) == NOSPC, "a WRITE is refused")
        asker.longest = 0
        for number in range(4):
            assert asker.write(file, number) == NOSPC
            assert asker.write(file, 100) == NOSPC, "growth"
            assert asker.write(empty, number) == NOSPC
            assert asker.content_is(file, number)
            assert asker.look(file) == asker.look(empty) == OK
            assert asker.create(f"-new-{number}") == OK
            assert asker.ask(nfs3.COMMIT, nfs3.commit_arguments(file)) == OK
        longest = asker.longest
    finally:
        full(False)
    seconds, others = asker.served_after(lambda: asker.write(file), BACK_S)
    record(f"{how} full: WRITE gets NOSPC, READ, GETATTR, CREATE, COMMIT "
           f"answer, all within {longest:.2f} s; served {seconds:.1f} s "
           "after there was room")
    assert longest < ANSWER_S
    assert others <= {NOSPC}
    assert asker.write(empty) == OK
    assert asker.content_is(empty)
    assert not log.matching("session is lost")
    asker.close()


def test_no_hole_is_acknowledged_in_a_full_pool(lab):
    """libcephfs drops what the OSDs say, and waits for the next map."""
    asker = Asker()
    client = nfs4.Client(2049, asker.name)
    file = client.open(asker.name, create=nfs4.UNCHECKED)
    assert file.write(0, content(1)) == BLOCK
    quota("1")
    try:
        other = asker.new_file("-other", blocks=0)
        until(lambda: asker.write(other) == NOSPC, "a WRITE is refused")
        began = time.monotonic()
        with pytest.raises(nfs4.Failed) as refusal:
            client.deallocate(file.handle, 0, BLOCK, file.stateid)
        assert refusal.value.status == NOSPC
        assert time.monotonic() - began < ANSWER_S
        assert file.read(0, BLOCK) == content(1)
    finally:
        quota("0")

    def punched():
        try:
            client.deallocate(file.handle, 0, BLOCK, file.stateid)
        except nfs4.Failed as err:
            assert err.status == NOSPC
            return False
        return True
    until(punched, "there is room", seconds=BACK_S)
    assert file.read(0, BLOCK) == bytes(BLOCK)
    client.leave()
    asker.close()


@pytest.mark.parametrize("how", ("evicted", "started"))
def test_new_client_while_full(lab, till_end, record, how):
    """The first READs of a new client, in a pool that is full."""
    till_end(lab.may_lose())
    asker = Asker()
    file = asker.new_file(blocks=4)
    log = Log(LOGS / "ganesha-a.log")
    quota("1")
    try:
        until(lambda: asker.write(file) == NOSPC, "a WRITE is refused")
        if how == "evicted":
            lab.evict(lab.stat()["ganesha"]["a"]["pid"])
            until(lambda: log.matching(SERVES), "a new client serves",
                  seconds=BACK_S)
        else:
            asker.close()
            lab.ganesha("restart")
            asker = Asker()
        asker.longest = 0
        found = set()
        end = time.monotonic() + MAP_S
        while time.monotonic() < end:
            found |= {asker.read(file, number) for number in range(4)}
            assert asker.write(file) in (NOSPC, JUKEBOX)
            assert asker.create(f"-{time.time_ns()}") in (OK, JUKEBOX)
            time.sleep(0.1)
        longest = asker.longest
    finally:
        quota("0")
    seconds, others = asker.served_after(lambda: asker.write(file), BACK_S)
    found |= {asker.read(file, number) for number in range(4)}
    record(f"{how} while the pool is full: READs within {longest:.2f} s; "
           f"WRITEs {seconds:.1f} s after there was room")
    assert found <= {OK, JUKEBOX}
    assert others <= {NOSPC}
    assert longest < ANSWER_S
    asker.close()


def start_waiting(asker):
    """Requests that need the MDS; what they are answered."""
    answers = []
    for number in range(WAITING):
        asker.connection.send(
            nfs3.CREATE, nfs3.create_arguments(
                asker.root, f"{asker.name}-wait-{number}"),
            lambda reply: answers.append(reply.number()))
    return answers


def test_the_mds_waits_for_room(lab, failsafe, record):
    asker = Asker()
    file = asker.new_file(blocks=4)
    beside = asker.new_file("-beside")
    failsafe(False)
    until(lambda: asker.write(file) == NOSPC, "a WRITE is refused")
    answers = start_waiting(asker)
    asker.longest = 0
    end = time.monotonic() + 5
    while time.monotonic() < end:
        assert asker.write(file) == NOSPC
        assert asker.content_is(file, 1)
        assert asker.look(beside) == OK
        assert asker.read(beside) == OK
        time.sleep(0.2)
    longest = asker.longest
    assert not answers, "the MDS did not wait"
    failsafe(True)
    began = time.monotonic()
    until(lambda: len(answers) == WAITING, "all are made", seconds=BACK_S)
    seconds = time.monotonic() - began
    record(f"the OSD drops all writes: READ, GETATTR and refused WRITEs within "
           f"{longest:.2f} s, {WAITING} CREATEs wait; they were answered "
           f"{seconds:.1f} s after there was room")
    assert set(answers) == {OK}
    assert longest < ANSWER_S
    assert asker.served_after(lambda: asker.write(file), BACK_S)
    asker.close()


def test_sigterm_while_requests_wait_for_the_mds(lab, till_end, failsafe,
                                                 record):
    """Ganesha waits for its workers; they are in libcephfs, which waits for
    the MDS."""
    till_end(lab.expects("the end of Ganesha has waited"))
    till_end(lab.may_log("the MDS may still write what had no room",
                         r"unmounting '.*' of file system '.*' did not end"))
    lab.ganesha("restart", "--block", f"Drain_Timeout = {DRAIN_S};")
    asker = Asker()
    file = asker.new_file()
    failsafe(False)
    until(lambda: asker.write(file) == NOSPC, "a WRITE is refused")
    answers = start_waiting(asker)
    until(lambda: not lab.stat()["ganesha"]["a"]["in_flight"]
          or lab.stat()["ganesha"]["a"]["in_flight"]["mds"],
          "requests wait for the MDS")
    log = Log(LOGS / "ganesha-a.log")
    began = time.monotonic()
    lab.ganesha("stop", "--timeout", DRAIN_S + MORE_S)
    seconds = time.monotonic() - began
    record(f"SIGTERM with {WAITING} CREATEs that wait for the MDS: ended "
           f"after {seconds:.1f} s, Drain_Timeout = {DRAIN_S} s")
    assert not answers
    assert log.matching(rf"waited {DRAIN_S} s \(Drain_Timeout\)")
    assert DRAIN_S <= seconds < DRAIN_S + MORE_S
    asker.close()
    failsafe(True)
    lab.ganesha("start")
    asker = Asker()
    assert asker.content_is(file)
    assert asker.served_after(lambda: asker.write(file, 1), BACK_S)
    asker.close()
