# SPDX-License-Identifier: LGPL-3.0-or-later
"""A client with open files lives through what happens to Ganesha."""
import time

import pytest
from lab import LOGS, Log
from test_signed_handles import KEYS, SAYS_SO, key  # noqa: F401 (pytest finds it here)

STALE = 70              # of keep_open.py
VERSIONS = ("3", "4.0", "4.1", "4.2")
SERVED_WITHIN_S = 30


def during(lab, tmp_path, vers, name, happening, status=0):
    """A client keeps files open while HAPPENING is called.  What it said."""
    process = lab.start_client(
        "python3", "-B", lab.scripts / "keep_open.py",
        f"/mnt/nfs/{name}-{time.time_ns()}", tmp_path, vers=vers,
        seconds=110)
    try:
        end = time.monotonic() + 60
        while not (tmp_path / "ready").exists():
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < end, "the client does not get ready"
            time.sleep(0.1)
        happening()
        (tmp_path / "go").touch()
        return lab.end_client(process, seconds=90, status=status)
    finally:
        process.terminate()
        process.wait(30)


def restarted(lab, record, fsal):
    """As that FSAL.  If the two named their sessions in different forms, it
    would take until the MDS ends the old one: five minutes."""
    began = time.monotonic()
    lab.ganesha("restart", "--fsal", fsal)
    seconds = time.monotonic() - began
    record(f"the other FSAL replaced by {fsal}: served after {seconds:.1f} s")
    assert lab.stat()["ganesha"]["a"]["fsal"] == fsal
    assert seconds < SERVED_WITHIN_S


@pytest.mark.parametrize("vers", ("3", "4.2"))
def test_ceph_becomes_ceph_async(lab, tmp_path, record, vers):
    """One word changes in the export; file handles stay what they were."""
    lab.ganesha("restart", "--fsal", "CEPH")
    assert "all well" in during(
        lab, tmp_path, vers, "word",
        lambda: restarted(lab, record, "CEPH_ASYNC"))


@pytest.mark.parametrize("vers", ("4.2",))
def test_ceph_async_becomes_ceph(lab, tmp_path, record, vers):
    """And back: nothing of ours stands in the way."""
    assert "all well" in during(
        lab, tmp_path, vers, "back", lambda: restarted(lab, record, "CEPH"))


def signing(lab):
    lab.ganesha("restart", "--fsal", "CEPH_ASYNC", "--block",
                f'Handle_Keys = "{KEYS}"; Sign_Handles = true;')


@pytest.mark.parametrize("vers", ("3", "4.2"))
def test_signed_handles_become_ceph(lab, tmp_path, record, key,  # noqa: F811 (the fixture)
                                    vers):
    """FSAL_CEPH does not look at what follows its own bytes."""
    signing(lab)
    assert "all well" in during(
        lab, tmp_path, vers, "signed", lambda: restarted(lab, record, "CEPH"))


@pytest.mark.parametrize("vers", ("3", "4.2"))
def test_ceph_becomes_signed_handles(lab, tmp_path, key, vers):  # noqa: F811 (the fixture)
    """Its handles have no signature: who is mounted has to mount again."""
    lab.ganesha("restart", "--fsal", "CEPH")
    log = Log(LOGS / "ganesha-a.log")
    assert "stale handles" in during(lab, tmp_path, vers, "unsigned",
                                     lambda: signing(lab), status=STALE)
    assert log.matching(SAYS_SO)


@pytest.mark.parametrize("vers", VERSIONS)
def test_kill_9(lab, tmp_path, vers):
    """Stable data and sizes survive the daemon; so do open files."""
    def kill():
        lab.ganesha("kill9")
        lab.ganesha("start")
    assert "all well" in during(lab, tmp_path, vers, "kill", kill)
