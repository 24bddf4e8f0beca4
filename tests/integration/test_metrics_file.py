# SPDX-License-Identifier: LGPL-3.0-or-later
"""Metrics_File: node_exporter itself reads it."""
import os
import re
import subprocess
import time
import urllib.request

import metrics_outputs as outputs
import pytest
from lab import LOGS, Log
from lab_program import until

PORT = 9100 + 99
# A tick of the metrics, and the file's.
SETTLE_S = 2.5


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("textfile")


@pytest.fixture(scope="module")
def exporter(folder):
    """What node_exporter shows of a folder."""
    with subprocess.Popen(
            ["prometheus-node-exporter", "--collector.disable-defaults",
             "--collector.textfile", f"--collector.textfile.directory={folder}",
             f"--web.listen-address=127.0.0.1:{PORT}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        def scrape():
            with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/metrics",
                                        timeout=10) as answer:
                return answer.read().decode()
        for _ in range(50):
            try:
                scrape()
                break
            except OSError:
                time.sleep(0.1)
        yield scrape
        process.terminate()


@pytest.fixture(scope="module")
def shown(cluster, folder):
    """Ganesha with two exports that write to the file."""
    file = folder / "ceph_async.prom"
    cluster.ganesha(
        "restart", "--fresh", "--core", "Enable_Metrics = true;",
        "--block", f'Metrics_File = "{file}";', "--append",
        "EXPORT { Export_Id = 8; Path = /; Pseudo = /eight; "
        "Access_Type = RW; Squash = none; SecType = sys; "
        "FSAL { Name = CEPH_ASYNC; } }")
    yield file
    cluster.ensure_default()


def _made(fifo):
    """False once it is there: Ganesha's own file may be quicker."""
    try:
        os.mkfifo(fifo)
        return False
    except FileExistsError:
        return True


def value(text, name, *labels):
    """Of the one series that has these labels."""
    found = [line for line in text.splitlines()
             if re.match(rf"ceph_async__{name}[{{ ]", line)
             and all(label in line for label in labels)]
    assert len(found) == 1, (name, labels, found)
    return float(found[0].split()[-1])


def test_node_exporter_shows_what_was_written(cluster, shown, exporter):
    cluster.client("dd", "if=/dev/zero", "of=/mnt/nfs/file", "bs=4k",
                   "count=500", "oflag=direct,sync")
    end = time.monotonic() + 4 * SETTLE_S
    text = exporter()
    while value(text, "bytes_total", 'export="1"', 'op="write"') < 500 * 4096:
        assert time.monotonic() < end
        time.sleep(0.2)
        text = exporter()
    assert value(text, "bytes_total", 'export="8"', 'op="write"') == 0
    for export in ('export="1"', 'export="8"'):
        assert value(text, "session_state", export) == 1
    assert value(text, "build_info") == 1
    # node_exporter's own verdict of all files in the folder.
    assert re.search(r"^node_textfile_scrape_error 0$", text, re.M)
    assert f'node_textfile_mtime_seconds{{file="{shown}"}}' in text
    said, _ = outputs.promtool("check", "metrics", text=shown.read_text())
    assert not [line for line in said.splitlines()
                if "abbreviated units" not in line], said


def test_the_endpoint_and_the_file_have_one_set_of_names(shown):
    file = outputs.families(shown.read_text())
    assert len(file) > 50
    assert outputs.families(outputs.scrape()) == file


def test_a_reader_never_sees_a_part(shown):
    """Read as fast as may be, over several writes."""
    end, written = time.monotonic() + 4, set()
    while time.monotonic() < end:
        with shown.open("rb") as file:
            text = file.read()
            written.add(os.fstat(file.fileno()).st_mtime_ns)
        assert text.startswith(b"# HELP ceph_async__build_info")
        assert text.rstrip().splitlines()[-1].startswith(
            b"ceph_async__throttle_us_count")
    assert len(written) >= 3


def test_a_reload_moves_it_and_a_bad_folder_is_told(cluster, shown, folder):
    log = Log(LOGS / "ganesha-a.log")
    other = folder / "other.prom"
    cluster.ganesha("reload", "--block", f'Metrics_File = "{other}";')
    until(lambda: other.exists() and not shown.exists(), "it is elsewhere", 10)
    cluster.ganesha("reload", "--block",
                    f'Metrics_File = "{folder}/none/metrics.txt";')
    until(lambda: log.matching("cannot be written"), "it is told", 10)
    assert not other.exists()
    time.sleep(SETTLE_S)        # it is tried again meanwhile
    assert len(log.matching("cannot be written: No such file")) == 1
    assert len(log.matching("whose names end in .prom")) == 1
    (folder / "none").mkdir()
    until(lambda: log.matching("metrics.txt: is written again"), "a line", 10)
    cluster.ganesha("reload", "--block", f'Metrics_File = "{shown}";')
    until(shown.exists, "it is back", 10)


def test_a_disk_that_hangs_holds_up_nothing_else(cluster, shown):
    """A FIFO in the place of the new file: its open() does not return."""
    log = Log(LOGS / "ganesha-a.log")
    hangs = shown.with_name(f"{shown.name}.new")
    until(lambda: not _made(hangs), "a FIFO", 10)
    until(lambda: log.matching("has not answered for 10 s"), "it is told", 30)
    cluster.client("dd", "if=/dev/zero", "of=/mnt/nfs/file", "bs=4k",
                   "count=50", "oflag=direct,sync")
    cluster.ganesha("reload", "--block", f'Metrics_File = "{shown}x.prom";')
    until(lambda: log.matching("the file stays as it was"), "a reload", 15)
    began = time.monotonic()
    cluster.ganesha("stop")
    assert time.monotonic() - began < 20
    hangs.unlink()
    cluster.ganesha("start", "--block", f'Metrics_File = "{shown}";')
    until(lambda: time.time() - shown.stat().st_mtime < SETTLE_S, "a file", 10)


def test_the_end_removes_it_and_a_crash_leaves_it(cluster, shown):
    assert shown.exists()
    cluster.ganesha("kill9")
    assert shown.exists()
    before = shown.stat().st_mtime_ns
    cluster.ganesha("start")
    until(lambda: shown.stat().st_mtime_ns > before, "it is written", 10)
    cluster.ganesha("stop")
    assert not shown.exists()
    cluster.ganesha("start")
