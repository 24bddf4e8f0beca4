# SPDX-License-Identifier: LGPL-3.0-or-later
"""What the lab takes for the end of a process."""
import platform
import subprocess
import sys
from pathlib import Path

from lab_program import until

sys.path.append(str(Path(__file__).resolve().parents[2] / "lab"))
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
