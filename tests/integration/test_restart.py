# SPDX-License-Identifier: LGPL-3.0-or-later
"""A client with open files lives through what happens to Ganesha."""
import time

import pytest

VERSIONS = ("3", "4.0", "4.1", "4.2")


def during(lab, tmp_path, vers, name, happening):
    """A client keeps files open while HAPPENING is called."""
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
        return lab.end_client(process, seconds=90)
    finally:
        process.terminate()
        process.wait(30)


@pytest.mark.parametrize("vers", ("3", "4.2"))
def test_ceph_becomes_ceph_async(lab, tmp_path, vers):
    """One word changes in the export; file handles stay what they were."""
    lab.ganesha("restart", "--fsal", "CEPH")

    def change_the_word():
        lab.ganesha("restart", "--fsal", "CEPH_ASYNC")
        assert lab.stat()["ganesha"]["a"]["fsal"] == "CEPH_ASYNC"
    assert "all well" in during(lab, tmp_path, vers, "word", change_the_word)


@pytest.mark.parametrize("vers", ("4.2",))
def test_ceph_async_becomes_ceph(lab, tmp_path, vers):
    """And back: nothing of ours stands in the way."""
    def change_the_word():
        lab.ganesha("restart", "--fsal", "CEPH")
    assert "all well" in during(lab, tmp_path, vers, "back", change_the_word)


@pytest.mark.parametrize("vers", VERSIONS)
def test_kill_9(lab, tmp_path, vers):
    """Stable data and sizes survive the daemon; so do open files."""
    def kill():
        lab.ganesha("kill9")
        lab.ganesha("start")
    assert "all well" in during(lab, tmp_path, vers, "kill", kill)
