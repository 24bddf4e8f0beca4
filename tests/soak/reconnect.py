#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""The gateway loses its CephFS session again and again while a client works.

    reconnect.py [--vers 4.2] [--in-a-row N] [--files N] [--no-up] LOSSES

A kernel client does work that is checked, with open files and a lock
(tests/integration/client/eviction_work.py).  LOSSES times the MDS evicts the
gateway, and LOSSES times its address is put on the blocklist.  Then it is
evicted N (200) times in a row, for memory, threads and descriptors; with
--files a client looks at so many files after each of these losses (LOSSES may
be 0).  At the end FSAL_CEPH is evicted once in the same way.  Exit status 0
when no client saw an error, no pause was over 15 s, and nothing grew; each
failed check is a line on stderr.
"""
from __future__ import annotations

import argparse
import contextlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from soak import stat
from lab_program import LOGS, Log, ceph, client_command, lab, sizes_of, until
from nfs import nfs3, rpc

SCRIPT = Path(__file__).parents[1] / "integration/client/eviction_work.py"
SERVES = re.compile(r"a new CephFS client serves after (\d+) ms")
SERVED_S = 15
# Of work between two losses.  Linux' NFSv3 asks again after 5 s: with a loss
# each 5 s it would be told to wait again and again.
PAUSE_S = 7
BOOT_S = 10
WARM_UP = 20            # losses that may still allocate something
GROWTH_KIB = 16 * 1024
GROWTH_FDS = 8
JUKEBOX = 10008


class Gateway:
    def __init__(self, vers: str) -> None:
        lab("ganesha", "restart", "--fsal", "CEPH_ASYNC", "--block", "")
        self.vers = vers
        self.log = Log(LOGS / "ganesha-a.log")
        self.pid = stat()["pid"]
        self.seconds: list[float] = []      # from a loss to service

    def served(self) -> list[int]:
        """The keeper's own times, in ms."""
        return [int(SERVES.search(line)[1])
                for line in self.log.matching(SERVES)]

    def evict(self) -> None:
        lab("evict")

    def blocklist(self) -> None:
        for session in json.loads(ceph("tell", "mds.0", "client", "ls")):
            if session["client_metadata"].get("pid") == str(self.pid):
                addr = session["entity"]["addr"]
                ceph("osd", "blocklist", "add",
                     f"{addr['addr']}/{addr['nonce']}")

    def lose(self, how: Callable[[], None]) -> None:
        before = len(self.served())
        began = time.monotonic()
        how()
        until(lambda: len(self.served()) > before, "a new client serves",
              seconds=60, pause=0.02)
        self.seconds.append(time.monotonic() - began)

    def sizes(self) -> tuple[int, int, int]:
        """RSS in KiB, threads, descriptors."""
        return tuple(sizes_of(self.pid))


def spread(values: list[float]) -> str:
    ordered = sorted(values)
    return f"median {median(ordered):.2f}, 90 % " \
        f"{ordered[len(ordered) * 9 // 10]:.2f}, most {ordered[-1]:.2f}"


def start_client(vers: str, folder: str, stop: bool) -> subprocess.Popen[str]:
    return subprocess.Popen(
        client_command("python3", "-B", SCRIPT, folder, "0" if stop else "20",
                       vers=vers, timeout=3600),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace")


def stop_client(folder: str) -> None:
    """The file that the client looks for, by another client."""
    subprocess.run(client_command("touch", f"{folder}/stop", vers="4.2",
                                  timeout=60), check=True, timeout=90,
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def beside_a_client(gateway: Gateway, losses: int) -> list[str]:
    """What failed."""
    folder = f"/mnt/nfs/reconnect-{time.time_ns()}"
    client = start_client(gateway.vers, f"{folder}/work", True)
    time.sleep(BOOT_S)
    for number in range(losses):
        for how in (gateway.evict, gateway.blocklist):
            if client.poll() is not None:
                return [f"the client ended: {client.communicate()[0]}"]
            gateway.lose(how)
            time.sleep(PAUSE_S)
        print(f"NFSv{gateway.vers}: {2 * number + 2} of {2 * losses} losses",
              flush=True)
    stop_client(folder)
    output = client.communicate(timeout=120)[0]
    if client.returncode:
        return [f"the client failed:\n{output}"]
    said = json.loads(output.splitlines()[-1])
    print(f"NFSv{gateway.vers}: {2 * losses} losses, no error in "
          f"{said['rounds']} rounds; served again after (s): "
          f"{spread(gateway.seconds)}; of that the keeper's work (s): "
          f"{spread([ms / 1000 for ms in gateway.served()])}; the client's "
          f"{len(said['pauses'])} pauses over 0.2 s: "
          f"{spread([s for _, s in said['pauses']] or [0.0])}", flush=True)
    if said["longest"] > SERVED_S:
        return [f"a pause of {said['longest']} s: {said['pauses']}"]
    return []


class Files:
    """Of one folder, known to the gateway and to its CephFS client."""

    def __init__(self, count: int) -> None:
        self.connection = rpc.Concurrent(2049)
        folder = nfs3.make_directory(
            self.connection, nfs3.root_of("/ceph", 2050),
            f"known-{time.time_ns()}")
        self.handles = [nfs3.create(self.connection, folder, f"file-{number}")
                        for number in range(count)]

    def look(self) -> None:
        for handle in self.handles:
            until(lambda one=handle: self._look(one), "an answer", 60, 0.02)

    def _look(self, handle: bytes) -> bool:
        try:
            nfs3.get_attributes(self.connection, handle)
        except nfs3.Refused as err:
            if err.status != JUKEBOX:
                raise
            return False
        return True


def in_a_row(gateway: Gateway, losses: int, files: int) -> list[str]:
    known = Files(files) if files else None
    print(f"{files} files: RSS, threads, descriptors {gateway.sizes()}",
          flush=True)

    def lose() -> None:
        gateway.lose(gateway.evict)
        if known:
            known.look()

    for _ in range(WARM_UP):
        lose()
    before = gateway.sizes()
    for number in range(losses):
        lose()
        if number % 20 == 19:
            print(f"{number + 1} evictions in a row: RSS, threads, "
                  f"descriptors {gateway.sizes()}", flush=True)
    # A worker of Ganesha that has nothing to do ends after half a minute.
    with contextlib.suppress(AssertionError):
        until(lambda: gateway.sizes()[1] <= before[1] + 2, "", seconds=60)
    after = gateway.sizes()
    print(f"{losses} evictions in a row: RSS {before[0]} to {after[0]} KiB, "
          f"threads {before[1]} to {after[1]}, descriptors {before[2]} to "
          f"{after[2]}", flush=True)
    failed = []
    if after[0] > before[0] + GROWTH_KIB:
        failed.append(f"RSS grew by {after[0] - before[0]} KiB")
    if after[1] > before[1] + 2:
        failed.append(f"threads: {before[1]} to {after[1]}")
    if after[2] > before[2] + GROWTH_FDS:
        failed.append(f"descriptors: {before[2]} to {after[2]}")
    return failed


def peer(vers: str) -> None:
    """FSAL_CEPH, for comparison; nothing is demanded of it."""
    lab("ganesha", "restart", "--fsal", "CEPH", "--block", "")
    client = start_client(vers, f"/mnt/nfs/evicted-{time.time_ns()}", False)
    time.sleep(BOOT_S)
    lab("evict")
    try:
        output = client.communicate(timeout=60)[0]
        how = "no error" if client.returncode == 0 else \
            output.strip().splitlines()[-1]
    except subprocess.TimeoutExpired:
        client.kill()
        how = "no end within 60 s"
    print(f"FSAL_CEPH, one eviction, NFSv{vers}: {how}", flush=True)
    lab("ganesha", "restart", "--fsal", "CEPH_ASYNC", "--block", "",
        check=False)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--vers", default="4.2",
                        choices=("3", "4.0", "4.1", "4.2"))
    parser.add_argument("--in-a-row", type=int, default=200)
    parser.add_argument("--files", type=int, default=0)
    parser.add_argument("--no-up", action="store_true")
    parser.add_argument("losses", type=int)
    args = parser.parse_args()
    if not args.no_up:
        lab("up")
    gateway = Gateway(args.vers)
    failed = beside_a_client(gateway, args.losses) if args.losses else []
    if not failed and args.in_a_row:
        failed = in_a_row(gateway, args.in_a_row, args.files)
    if not failed:
        peer(args.vers)
    for line in failed:
        print(f"reconnect: {line}", file=sys.stderr)
    print("reconnect: " + ("FAILED" if failed else "passed"), flush=True)
    return 1 if failed else 0


sys.exit(main())
