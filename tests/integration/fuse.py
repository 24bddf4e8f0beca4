# SPDX-License-Identifier: LGPL-3.0-or-later
"""CephFS' own client beside the gateways: ceph-fuse on a folder."""
import os
import subprocess
import time
from pathlib import Path

FOLDER = Path("/run/casync-fuse")


class Fuse:
    """The file system of one ceph-fuse; no admin socket, whose name could
    be Ganesha's."""

    def __init__(self, folder=FOLDER):
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.process = subprocess.Popen(
            ["ceph-fuse", "-f", "--admin_socket=", "--client_acl_type="
             "posix_acl", "--fuse_default_permissions=0", str(folder)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        end = time.monotonic() + 30
        while not os.path.ismount(folder):
            assert self.process.poll() is None, "ceph-fuse ended"
            assert time.monotonic() < end, "no mount by ceph-fuse"
            time.sleep(0.05)

    def kill(self):
        """As a crash: its session stays until it is evicted."""
        self.process.kill()
        self.process.wait(30)
        subprocess.run(["umount", "-l", str(self.folder)], check=True,
                       timeout=30)

    def end(self):
        if self.process.poll() is None:
            subprocess.run(["umount", "-l", str(self.folder)], check=True,
                           timeout=30)
            self.process.wait(60)
