# SPDX-License-Identifier: LGPL-3.0-or-later
"""docs/quick-start.md, as a new user walks it: each command as it stands there.

There is no systemd in a container: `systemctl` is a stand-in that runs what
the unit of the package runs.  For the same reason Ganesha gets one more key,
allow_set_io_flusher_fail: a container has not that capability.

There are no images and no cephadm either: see cephadm.py, and what the page
says of it.  Blocks with the role "cephadm" are not run.
"""
import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from cephadm import Cephadm
from lab import LOGS, Log
from lab_program import until
from machine import PACKAGES, command, ganesha

TEXT = Path("/opt/casync/docs/quick-start.md").read_text(encoding="utf-8")
FIRST, SECOND = TEXT.split("## The second way: ")
MAJOR = ganesha().partition(".")[0]
HOST = "gateway.example.com"
LOG = Path("/var/log/ganesha/ganesha.log")
# Of the second way.
CLUSTER, IMAGE = "mycluster", "registry.example.com/ganesha-async"
# Ganesha 5.9 does not know the key, and does without.
FLUSHER = "" if MAJOR == "5" else """\
grep -q allow_set_io_flusher_fail /etc/ganesha/ganesha.conf ||
	sed -i 's/NFS_CORE_PARAM {$/&\\n\\tallow_set_io_flusher_fail = true;/' \\
	/etc/ganesha/ganesha.conf
"""
# It waits for a line of the log.  An NFSv4.0 client that asks, as nfs-ls does,
# leaves a name for which the next Ganesha would wait the whole grace period.
SYSTEMCTL = f"""#!/bin/bash
# restart nfs-ganesha, as its unit does
set -e
[ "$*" = "restart nfs-ganesha" ]
pkill -x ganesha.nfsd && while pgrep -x ganesha.nfsd > /dev/null; do
	sleep 0.1
done
mkdir -p /run/ganesha /var/log/ganesha
{FLUSHER}. /etc/default/nfs-ganesha
start=$(sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/nfs-ganesha.service)
before=$(stat -c %s {LOG} 2> /dev/null || echo 0)
eval "$start" > /dev/null 2>&1
for _ in $(seq 900); do
	tail -c "+$((before + 1))" {LOG} 2> /dev/null |
		grep -q "NFS SERVER INITIALIZED" && exit 0
	sleep 0.1
done
echo "nfs-ganesha does not serve; the end of its log:" >&2
tail -n 30 /var/log/ganesha/ganesha.log >&2
pgrep -a ganesha.nfsd >&2
exit 1
"""


def blocks(text):
    """Where each block of commands is typed, and the commands.  A block for
    one Ganesha ends in its major version: gateway5, gateway9."""
    return [(where, script) for where, version, script in re.findall(
        r"^```sh ([a-z]+)(\d*)\n(.*?)^```$", text, re.M | re.S)
        if version in ("", MAJOR)]


def evict_all(machine):
    """FSAL_CEPH leaves its session behind, and others would wait for it."""
    for session in machine.stat()["mds"]["sessions"]:
        machine.evict_session(session["id"])


def end_ganesha():
    """The unit's stand-in has started it: no program of the lab knows it."""
    subprocess.run(["pkill", "-x", "ganesha.nfsd"], check=False, timeout=30)
    until(lambda: subprocess.run(["pgrep", "-x", "ganesha.nfsd"], check=False,
                                 stdout=subprocess.DEVNULL).returncode,
          "its end", 30)


@pytest.fixture
def site(machine, tmp_path):
    """A cluster without gateway, the packages in a folder, names of hosts."""
    machine.run("ganesha", "stop")
    evict_all(machine)
    kept = {path: path.read_bytes() if path.exists() else None
            for path in map(Path, ("/etc/ceph/ceph.conf", "/etc/hosts",
                                   "/etc/ganesha/ganesha.conf"))}
    for package in (PACKAGES / "deb/this/out").glob("*.deb"):
        (tmp_path / package.name).symlink_to(package)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/systemctl").write_text(SYSTEMCTL)
    (tmp_path / "bin/systemctl").chmod(0o755)
    Path("/etc/hosts").write_bytes(kept[Path("/etc/hosts")] +
                                   f"127.0.0.1 {HOST}\n".encode())
    yield tmp_path
    end_ganesha()
    command("dpkg", "--purge", "nfs-ganesha-ceph-async-compat",
            "nfs-ganesha-ceph-async")
    for path, content in kept.items():
        if content is None:
            path.unlink(missing_ok=True)
        else:
            path.write_bytes(content)
    Path("/etc/ceph/ceph.client.nfs-projects.keyring").unlink(missing_ok=True)
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
    """In a kernel of its own, which knows where the gateway is.  It leaves in
    order: the next one would wait for it for the whole grace period."""
    known = (f"awk '/ lab$/ {{ print $1, \"{HOST}\" }}' /run/hosts "
             ">> /run/hosts.more; cat /run/hosts.more >> /run/hosts\n")
    done = subprocess.run(
        ["lab", "client", "--fs", "ceph", "--timeout", "100", "--", "bash",
         "-euc", f"{known}modprobe nfsv4\n{script}\numount -a -t nfs4"],
        text=True, timeout=130,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, check=False)
    print(f"client$ {script}{done.stdout}")
    assert done.returncode == 0, f"{script}\n{done.stdout}"
    return done.stdout


class Walk:
    """The commands of a part of the page, in its order, and what they said.
    AFTER is told of each block that was run on a host."""

    def __init__(self, site, text, after=lambda script: None):
        begun = time.monotonic()
        self.said, self.left_out = {}, []
        self.blocks = blocks(text)
        for where, script in self.blocks:
            if where == "cephadm":
                self.left_out.append(script)
            elif where == "client":
                self.said[script] = on_client(script)
            else:
                self.said[script] = on_host(site, script)
                after(script)
        print(f"walked in {time.monotonic() - begun:.0f} s")

    def places(self):
        return {where for where, _ in self.blocks}

    def client(self):
        found = [script for where, script in self.blocks if where == "client"]
        assert len(found) == 1
        return found[0]

    def output(self, words):
        found = [said for script, said in self.said.items() if words in script]
        assert len(found) == 1, words
        return found[0]


def test_the_page_is_walked(machine, site):
    """Then once more as the client, with FSAL_CEPH."""
    sockets = set()         # what the runbook asks of Ceph's client
    walk = Walk(site, FIRST, lambda _: sockets.update(
        Path("/var/run/ceph").glob("client.nfs-projects.*.asok")))
    assert sockets
    assert walk.places() == {"admin", "gateway", "client"}
    assert walk.blocks[0][0] == "admin"
    assert "0 errors, 0 warnings" in walk.output("ganesha-ceph-async-check")
    assert f"(built for {ganesha()})" in walk.output("grep 'FSAL CEPH_ASYNC'")
    assert re.search(r"session_state\{.*client=\"nfs-projects@.*\} 1",
                     walk.output("grep ceph_async__session_state"))
    assert "hello" in walk.output("mount -t nfs4")
    # FSAL_CEPH serves now: the same mount, the same file.
    assert "hello" in on_client(walk.client())
    lines = LOG.read_text(errors="replace").splitlines()
    last = max(i for i, line in enumerate(lines)
               if " Starting: Ganesha Version" in line)
    assert not any("FSAL CEPH_ASYNC" in line for line in lines[last:])


@pytest.fixture
def cephadm(site):
    does = Cephadm(CLUSTER, IMAGE, site)
    yield does
    does.end()


def test_the_second_way_is_walked(machine, site, cephadm):
    """With what cephadm does in between; then once more as the client, with
    FSAL_CEPH."""
    log = Log(LOGS / f"ganesha-{CLUSTER}.log")
    walk = Walk(site, SECOND, cephadm.ran)
    assert walk.places() == {"admin", "gateway", "client", "cephadm"}
    # What is left out is podman's, and all that is podman's is.
    assert len(walk.left_out) == 1 and "podman build" in walk.left_out[0]
    assert not any("podman" in script for script in walk.said)
    assert re.search(r"session_state\{.*client=\"nfs\.mycluster.*@.*\} 1",
                     walk.output("grep ceph_async__session_state"))
    assert "hello" in walk.output("mount -t nfs4")

    # Started by "create", "apply", "config set", and for the way back.  There
    # was no export before the third one: Ganesha loads no FSAL then.
    starts = re.split(r"(?m)^(?=.* Starting: Ganesha Version)", log.text())[1:]
    ours = [f"(built for {ganesha()})" in start for start in starts]
    assert ours == [False, False, True, False]
    serves = starts[2]
    assert "the first of 1 keys signs" in serves
    assert not re.findall(r".* :FSAL :(?:WARN|MAJ|CRIT|FATAL) :.*", serves)
    # FSAL_CEPH serves now: the same export, the same file.
    assert "hello" in on_client(walk.client())
