# SPDX-License-Identifier: LGPL-3.0-or-later
"""docs/quick-start.md, as a new user walks it: each command as it stands there.

There is no systemd in a container: `systemctl` is a stand-in that runs what
the unit of the package runs.  For the same reason Ganesha gets one more key,
allow_set_io_flusher_fail: a container has not that capability.
"""
import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from machine import PACKAGES, ganesha

TEXT = Path("/opt/casync/docs/quick-start.md").read_text(encoding="utf-8")
MAJOR = ganesha().partition(".")[0]
# A block for one Ganesha ends in its major version: gateway5, gateway9.
BLOCKS = [(where, script) for where, version, script in re.findall(
    r"^```sh ([a-z]+)(\d*)\n(.*?)^```$", TEXT, re.M | re.S)
    if version in ("", MAJOR)]
HOST = "gateway.example.com"
LOG = Path("/var/log/ganesha/ganesha.log")
SYSTEMCTL = """#!/bin/bash
# restart nfs-ganesha, as its unit does
set -e
[ "$*" = "restart nfs-ganesha" ]
pkill -x ganesha.nfsd && while pgrep -x ganesha.nfsd > /dev/null; do
	sleep 0.1
done
mkdir -p /run/ganesha /var/log/ganesha
grep -q allow_set_io_flusher_fail /etc/ganesha/ganesha.conf ||
	sed -i 's/NFS_CORE_PARAM {$/&\\n\\tallow_set_io_flusher_fail = true;/' \\
	/etc/ganesha/ganesha.conf
. /etc/default/nfs-ganesha
start=$(sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/nfs-ganesha.service)
eval "$start" > /dev/null 2>&1
for _ in $(seq 300); do
	timeout 5 nfs-ls 'nfs://127.0.0.1/?version=4' > /dev/null 2>&1 && exit 0
	sleep 0.1
done
echo "nfs-ganesha does not serve" >&2
exit 1
"""


def evict_all(machine):
    """FSAL_CEPH leaves its session behind, and others would wait for it."""
    for session in machine.stat()["mds"]["sessions"]:
        machine.evict_session(session["id"])


@pytest.fixture(scope="module")
def site(machine, tmp_path_factory):
    """A cluster without gateway, the packages in a folder, names of hosts."""
    machine.run("ganesha", "stop")
    evict_all(machine)
    kept = {path: path.read_bytes() if path.exists() else None
            for path in map(Path, ("/etc/ceph/ceph.conf", "/etc/hosts",
                                   "/etc/ganesha/ganesha.conf"))}
    folder = tmp_path_factory.mktemp("gateway")
    for package in (PACKAGES / "deb/this/out").glob("*.deb"):
        (folder / package.name).symlink_to(package)
    (folder / "bin").mkdir()
    (folder / "bin/systemctl").write_text(SYSTEMCTL)
    (folder / "bin/systemctl").chmod(0o755)
    Path("/etc/hosts").write_bytes(kept[Path("/etc/hosts")] +
                                   f"127.0.0.1 {HOST}\n".encode())
    yield folder
    subprocess.run(["pkill", "-x", "ganesha.nfsd"], check=False, timeout=30)
    time.sleep(2)
    subprocess.run(["apt-get", "purge", "-q", "-y", "nfs-ganesha-ceph-async"],
                   check=True, timeout=120, stdout=subprocess.DEVNULL)
    for path, content in kept.items():
        if content is None:
            path.unlink(missing_ok=True)
        else:
            path.write_bytes(content)
    Path("/etc/ceph/ceph.client.nfs-projects.keyring").unlink()
    evict_all(machine)
    machine.run("ganesha", "start", "--fsal", "CEPH")


def on_host(folder, script):
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], cwd=folder, text=True,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive",
             "PATH": f"{folder}/bin:{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=300,
        stderr=subprocess.STDOUT, check=False)
    print(f"$ {script}{done.stdout}")
    assert done.returncode == 0, f"{script}\n{done.stdout}"
    return done.stdout


def on_client(script):
    """In a kernel of its own, which knows where the gateway is."""
    known = (f"awk '/ lab$/ {{ print $1, \"{HOST}\" }}' /run/hosts "
             ">> /run/hosts.more; cat /run/hosts.more >> /run/hosts\n")
    done = subprocess.run(
        ["lab", "client", "--fs", "ceph", "--timeout", "100", "--", "bash",
         "-euc", known + "modprobe nfsv4\n" + script], text=True, timeout=130,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, check=False)
    print(f"client$ {script}{done.stdout}")
    assert done.returncode == 0, f"{script}\n{done.stdout}"
    return done.stdout


def test_the_page_is_walked(machine, site):
    """In its order; then once more as the client, with FSAL_CEPH."""
    begun = time.monotonic()
    said = {}
    for where, script in BLOCKS:
        if where == "client":
            said[script] = on_client(script)
        else:
            said[script] = on_host(site, script)
    print(f"walked in {time.monotonic() - begun:.0f} s")
    places = [where for where, _ in BLOCKS]
    assert places.count("client") == 1 and places[0] == "admin"

    def output(words):
        found = [text for script, text in said.items() if words in script]
        assert len(found) == 1, words
        return found[0]
    assert "0 errors, 0 warnings" in output("ganesha-ceph-async-check")
    assert f"(built for {ganesha()})" in output("grep 'FSAL CEPH_ASYNC'")
    assert re.search(r"session_state\{.*client=\"nfs-projects@.*\} 1",
                     output("grep ceph_async__session_state"))
    assert "hello" in output("mount -t nfs4")
    # FSAL_CEPH serves now: the same mount, the same file.
    client = next(script for where, script in BLOCKS if where == "client")
    assert "hello" in on_client(client)
    lines = LOG.read_text(errors="replace").splitlines()
    last = max(i for i, line in enumerate(lines)
               if " Starting: Ganesha Version" in line)
    assert not any("FSAL CEPH_ASYNC" in line for line in lines[last:])
