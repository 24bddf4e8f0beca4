# SPDX-License-Identifier: LGPL-3.0-or-later
"""What the lab says of a process that ends."""
import platform
import subprocess
import sys
from pathlib import Path

from lab_program import until

sys.path.append(str(Path(__file__).resolve().parents[2] / "lab"))
from casync_lab import ganesha, stat
from casync_lab.util import alive

# exit(2) ends the calling thread alone.
EXIT = 60 if platform.machine() == "x86_64" else 93
LEADER_ENDS = f"""
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
ctypes.CDLL(None).syscall({EXIT}, 0)
"""


def is_zombie(pid):
    text = Path(f"/proc/{pid}/stat").read_text()
    return text.rpartition(")")[2].split()[0] == "Z"


def test_a_zombie_is_alive_until_its_last_thread_ends():
    """Its locks on files last: a manager that was killed was started again
    too early."""
    child = subprocess.Popen([sys.executable, "-c", LEADER_ENDS])
    until(lambda: is_zombie(child.pid), "the first thread has ended", 10)
    assert alive(child.pid)
    child.kill()
    until(lambda: not alive(child.pid), "all threads have ended", 10)
    assert is_zombie(child.pid)
    child.wait()


def test_stat_of_a_gateway_that_ends(monkeypatch):
    """Between the look at its pid and at its memory it became a zombie, or
    was gone: `lab stat` failed."""
    child = subprocess.Popen(["true"])
    pids = [child.pid, child.pid]
    monkeypatch.setattr(ganesha, "pid", lambda name: pids.pop(0))
    monkeypatch.setattr(ganesha, "spec_of", lambda name: dict.fromkeys(
        ("fsal", "port", "pseudo")))
    until(lambda: is_zombie(child.pid), "a zombie", 10)
    found = stat._ganesha("a")
    assert found["pid"] == child.pid and found["rss_kib"] is None
    child.wait()
    pids = [child.pid, None]
    found = stat._ganesha("a")
    assert found["pid"] is None and found["rss_kib"] is None
