# SPDX-License-Identifier: LGPL-3.0-or-later
"""The real daemon, the plugin in it instrumented: real load, an unexport
and an end in the midst of it, and no report.

The tests of a sanitizer share a daemon and depend on each other's order.
"""
import time

import pytest

import all_cases  # noqa: F401  (registers the cases)
from batch import Batch
from expected_differences import EXPECTED, verdict
from lab import Log
from registry import CASES

SLOW_MS = 20        # so that requests are in flight when something happens
UNEXPORT_S = 40     # longer than Drain_Timeout
END_S = 60
RELOADS = 20
# Ganesha never frees the state of an OPEN by which a READ was refused before it
# came to the FSAL (nfs4_op_read.c, 9.14).
LEAKS = {"reading_is_refused_to_who_lost_the_file"}


@pytest.fixture
def loaded(daemon):
    """Load over an NFS with and one without states, and in flight I/O."""
    clients = daemon.start_load("4.2", "3")
    try:
        daemon.wait_for_io(20)
        daemon.run("slow", SLOW_MS)
        daemon.wait_for_io(1)
        yield
    finally:
        daemon.run("slow", 0)
        daemon.end_load(clients)


def no_report(daemon):
    found = daemon.reports()
    assert not found.counting, "\n".join(found.counting)[:20000]


def test_cases(daemon):
    """Everything else than load, over NFSv4.2."""
    names = [name for name, one in CASES.items() if "4.2" in one.versions
             and name not in LEAKS
             and getattr(verdict(name), "right", None) not in EXPECTED]
    batch = Batch(daemon, "4.2", names)
    wrong = {name: batch.outcome(name) for name in names
             if batch.outcome(name)}
    assert not wrong, "\n".join(f"{name}: {why}"
                                for name, why in wrong.items())
    no_report(daemon)


def test_end_at_rest(daemon, say):
    """Leaks are looked for when the process exits."""
    daemon.stop(END_S)
    no_report(daemon)
    assert not daemon.reports().ganeshas_leaks
    tell(daemon, say)


@pytest.fixture
def started_again(daemon):
    """Without a look at the order of locks: with it 50 threads wait for one
    another in ThreadSanitizer, and nothing is in flight."""
    daemon.start(more="detect_deadlocks=0")


def test_unexport_under_load(daemon, started_again, loaded):
    pid = daemon.pid()
    daemon.unexport(UNEXPORT_S)
    assert not daemon.exported("/ceph", port=2049)
    assert not daemon.log.matching("did not end within")
    daemon.export_again(UNEXPORT_S)
    assert daemon.exported("/ceph", port=2049)
    assert daemon.pid() == pid
    no_report(daemon)


def test_reloads_under_load(daemon, loaded):
    """All that a reload changes, while requests read it."""
    for turn in range(RELOADS):
        number = turn % 2
        log = Log(daemon.log.path)
        daemon.run("ganesha", "reload", "--export",
                   f"Stable_Write = {('full', 'data')[number]}; "
                   f"Promote_Unstable = {('false', 'true')[number]}; "
                   f"Max_Inflight = {(2, 64, 8192)[turn % 3]}; "
                   f"Max_Write = {(65536, 1048576)[number]}; "
                   f"Object_Size = {(1048576, 0, 65536)[turn % 3]}; "
                   f"Slow_Op_Warn = {(20000, 30000)[number]};")
        end = time.monotonic() + UNEXPORT_S
        while not log.matching(r"export 1: Slow_Op_Warn = "):
            assert time.monotonic() < end, log.text()
            time.sleep(0.1)
    daemon.run("ganesha", "reload", "--export", "")
    no_report(daemon)


def test_end_after_load(daemon, say):
    """What the load had is gone.  Ganesha leaves a text for each reload."""
    daemon.stop(END_S)
    no_report(daemon)
    tell(daemon, say)


def test_end_under_load(daemon, started_again, loaded, say):
    """SIGTERM in the midst of it."""
    daemon.stop(END_S)
    no_report(daemon)
    tell(daemon, say)


def tell(daemon, say):
    found = daemon.reports()
    if found.others:
        say(f"{len(found.others)} reports about code that is not "
            f"instrumented, kept in {daemon.prefix}.*")
    if found.ganeshas_leaks:
        say(f"{len(found.ganeshas_leaks)} kinds of memory that Ganesha left "
            f"behind, kept in {daemon.prefix}.*")
