# SPDX-License-Identifier: LGPL-3.0-or-later
"""Files whose capabilities another client of CephFS keeps."""
import signal
import subprocess
import sys

# It has all files open, and what it wrote is not on the OSDs.
HOLD = """
import cephfs, os, sys
fs = cephfs.LibCephFS(conffile="/etc/ceph/ceph.conf")
fs.mount()
for number in range(int(sys.argv[2])):
    fd = fs.open(f"{sys.argv[1]}/{number}", os.O_WRONLY, 0o644)
    fs.write(fd, b"held", 0)
print("held", flush=True)
sys.stdin.read()
"""
# For a truncation the MDS takes back everybody's capabilities.
TRUNCATE = """
import cephfs, sys, threading
fs = cephfs.LibCephFS(conffile="/etc/ceph/ceph.conf")
fs.mount()
threads = [threading.Thread(target=fs.truncate,
                            args=(f"{sys.argv[1]}/{number}", 1 << 20))
           for number in range(int(sys.argv[2]))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def python(code, *args):
    return subprocess.Popen([sys.executable, "-c", code, *map(str, args)],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            text=True)


class Withheld:
    """COUNT files of a folder at CephFS' root, named by their numbers: a
    client that is stopped has them open for writing, and the MDS wants its
    capabilities back for a truncation."""

    def __init__(self, folder, count):
        self.holder = python(HOLD, f"/{folder}", count)
        assert self.holder.stdout.readline() == "held\n"
        self.holder.send_signal(signal.SIGSTOP)
        self.cutter = python(TRUNCATE, f"/{folder}", count)

    def are_withheld(self):
        return self.cutter.poll() is None

    def let_go(self):
        self.holder.send_signal(signal.SIGCONT)
        self.holder.communicate(timeout=60)
        self.cutter.communicate(timeout=60)
        assert self.cutter.returncode == 0
