# SPDX-License-Identifier: LGPL-3.0-or-later
"""Faults injected into the running ganesha.nfsd, seen from a Linux client.

tests/faults/README.md tells what the rules mean.
"""
import json
import re
import time
from collections import Counter

import pytest

from calls import calls_of
from faults import Faults, small_objects, start
from lab import LOGS, Log

VERSIONS = ("3", "4.2")
EIO = 5

# What Ganesha says of each I/O error that it passes on.
GANESHAS_OWN = (r"nfs(3|4)_Errno_verbose :NFS\1 :CRIT :Error I/O error",)


@pytest.fixture
def faults(cluster):
    """Ganesha "a" with the shim, default keys and no rules."""
    cluster.expected += GANESHAS_OWN
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


def compare(record, injected, errno):
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
        assert error == (errno if failed and done == 0 else 0)
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
        cluster, faults, tmp_path, record, vers):
    """10,000 reads and writes, some late, some short, some failing."""
    with Mixed(cluster, vers, tmp_path, 10_000, 16) as mixed:
        faults.set("seed 7", "any percent=5 delay=1-40",
                   "any percent=1 error=EIO", "any percent=5 short=half")
        began = time.monotonic()
        mixed.go()
        mixed.wait("done")
        seconds = time.monotonic() - began
        faults.clear()
        done = mixed.check()
    seen = compare(done, faults.hits("error"), EIO)
    late, short = len(faults.hits("delay")), len(faults.hits("short"))
    record(f"10,000 verified reads and writes over NFS {vers} in "
           f"{seconds:.1f} s: {late} late, {short} short, {seen} failed as "
           "injected and no other, no wrong data")
    assert seen > 50 and late > 300 and short > 300


@pytest.mark.parametrize("vers", VERSIONS)
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


@pytest.mark.parametrize("vers", VERSIONS)
def test_held_and_let_go_newest_first(cluster, faults, tmp_path, vers):
    """Nothing is answered until every thread waits; then all of it."""
    threads = 20
    with Mixed(cluster, vers, tmp_path, 20 * threads, threads) as mixed:
        faults.set("any hold")
        mixed.go()
        for _ in range(10):
            faults.wait(lambda: any(held["count"] >= threads for held in
                                    faults.events("held")), "all held")
            faults.set("release reversed", "any hold")
            assert faults.events("released")[0]["count"] >= threads
        faults.set("release reversed")
        done = mixed.check()
    assert all_done(done)


@pytest.mark.parametrize("vers, rule", (
    ("3", "any duplicate=2"), ("4.2", "any duplicate after=0")))
def test_every_completion_comes_again(cluster, faults, tmp_path, vers, rule):
    """Within the call, or from another thread: nothing but words in the
    log."""
    cluster.expected.append("libcephfs: a second completion, ignored")
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
    assert all(re.search(r"result -?\d+ for the part at \d+ of (READ|WRITE) "
                         r"inode 0x[0-9a-f]+ offset \d+ length \d+", line)
               for line in words)
