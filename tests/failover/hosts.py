# SPDX-License-Identifier: LGPL-3.0-or-later
"""Two hosts with one gateway between them, and another gateway elsewhere.

A host is a network namespace with two links: one to its NFS clients, by a
bridge, and one to Ceph.  keepalived, with the project's own sample, moves the
address of gateway "one" between the hosts, and starts and kills its Ganesha.
Gateway "two" is where Ceph is: whoever wants to steal a lock goes there.
"""
from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from lab_program import LOGS, ceph, grace_tool, lab, say, until
from netns import ip, namespace
from nfs import nfs3, rpc

SAMPLES = Path(__file__).resolve().parents[2] / "config"
PAIR = SAMPLES / "high-availability"
STATE = Path("/var/lib/casync-lab")
RUN = STATE / "failover"
BRIDGE, NET = "ha-nfs", "10.13.0"
ROUTER, ADDRESS = f"{NET}.1", f"{NET}.100"
CLIENTS = "10.9.0.0/16"
PORT, PORT_TWO, HOST_TWO = 2049, 12049, "127.0.0.1"
POOL, NAMESPACE = "cephfs_metadata", "gateways"
EXPORT_ID = 7
PSEUDO = "/ha"
BLINK, BLINK_S = "cut a moment", (1, 5)
# Set, it names another FSAL; keepalived hands it on.
FSAL = "FAILOVER_FSAL"
# Set, hosts and Ceph speak IPv6 with each other.
IPV6 = "FAILOVER_IPV6"
CEPH_IPV6 = "fd00:13::1"
CEPH_NETS = ("10.14.{}.", "fd00:14:{}::")


def sample_keys(block: str) -> str:
    """The keys of one block of the pair's ganesha.conf."""
    text = (SAMPLES / "pair.conf").read_text(encoding="utf-8")
    body = re.search(rf"^{block} {{\n(.*?)^}}", text, re.M | re.S)
    assert body, f"pair.conf has no block {block}"
    return " ".join(line.strip() for line in body[1].splitlines()
                    if not line.strip().startswith("#"))


@dataclass
class Bound:
    """Seconds after the address has moved: I/O; opens and locks; all, if it
    was planned."""

    io_s: int
    state_s: int
    planned_s: int


class Host:
    """One of the two."""

    def __init__(self, number: int):
        self.number = number
        self.address = f"{NET}.{10 + number}"
        net = CEPH_NETS[ipv6()].format(number)
        self.ceph = (f"{net}1", f"{net}2")
        self.nfs_link, self.ceph_link = f"ha-nfs{number}", f"ha-ceph{number}"
        self.ganesha = f"one-h{number}"
        self.keepalived: subprocess.Popen | None = None
        self.keeper = namespace()
        self.wrapper = f"nsenter --net=/proc/{self.keeper.pid}/ns/net"
        self._links()

    def _links(self) -> None:
        for link, inner, address in (
                (self.nfs_link, "eth0", self.address),
                (self.ceph_link, "eth1", self.ceph[1])):
            ip("link", "add", link, "type", "veth", "peer", "name", inner,
                "netns", self.keeper.pid)
            ip("link", "set", link, "up")
            ip("link", "set", inner, "up", inside=self.keeper.pid)
            add_address(address, inner, inside=self.keeper.pid)
        ip("link", "set", self.nfs_link, "master", BRIDGE)
        add_address(self.ceph[0], self.ceph_link)
        # No default route: nobody waits for a name server that is not there.
        ip("route", "add", CLIENTS, "via", ROUTER, inside=self.keeper.pid)
        ip("route", "add", ceph_address(), "via", self.ceph[0],
            inside=self.keeper.pid)

    def command(self, *words: str) -> str:
        """The line that runs `lab WORDS` for keepalived."""
        return f"{sys.executable} {Path(__file__)} {' '.join(words)}"

    def watch(self, other: Host) -> None:
        """keepalived begins, configured by the sample."""
        conf = RUN / f"keepalived-{self.number}.conf"
        conf.write_text(self.configuration(other), encoding="utf-8")
        with open(LOGS / f"keepalived-{self.number}.log", "ab") as out:
            self.keepalived = subprocess.Popen(
                [*self.wrapper.split(), "keepalived", "--dont-fork",
                 "--log-console", "--log-detail", "--vrrp", "-f", str(conf),
                 "-p", f"{RUN}/keepalived-{self.number}.pid",
                 "-r", f"{RUN}/vrrp-{self.number}.pid"],
                env={**os.environ,
                     "TAKE_OVER_STAMP": f"{RUN}/take-over-{self.number}"},
                stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    def configuration(self, other: Host) -> str:
        """The sample with this lab's addresses and commands."""
        text = (PAIR / "keepalived.conf").read_text(encoding="utf-8")
        systemctl = "/usr/bin/systemctl"
        for old, new in (
                ("/etc/keepalived/check-gateway.sh",
                 str(PAIR / "check-gateway.sh")),
                ("/etc/keepalived/take-over.sh nfs_recovery gateways "
                 "198.51.100.12",
                 f"{PAIR}/take-over.sh {POOL} {NAMESPACE} {other.ceph[1]}"),
                ("/etc/keepalived/end-gateway.sh",
                 str(PAIR / "end-gateway.sh")),
                ("192.0.2.100", ADDRESS), ("192.0.2.11", self.address),
                ("192.0.2.12", other.address), ("192.0.2.1", ROUTER),
                (f"{systemctl} start nfs-ganesha",
                 self.command("start", self.ganesha, self.wrapper)),
                (f"{systemctl} kill --signal=KILL nfs-ganesha",
                 self.command("kill", self.ganesha))):
            assert old in text, f"the sample has no '{old}'"
            text = text.replace(old, new)
        return text

    def has_address(self) -> bool:
        shown = subprocess.run(
            [*self.wrapper.split(), "ip", "-o", "address", "show", "to",
             ADDRESS], stdin=subprocess.DEVNULL, capture_output=True,
            timeout=10, check=True)
        return bool(shown.stdout)

    def pid(self) -> int | None:
        """Of its Ganesha, if it runs."""
        try:
            number = (STATE / "ganesha" / self.ganesha / "pid").read_text()
            comm = Path(f"/proc/{number.strip()}/comm").read_text()
        except OSError:
            return None
        return int(number) if comm == "ganesha.nfsd\n" else None

    def signal(self, number: int) -> None:
        pid = self.pid()
        assert pid, f"{self.ganesha} does not run"
        os.kill(pid, number)

    def fail(self, kind: str) -> None:
        """Another word than these is no failure."""
        if kind == "killed":
            self.signal(signal.SIGKILL)
        elif kind == "stopped":
            self.signal(signal.SIGSTOP)
        elif kind == "cut off":
            self.cut(True)
        elif kind == BLINK:
            # Until the other host has the address, or not quite.
            self.cut(True)
            time.sleep(random.uniform(*BLINK_S))
            self.cut(False)
        elif kind == "host reset":
            self.reset()

    def evict(self) -> None:
        """Its CephFS sessions, by hand."""
        for session in json.loads(ceph("tell", "mds.0", "client", "ls")):
            if session["client_metadata"].get("pid") == str(self.pid()):
                ceph("tell", "mds.0", "client", "evict",
                     f"id={session['id']}")

    def cut(self, whether: bool) -> None:
        """From everybody, without a word: links stay up.  The router is this
        machine, and would answer ARP on a link that has left the bridge."""
        arp, rule = ("off", "add") if whether else ("on", "del")
        bridge = ["nomaster"] if whether else ["master", BRIDGE]
        ip("link", "set", self.nfs_link, "arp", arp)
        ip("link", "set", self.nfs_link, *bridge)
        ip(*family(), "rule", rule, "to", ceph_address(), "blackhole",
            inside=self.keeper.pid)

    def leave(self) -> None:
        """As an administrator does it."""
        assert self.keepalived
        subprocess.run(
            [f"{PAIR}/leave.sh", POOL, NAMESPACE, self.ceph[1], "sh", "-c",
             f"{self.wrapper} {PAIR}/end-gateway.sh {ADDRESS} "
             f"kill -9 {self.pid()}; kill {self.keepalived.pid}"],
            check=True, timeout=90,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.keepalived.wait(20)
        self.keepalived = None

    def reset(self) -> None:
        """What a power failure or the reset button does."""
        if self.keepalived:
            for which in ("vrrp", "keepalived"):
                pid = int((RUN / f"{which}-{self.number}.pid").read_text())
                os.kill(pid, signal.SIGKILL)
            self.keepalived.kill()
            self.keepalived.wait(20)
            self.keepalived = None
        if self.pid():
            lab("ganesha", "kill9", "--name", self.ganesha)
        if self.has_address():
            ip("addr", "del", f"{ADDRESS}/24", "dev", "eth0",
                inside=self.keeper.pid)

    def end(self) -> None:
        self.reset()
        self.keeper.kill()
        self.keeper.wait(20)


def ipv6() -> bool:
    """Is Ceph reached by IPv6?"""
    return IPV6 in os.environ


def family() -> list[str]:
    return ["-6"] * ipv6()


def add_address(address: str, link: str, inside: int | None = None) -> None:
    words = ("64", "nodad") if ":" in address else ("24",)
    ip("addr", "add", f"{address}/{words[0]}", "dev", link, *words[1:],
        inside=inside)


def begin_cluster() -> None:
    """An own one.  By IPv6 it has an address of the loopback: containers are
    without IPv6 unless it is asked for."""
    if not ipv6():
        lab("cluster", "-n")
        return
    subprocess.run(["mount", "-o", "remount,rw", "/proc/sys"], check=True,
                   timeout=20)
    for which in ("default", "all"):
        Path(f"/proc/sys/net/ipv6/conf/{which}/disable_ipv6").write_text("0")
    ip("addr", "replace", f"{CEPH_IPV6}/128", "dev", "lo")
    lab("cluster", "-n", "-i", CEPH_IPV6)


def ceph_address() -> str:
    return json.loads((STATE / "ceph/cluster.json").read_text(
        encoding="utf-8"))["addr"]


def answers(host: str, port: int, pseudo: str = PSEUDO) -> bool:
    try:
        nfs3.root_of(pseudo, port + 1, host)
    except (OSError, rpc.Refused):
        return False
    return True


class Pair:
    """All of it, started anew."""

    kinds = ("killed", "stopped", "cut off", "host reset")
    thief_kinds = ("evicted", "MDS killed", BLINK)
    stays = ("evicted", BLINK)  # the address, where it is, or perhaps
    versions = ("3", "4.1", "4.2")
    moves = "the address moves"
    second = "two"
    mounted = "/mnt/nfs"        # the export, at a client
    bound = Bound(io_s=10, state_s=25, planned_s=5)

    def __init__(self) -> None:
        lab("down")
        begin_cluster()
        RUN.mkdir(parents=True, exist_ok=True)
        subprocess.run(["ip", "link", "del", BRIDGE], check=False,
                       stderr=subprocess.DEVNULL, timeout=20)
        ip("link", "add", BRIDGE, "type", "bridge")
        ip("addr", "add", f"{ROUTER}/24", "dev", BRIDGE)
        ip("link", "set", BRIDGE, "up")
        self.hosts: tuple[Host, ...] = ()
        try:
            self._begin()
        except BaseException:
            self.end()
            raise

    def _begin(self) -> None:
        self.hosts = (Host(1), Host(2))
        grace_tool("--pool", POOL, "--ns", NAMESPACE, "add", "node1", "node2")
        one, two = self.hosts
        # Each waits for the other: a member that is not there holds up all.
        lab("ganesha", "start", "--name", "two", "--no-wait", "--port",
            PORT_TWO, *options("node2"))
        one.watch(two)
        until(lambda: answers(ADDRESS, PORT), "gateway one", 60)
        two.watch(one)
        until(lambda: answers(HOST_TWO, PORT_TWO), "gateway two", 60)

    def fail(self, kind: str, host: Host) -> None:
        """KIND is one of kinds, or of thief_kinds.  Another word: it is moved
        by hand."""
        if kind == "evicted":
            host.evict()
        elif kind not in (*self.kinds, BLINK):
            self.kill_mds(kind)
            host.leave()
        else:
            host.fail(kind)

    def heal(self, kind: str, host: Host) -> None:
        """The host may be the next one again."""
        if kind == "cut off":
            host.cut(False)
        if not host.keepalived:
            host.watch(self.other(host))
        until(lambda: not host.has_address() and not host.pid(),
              f"host {host.number} gives up what it had", 40)

    @staticmethod
    def kill_mds(kind: str) -> None:
        """In the middle of a move, if KIND says so.  It comes back at once."""
        if kind == "MDS killed":
            lab("mds", "kill9", "a")
            lab("mds", "start", "a", "--no-wait")

    def holder(self) -> Host | None:
        """Who has the address and a Ganesha that runs."""
        for host in self.hosts:
            if host.has_address() and host.pid():
                return host
        return None

    def other(self, host: Host) -> Host:
        return self.hosts[2 - host.number]

    def end(self) -> None:
        for host in self.hosts:
            host.end()
        lab("down", check=False)


def options(nodeid: str) -> list[str]:
    """What `lab ganesha start` is told, from the sample pair.conf."""
    rados = (f'RADOS_KV {{ nodeid = "{nodeid}"; pool = "{POOL}"; '
             f'namespace = "{NAMESPACE}"; }}')
    fsal = os.environ.get(FSAL, "CEPH_ASYNC")
    block = sample_keys("CEPH_ASYNC") if fsal == "CEPH_ASYNC" else ""
    return ["--fsal", fsal, "--pseudo", PSEUDO,
            "--nfsv4", "Graceless = false; " +
            sample_keys("NFSv4").replace('"node1"', f'"{nodeid}"'),
            "--core", sample_keys("NFS_CORE_PARAM"),
            "--block", block,
            "--export-block", f"Export_Id = {EXPORT_ID};",
            "--append", rados]


def main() -> None:
    """For keepalived: start NAME WRAPPER..., or kill NAME."""
    order, name, *wrapper = sys.argv[1:]
    if order == "start":
        lab("ganesha", "start", "--name", name, "--no-wait", "--port", PORT,
            "--wrapper", " ".join(wrapper), *options("node1"))
    else:
        lab("ganesha", "kill9", "--name", name, check=False)
    say(f"{order} {name}")


if __name__ == "__main__":
    main()
