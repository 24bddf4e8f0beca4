# SPDX-License-Identifier: LGPL-3.0-or-later
"""What the lab says of a process that ends, and of a command that would have
no effect."""
import json
import platform
import signal
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from lab_program import until

sys.path.append(str(Path(__file__).resolve().parents[2] / "lab"))
from casync_lab import asok, cli, ganesha, stat
from casync_lab.util import LabError, alive, end_pid

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


def test_a_process_that_does_not_end_is_told():
    child = subprocess.Popen([sys.executable, "-c", "import signal, time;"
                              "signal.signal(signal.SIGTERM, signal.SIG_IGN);"
                              "print(flush=True); time.sleep(60)"],
                             stdout=subprocess.PIPE)
    child.stdout.readline()
    with pytest.raises(LabError, match=r"haproxy .* did not end"):
        end_pid(child.pid, "haproxy", timeout=0.2)
    end_pid(child.pid, "haproxy", signal.SIGKILL)
    child.wait()


ASKED = "get_command_descriptions"
DESCRIBED = {"cmd000": {"sig": ["session", "evict", {"name": "filters"}]},
             "cmd001": {"sig": ["session", "ls", {"name": "cap_dump"}]}}


@pytest.fixture
def daemon(tmp_path):
    """An admin socket that does whatever it is asked to, as Ceph's."""
    path, heard = tmp_path / "mds.asok", []
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()

    def serve():
        while True:
            try:
                one, _ = server.accept()
            except OSError:
                return
            with one:
                request = json.loads(one.recv(4096).rstrip(b"\0"))
                heard.append(request)
                answer = json.dumps(
                    DESCRIBED if request["prefix"] == ASKED else {}).encode()
                one.sendall(struct.pack(">I", len(answer)) + answer)
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield path, heard
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join(5)


def test_an_argument_that_a_daemon_ignores(daemon):
    """`session evict` with a client_id evicted all clients: Ceph 20 knows
    filters only, and ignores the rest."""
    path, heard = daemon
    with pytest.raises(LabError, match="takes filters, not client_id"):
        asok.ask(path, "session evict", client_id="5")
    assert not [one for one in heard if one["prefix"] == "session evict"]
    asok.ask(path, "session evict", filters=["id=5"])
    assert heard[-1]["filters"] == ["id=5"]


@pytest.mark.parametrize("words", [
    ["stop", "--fsal", "CEPH"], ["kill9", "--export", "Key = 1;"],
    ["reload", "--log-level", "NIV_DEBUG"], ["reload", "--faults"],
    ["reload", "--port", "2050"]])
def test_an_option_that_an_action_ignores(words):
    with pytest.raises(LabError, match="does not heed"):
        cli.cmd_ganesha(cli._parser().parse_args(["ganesha", *words]))
