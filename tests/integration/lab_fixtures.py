# SPDX-License-Identifier: LGPL-3.0-or-later
"""The lab, started once; evidence for every failure."""
import contextlib

import cephfs
import pytest

from lab import LOGS, Lab
from lab_program import ceph

THE_LAB = Lab()


@pytest.fixture(scope="session")
def cluster():
    """A running lab; it stays up, for a second run or a look."""
    THE_LAB.up()
    return THE_LAB


@pytest.fixture
def lab(cluster):
    """The lab with Ganesha "a" running CEPH_ASYNC with default keys."""
    cluster.ensure_default()
    return cluster


@pytest.fixture
def second(cluster):
    """Starts a second Ganesha, "b", by second(…); it ends with the test."""
    yield cluster.start_second
    cluster.stop_second()


@pytest.fixture
def till_end(cluster):
    """Enters a context, by till_end(…), for the rest of the test.  If it is
    named before `second`, that one's end belongs to it."""
    with contextlib.ExitStack() as stack:
        yield stack.enter_context


@pytest.fixture
def cephfs_client(lab):
    """CephFS without a gateway, as root."""
    fs = cephfs.LibCephFS(conffile="/etc/ceph/ceph.conf")
    fs.conf_set("admin_socket", "")     # it could have Ganesha's name
    fs.conf_set("client_acl_type", "posix_acl")
    fs.mount()
    yield fs
    fs.shutdown()


@pytest.fixture
def journal_paused():
    """Pauses the MDS' journal; it goes on with the test's end."""
    def pause(value):
        ceph("tell", "mds.a", "config", "set", "mds_log_pause", value)
    yield pause
    pause("false")


@contextlib.contextmanager
def without_cluster(lab):
    """For a job that starts its own cluster, and judges the logs itself: its
    faults explain lines that no other test may cause.  The tests after it find
    the cluster that they know."""
    lab.run("down")
    ends = [log.end() for log in lab.whole_logs]
    yield lab
    lab.run("down")
    for log, end in zip(lab.whole_logs, ends):
        log.leave_out(end)
    lab.run("up", "--fsal", "CEPH_ASYNC", timeout=180)


@pytest.fixture
def nothing_up(cluster):
    with without_cluster(cluster):
        yield cluster


@pytest.fixture
def record(say):
    """Says a line to whoever watches the run and keeps it in its log."""
    def keep(line):
        say(line)
        with open(LOGS / "measured.txt", "a", encoding="utf-8") as file:
            file.write(line + "\n")
    return keep


def pytest_collection_modifyitems(items):
    """The look at the logs comes last, whatever the folder's order."""
    items.sort(key=lambda item: item.get_closest_marker("closing") is not None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed and THE_LAB.started:
        report.sections.append(("end of Ganesha's logs", THE_LAB.tails()))
    return report
