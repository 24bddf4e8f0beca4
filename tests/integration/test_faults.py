# SPDX-License-Identifier: LGPL-3.0-or-later
"""Faults injected into the running ganesha.nfsd, seen from a Linux client.

tests/faults/README.md tells what the rules mean.
"""
import errno
import json
import re
import subprocess
import time
from collections import Counter

import pytest

from calls import BLOCK, CHUNK, OBJECT, PLACES, calls_of
from faults import Faults, small_objects, start
from lab import LOGS, REFERENCES, Log

VERSIONS = ("3", "4.2")

# What Ganesha says of an I/O error that it passes on.
TOLD = r"nfs(3|4)_Errno_verbose :NFS\1 :CRIT :Error I/O error"


@pytest.fixture
def faults(cluster):
    """Ganesha "a" with the shim, default keys and no rules."""
    shim = start(cluster)
    yield shim
    shim.clear()


class Mixed:
    """mixed_io.py in a client of its own."""

    def __init__(self, lab, vers, signals, count, threads):
        self.lab, self.signals = lab, signals
        self.count = count // threads * threads
        self.process = lab.start_client(
            "python3", "-B", lab.scripts / "mixed_io.py",
            f"/mnt/nfs/{small_objects()}/file", signals, count, threads,
            vers=vers, seconds=100)

    def __enter__(self):
        self.wait("ready")
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)

    def has(self, name):
        return (self.signals / name).exists()

    def go(self):
        (self.signals / "go").touch()

    def wait(self, name, seconds=60):
        Faults.wait(lambda: self.has(name) or self.process.poll() is not None,
                    name, seconds)
        assert self.has(name), self.process.communicate()[0]

    def check(self):
        """All that was read and is there is right; the record of it."""
        self.wait("done")
        (self.signals / "check").touch()
        assert "all well" in self.lab.end_client(self.process, 60)
        lines = (self.signals / "record").read_text().splitlines()
        assert len(lines) == self.count
        return [json.loads(line) for line in lines]


def compare(record, injected, number):
    """Each error that the client saw was injected, at that place, and the
    other way round; how many there were.

    Linux writes the rest after a short answer; where that fails, it says
    how much was written, not why no more was.
    """
    left = Counter((hit["kind"], hit["offset"], hit["length"])
                   for hit in injected)
    seen = 0
    for kind, offset, length, done, error in record:
        failed = done != length
        assert error == (number if failed and done == 0 else 0)
        hit = [call for call in calls_of(kind, offset + done, length - done)
               if failed and left[call]]
        assert bool(hit) == failed, \
            f"{kind} of {length} at {offset}: {done} done, error {error}"
        left.subtract(hit)
        seen += failed
    assert not +left, f"never seen by the client: {+left}"
    return seen


def all_done(record):
    return all(done == length for _, _, length, done, _ in record)


# --- many at once

@pytest.mark.parametrize("vers", VERSIONS)
def test_exactly_the_injected_errors_and_never_wrong_data(
        cluster, till_end, faults, tmp_path, record, vers):
    """10,000 reads and writes, some late, some short, some failing."""
    till_end(cluster.expects(TOLD))
    with Mixed(cluster, vers, tmp_path, 10_000, 16) as mixed:
        faults.set("seed 7", "any percent=5 delay=1-40",
                   "any percent=1 error=EIO", "any percent=5 short=half")
        began = time.monotonic()
        mixed.go()
        mixed.wait("done")
        seconds = time.monotonic() - began
        faults.clear()
        done = mixed.check()
    seen = compare(done, faults.hits("error"), errno.EIO)
    late, short = len(faults.hits("delay")), len(faults.hits("short"))
    record(f"10,000 verified reads and writes over NFS {vers} in "
           f"{seconds:.1f} s: {late} late, {short} short, {seen} failed as "
           "injected and no other, no wrong data")
    assert seen > 50 and late > 300 and short > 300


@pytest.mark.parametrize("vers", ("4.2",))
def test_newest_first(cluster, faults, tmp_path, vers):
    """Sixteen completions at once, in the wrong order."""
    with Mixed(cluster, vers, tmp_path, 1_600, 20) as mixed:
        faults.set("any reorder=16")
        mixed.go()
        done = mixed.check()
    assert all_done(done)
    batches = [event["count"] for event in faults.events("reordered")]
    assert sum(batches) >= len(done)
    assert batches.count(16) > 50


def held_now(faults):
    """Since the last release.  One call more may have been held between the
    last set() and its release: a request can be two."""
    last = faults.events("held", "released")[-1:]
    return sum(one["count"] for one in last if one["event"] == "held")


@pytest.mark.parametrize("vers", ("3",))
def test_held_and_let_go_newest_first(cluster, faults, tmp_path, vers):
    """Nothing is answered until as many calls wait as there are threads."""
    threads = 20
    with Mixed(cluster, vers, tmp_path, 20 * threads, threads) as mixed:
        faults.set("any hold")
        mixed.go()
        for _ in range(10):
            faults.wait(lambda: held_now(faults) >= threads, "all held")
            faults.set("release reversed", "any hold")
            assert faults.events("released")[0]["count"] >= threads
        faults.set("release reversed")
        done = mixed.check()
    assert all_done(done)


@pytest.mark.parametrize("vers, rule", (
    ("3", "any duplicate=2"), ("4.2", "any duplicate after=0")))
def test_every_completion_comes_again(cluster, till_end, faults, tmp_path, vers,
                                      rule):
    """Within the call, or from another thread: nothing but words in the
    log."""
    till_end(cluster.expects("libcephfs: a second completion is ignored"))
    log = Log(LOGS / "ganesha-a.log")
    pid = cluster.stat()["ganesha"]["a"]["pid"]
    with Mixed(cluster, vers, tmp_path, 2_000, 16) as mixed:
        faults.set(rule)
        mixed.go()
        done = mixed.check()
    assert all_done(done)
    assert len(faults.hits("duplicate")) >= len(done)
    assert cluster.stat()["ganesha"]["a"]["pid"] == pid
    faults.wait(lambda: cluster.stat()["ganesha"]["a"]["in_flight"]
                == {"osd": 0, "mds": 0}, "end of what is in flight")
    words = log.matching("a second completion")
    assert words
    assert all(re.search(r"ignored: \d+ in the last \d+ ms, \d+ since the "
                         r"start of Ganesha", line) for line in words)
    # It tells of the last ones later.
    cluster.ganesha("restart", "--faults")


# --- one at a time, at known places: client/injected_errors.py

def errors(lab, vers, *what):
    """injected_errors.py in a new folder of small objects."""
    said = lab.script("injected_errors.py", f"/mnt/nfs/{small_objects()}",
                      *what, vers=vers)
    for one in what:
        assert f"{one.partition(',')[0]}: all well" in said


@pytest.mark.parametrize("vers", VERSIONS)
def test_a_part_that_fails_fails_the_read(cluster, till_end, faults, vers):
    """1 MiB of eight objects, every other one missing; each of them fails,
    first or last.  EIO, never zeros or less."""
    till_end(cluster.expects(TOLD))
    places = [chunk * CHUNK + chunk % 8 * OBJECT for chunk in range(16)]
    rules = [f"read count=1 offset={place} error=EIO "
             + ("delay=40" if place >= 8 * CHUNK else "") for place in places]
    # the missing objects' zeros cannot be had
    more = [chunk * CHUNK + OBJECT for chunk in (16, 17)]
    rules += [f"repair count=1 offset={place} error=EIO" for place in more]
    faults.set(*rules)
    errors(cluster, vers, "parts,18")
    assert [hit["offset"] for hit in faults.hits("error")] == places + more
    assert {hit["length"] for hit in faults.hits("error", "read")} == {OBJECT}


# What an NFS client can be told of; what stands for a lost session is EIO.
NUMBERS = {
    errno.EIO: errno.EIO, errno.ENOSPC: errno.ENOSPC,
    errno.EDQUOT: errno.EDQUOT, errno.EFBIG: errno.EFBIG,
    errno.EROFS: errno.EROFS, errno.EACCES: errno.EACCES,
    errno.EPERM: errno.EPERM, errno.ENOTCONN: errno.EIO,
    errno.EBADF: errno.EIO, errno.ESHUTDOWN: errno.EIO}   # EBLOCKLISTED


def one_a_block(kind, place):
    """Each number by the callback, then each by the call itself."""
    pairs = [(how, number) for how in ("error", "refuse")
             for number in NUMBERS]
    return [f"{kind} count=1 offset={place + at * BLOCK} {how}={number}"
            for at, (how, number) in enumerate(pairs)]


@pytest.mark.parametrize("vers", VERSIONS)
def test_every_error_arrives_as_itself(cluster, till_end, faults, vers):
    """On the request that failed and on no other, not later and not by
    fsync alone."""
    till_end(cluster.expects(TOLD))
    faults.set(*one_a_block("write", PLACES["writes"]),
               *one_a_block("read", PLACES["reads"]),
               f"write count=1 offset={PLACES['stale']} error=ESTALE",
               f"write count=1 offset={PLACES['buffered']} error=ENOSPC")
    numbers = ",".join(map(str, [*NUMBERS.values(), *NUMBERS.values()]))
    errors(cluster, vers, f"writes,{numbers}", f"reads,{numbers}", "stale",
           "buffered")
    assert [hit["errno"] for hit in faults.hits()] == [
        *NUMBERS, *NUMBERS, *NUMBERS, *NUMBERS, errno.ESTALE, errno.ENOSPC]


# --- with other keys

@pytest.fixture
def keyed(cluster, request):
    """Ganesha "a" with the shim and the keys that the test is marked with."""
    shim = start(cluster, request.param)
    yield shim
    shim.clear()


@pytest.mark.parametrize("keyed", ["Stable_Write = full;"], indirect=True)
@pytest.mark.parametrize("vers", VERSIONS)
def test_a_flush_fails_what_it_covers(cluster, till_end, keyed, vers):
    """Writes that share it, and a COMMIT; no write before or after."""
    till_end(cluster.expects(TOLD))
    # Each file's first write has a flush before its data and one after.
    keyed.set("flush count=2 delay=1", "flush nth=1 delay=1500",
              "flush nth=1 error=EIO", "flush count=3 delay=1",
              "flush nth=1 error=EIO", "flush delay=1")
    errors(cluster, vers, "flush", "commit")
    assert [hit["errno"] for hit in keyed.hits(kind="flush")] == [
        0, 0, 0, errno.EIO, 0, 0, 0, errno.EIO, 0]


@pytest.mark.parametrize("keyed", ["Slow_Op_Warn = 500;"], indirect=True)
def test_a_slow_request_is_told_of_twice(cluster, keyed):
    """While it is slow and when it has ended; quick ones never."""
    log = Log(LOGS / "ganesha-a.log")
    keyed.set(f"write count=1 offset={BLOCK} delay=1500")
    errors(cluster, "4.2", "slow")
    which = (rf"WRITE inode {keyed.hits()[0]['ino']:#x} offset {BLOCK} "
             rf"length {BLOCK} age (\d+) ms state ")
    lines = log.matching("slow request")
    assert len(lines) == 2, lines
    begun = re.search(rf"slow request: {which}SUBMITTED", lines[0])
    ended = re.search(rf"slow request completed: {which}", lines[1])
    assert 500 <= int(begun[1]) < 1500
    assert int(ended[1]) >= 1500


# --- never answered

NEVER = "Drain_Timeout = 2;"
OTHER = ('EXPORT { Export_Id = 78; Path = "/"; Pseudo = "/other"; '
         "Filesystem_Id = 78.78; "
         "Protocols = 3,4; Access_Type = RW; Squash = none; SecType = sys; "
         "Transports = TCP; FSAL { Name = CEPH_ASYNC; } }")
LAST_WORDS = (r"requests did not end within 2 s \(Drain_Timeout\)",
              "did not end: WRITE")
# At an orderly end moreover.
LAST_OF_ALL = ("requests are still in flight; its CephFS session stays",
               REFERENCES)


def left_waiting(cluster, tmp_path, action, keys=NEVER):
    """Ganesha "a", a second export, and a WRITE that stays without answer;
    the shim and the log from here on."""
    shim = start(cluster, keys, append=OTHER)
    log = Log(LOGS / "ganesha-a.log")
    shim.set(f"write count=1 {action}")
    client = cluster.start_client(
        "python3", "-B", cluster.scripts / "injected_errors.py",
        f"/mnt/nfs/{small_objects()}", f"lost,{tmp_path}", seconds=60)
    try:
        shim.wait(shim.hits, "WRITE")
        with cluster.expects(*LAST_WORDS):
            yield shim, log
    finally:
        client.terminate()
        client.wait(30)
        cluster.ganesha("kill9", check=False)
        cluster.ganesha("start", "--append", "")


@pytest.fixture
def lost(cluster, tmp_path):
    """A WRITE is never answered; the log."""
    for _, log in left_waiting(cluster, tmp_path, "never"):
        yield log


@pytest.fixture
def patient(cluster, tmp_path):
    """The same with more patience than any test here has; the log."""
    for _, log in left_waiting(cluster, tmp_path, "never",
                               "Drain_Timeout = 60;"):
        yield log


@pytest.fixture
def late(cluster, tmp_path):
    """A WRITE is answered when the shim is told to; shim and log."""
    yield from left_waiting(cluster, tmp_path, "hold")


def told(log):
    """The log says what did not end."""
    lines = log.matching(r"export 1: did not end: WRITE inode 0x[0-9a-f]+ "
                         rf"offset 0 length {BLOCK} age \d+ ms state "
                         "SUBMITTED")
    return len(lines) == 1


def remove_export(seconds):
    """Ganesha's own way; None if it does not answer in time."""
    return subprocess.run(
        ["dbus-send", "--system", "--print-reply",
         f"--reply-timeout={seconds * 1000}", "--dest=org.ganesha.nfsd",
         "/org/ganesha/nfsd/ExportMgr",
         "org.ganesha.nfsd.exportmgr.RemoveExport", "uint16:1"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=seconds + 5,
        check=False)


def test_an_export_goes_and_the_other_is_served(cluster, lost, tmp_path):
    remove_export(4)
    assert told(lost), lost.text()
    assert not cluster.exported("/ceph", port=2049)
    (tmp_path / "gone").touch()
    Faults.wait((tmp_path / "served").exists, "service of the other export")


def test_an_answer_after_the_drain_gave_up(cluster, late):
    """It comes to an export that is gone, and finds all that it needs."""
    shim, log = late
    assert remove_export(6).returncode == 0
    assert told(log), log.text()
    pid = cluster.stat()["ganesha"]["a"]["pid"]
    shim.clear()
    Faults.wait(lambda: shim.events("released"), "the late answer")
    # Of the same process, after it.
    assert cluster.exported("/other", port=2049)
    assert cluster.stat()["ganesha"]["a"]["pid"] == pid


def test_removing_an_export_comes_to_an_end(lost):
    done = remove_export(6)
    assert told(lost), lost.text()
    assert done.returncode == 0, done.stdout


def hurry(cluster, log):
    """A reload while the WRITE is in flight."""
    cluster.ganesha("reload", "--export", NEVER)
    Faults.wait(lambda: log.matching(
        r"export 1: Drain_Timeout = 2 \(was 60\)"), "the new Drain_Timeout")


def test_removing_an_export_takes_the_time_of_a_reload(cluster, patient):
    hurry(cluster, patient)
    began = time.monotonic()
    done = remove_export(20)
    seconds = time.monotonic() - began
    assert told(patient), patient.text()
    assert patient.matching(r"1 requests did not end within 2 s")
    assert done.returncode == 0, done.stdout
    assert 2 <= seconds < 6


def test_an_orderly_end_takes_the_time_of_a_reload(cluster, patient, till_end):
    till_end(cluster.expects(*LAST_OF_ALL))
    hurry(cluster, patient)
    done = cluster.ganesha("stop", "--timeout", "6", check=False)
    assert told(patient), patient.text()
    assert patient.matching(r"1 requests did not end within 2 s")
    assert done.returncode == 0, done.stderr


def test_an_orderly_end_comes_to_an_end(cluster, lost, till_end):
    till_end(cluster.expects(*LAST_OF_ALL))
    done = cluster.ganesha("stop", "--timeout", "6", check=False)
    assert told(lost), lost.text()
    assert done.returncode == 0, done.stderr
