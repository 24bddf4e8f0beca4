# SPDX-License-Identifier: LGPL-3.0-or-later
"""A Linux kernel client that stays up, one for each system."""
from __future__ import annotations

import json
import re
import shlex
import socket
import subprocess
from pathlib import Path
from typing import Any

from lab_program import client_command

AGENT = Path(__file__).with_name("agent.py")
BOOT_LIMIT_S = 90
LIFE_S = 12 * 3600
# NFSv4.1 clients and servers agree on how many requests may be in flight:
# 64 by default on both sides, and there are loads with 128.
SLOTS = 256
# User-mode Linux misses the interrupt of a packet now and then, of one in a
# thousand where nothing else comes.  The packet is seen when the sender's TCP
# probes for its loss: 200 ms later by default, which was the p99 of buffered
# reads.  The routes at both ends make it probe earlier.  A tap device that a
# former client has left has such a route already.
EARLY_PROBES = (
    "set -e; ip route show | sed -E 's/ linkdown//; "
    "s/ rto_min (lock )?[0-9a-z]+//; s/$/ rto_min 30ms/' | "
    "grep -E 'dev {device}( |$)' | "
    "while read -r route; do ip route replace $route; done")


class KernelClient:
    """`lab client` with the agent in it; run() is a script's stdout."""

    def __init__(self, options: list[str], mem: str = "1G") -> None:
        with socket.create_server(("0.0.0.0", 0)) as listener:
            listener.settimeout(BOOT_LIMIT_S)
            port = listener.getsockname()[1]
            self.process = subprocess.Popen(
                client_command("python3", AGENT, port, timeout=LIFE_S,
                               options=[*options, "--mem", mem]),
                cwd="/tmp", stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            self.socket = self._accept(listener, options)
        self.stream = self.socket.makefile("rw", encoding="utf-8")
        self._probe_early()
        self.mounted = ""
        self.mem = mem
        self.rtt_ms = 0.0

    def _accept(self, listener: socket.socket,
                options: list[str]) -> socket.socket:
        try:
            return listener.accept()[0]
        except TimeoutError:
            self.process.terminate()
            _, said = self.process.communicate(timeout=60)
            raise SystemExit(f"bench: no kernel client {options}: "
                             f"{said.decode(errors='replace')}") from None

    def _probe_early(self) -> None:
        """On the way here, and from here to another kernel client."""
        address = self.run(EARLY_PROBES.format(device="vec0") +
                           "; ip -4 -o addr show vec0")
        number = re.search(r"inet 10\.9\.(\d+)\.", address)
        if not number:
            raise SystemExit(f"bench: a kernel client at {address}")
        subprocess.run(
            ["sh", "-c", EARLY_PROBES.format(device=f"tap{number[1]}")],
            check=True, timeout=10, stdin=subprocess.DEVNULL)

    def run(self, script: str, timeout: float = 300) -> str:
        done = self.ask(script, timeout)
        if done["status"]:
            raise SystemExit(f"bench: in the kernel client: {script}\nstatus "
                             f"{done['status']}\n{done['out']}{done['err']}")
        return done["out"]

    def ask(self, script: str, timeout: float = 300) -> dict[str, Any]:
        self.socket.settimeout(timeout + 30)
        self.stream.write(json.dumps(
            {"script": script, "timeout": timeout}) + "\n")
        self.stream.flush()
        line = self.stream.readline()
        if not line:
            raise SystemExit(f"bench: the kernel client died in: {script}")
        return json.loads(line)

    def mount_nfs(self, source: str, port: int, mount_port: int, vers: str,
                  opts: str) -> None:
        """Mount anew, unless it is mounted like that."""
        words = [f"vers={vers}", "proto=tcp", f"port={port}"]
        if vers == "3":
            words += [f"mountport={mount_port}", "mountproto=tcp", "nolock"]
        wanted = ",".join(words + ([opts] if opts else []))
        if wanted == self.mounted:
            return
        kind = "nfs" if vers == "3" else "nfs4"
        slots = "/sys/module/nfs/parameters/max_session_slots"
        self.run(
            "mountpoint -q /mnt/nfs && umount /mnt/nfs; mkdir -p /mnt/nfs; "
            f"modprobe nfs; modprobe nfsv{vers[0]}; "
            f"[ -e {slots} ] && echo {SLOTS} > {slots}; "
            f"mount -t {kind} -o {shlex.quote(wanted)} {source} /mnt/nfs")
        self.mounted = wanted

    def unmount_nfs(self) -> None:
        if self.mounted:
            self.run("umount /mnt/nfs")
        self.mounted = ""

    def set_rtt(self, rtt_ms: float) -> None:
        """All that it sends waits so long; what it gets does not."""
        if rtt_ms == self.rtt_ms:
            return
        self.run("tc qdisc del dev vec0 root 2>/dev/null; " + (
            f"tc qdisc add dev vec0 root netem delay {rtt_ms:g}ms "
            "limit 100000" if rtt_ms else "true"))
        self.rtt_ms = rtt_ms

    def kill(self) -> None:
        """Without a word to it."""
        self.socket.close()
        self.process.terminate()
        self.process.communicate(timeout=60)

    def close(self) -> None:
        """The agent ends when its connection does, then the kernel."""
        self.stream.close()
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        try:
            self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.process.terminate()
            self.process.wait(30)
        if self.process.stderr:
            self.process.stderr.close()
