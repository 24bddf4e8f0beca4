#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""An export goes and comes back by DBus while it and another are in use.

    unexport.py [--vers 4.2] [--mount shared|separate] [--fsal CEPH_ASYNC]
                [--no-up] CYCLES

Two kernel clients keep verified load on two exports of one Ganesha.  One
export is removed and added CYCLES times: the other's client must see no
error and no stall, the first one's must go on each time.  Nothing may leak.
Exit status 0 when every check holds; each failed one is a line on stderr.
"""
from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from pathlib import Path

import dbus

from soak import (NUMBER, SMALL_CACHE, bad_lines, close, logs_from_now,
                  mount_options, quiet_in_flight, second_export, stacks, stat)
import lab_program
from kernel_program import KernelProgram
from lab_program import lab

LOAD = Path(__file__).with_name("verified.py")
PSEUDO = "/going"
MOUNTED = "/mnt/going"
STALL_S = 5.0
PATIENCE_S = 90
GONE_S = 0.5            # how long the export is away
GROWTH_KIB = 48 * 1024
GROWTH_FDS = 30
# An export that goes must not look like the loss of the session it shares.
LOST = re.compile(r"CephFS session is lost")


def export_block(fsal: str, mount: str) -> str:
    """With the same root of the mount both exports share a session."""
    return second_export(
        PSEUDO, f"Name = {fsal};" +
        (' Cmount_Path = "/";' if mount == "shared" else ""),
        "Attr_Expiration_Time = 0;")


class Client(KernelProgram):
    """A kernel client with verified load."""

    def __init__(self, kind: str, vers: str, place: str, mount: list[str]):
        signals = Path(tempfile.mkdtemp(prefix=f"unexport-{kind}-"))
        super().__init__(signals, "python3", "-B", LOAD, place, signals, kind,
                         *mount, vers=vers, timeout=7200)

    def wait_for_progress(self, what: str) -> float:
        """Until every thread has done some more; how long it took."""
        begin = time.monotonic()
        start = self.progress()
        while self.progress() < start + 3:
            if self.has_ended():
                raise Complaint(f"{what}: the client ended:\n{self.words()}")
            if time.monotonic() - begin > PATIENCE_S:
                stacks()
                raise Complaint(f"{what}: no progress within {PATIENCE_S} "
                                f"s\n{self.words()}")
            time.sleep(0.1)
        return time.monotonic() - begin

    def last_words(self) -> dict:
        self.stop()
        if self.wait(120, stacks) is None:
            raise Complaint("the client does not end")
        told = self.told()
        if not told:
            raise Complaint(f"it ended without a word:\n{self.words()}")
        return told


class Complaint(Exception):
    """A check that failed."""


def sessions(pid: int) -> int:
    return sum(one["metadata"].get("pid") == str(pid)
               for one in lab_program.stat()["mds"]["sessions"])


class Exports:
    """Ganesha's message bus."""

    def __init__(self, block: str):
        self.file = Path(tempfile.mkdtemp(prefix="unexport-")) / "conf"
        self.file.write_text(block, encoding="ascii")
        self.object = dbus.SystemBus().get_object(
            "org.ganesha.nfsd", "/org/ganesha/nfsd/ExportMgr")

    def _call(self, name: str, *args) -> None:
        self.object.get_dbus_method(
            name, "org.ganesha.nfsd.exportmgr")(*args, timeout=PATIENCE_S)

    def remove(self) -> None:
        self._call("RemoveExport", dbus.UInt16(NUMBER))

    def add(self) -> None:
        self._call("AddExport", str(self.file),
                   f"EXPORT(Export_Id={NUMBER})")


def cycle(number: int, exports: Exports, going: Client, kept: Client) -> dict:
    begin = time.monotonic()
    exports.remove()
    removed = time.monotonic()
    time.sleep(GONE_S)
    exports.add()
    back_s = going.wait_for_progress(f"cycle {number}, the export is back")
    kept.wait_for_progress(f"cycle {number}, the other export")
    sample = stat()
    print(f"unexport: cycle {number}: removed in {removed - begin:.2f} s, "
          f"in use {back_s:.2f} s after its return, rss "
          f"{sample['rss_kib'] >> 10} MiB, fds {sample['fds']}, threads "
          f"{sample['threads']}", flush=True)
    return sample


def judge(first: dict, samples: list[dict], kept: dict, going: dict
          ) -> list[str]:
    complaints = [f"wrong data or an error: {wrong}"
                  for wrong in kept["wrong"] + going["wrong"]]
    if kept["longest_s"] > STALL_S:
        complaints.append(f"the other export stalled {kept['longest_s']} s")
    last = stat()
    if last["pid"] != first["pid"]:
        complaints.append("ganesha.nfsd is another one now")
    # The first cycle is warm-up.
    for key, most in (("rss_kib", GROWTH_KIB), ("fds", GROWTH_FDS)):
        grown = samples[-1][key] - samples[0][key]
        if grown > most:
            complaints.append(f"{key} grew by {grown}")
    left = quiet_in_flight()
    if left:
        complaints.append(f"still in flight: {left}")
    return complaints


def sessions_right(args: argparse.Namespace, pid: int, exports: Exports
                   ) -> list[str]:
    """Once the load is gone: what each state should have, exactly."""
    wanted = [2 if args.mount == "separate" else 1, 1]
    found = [sessions(pid)]
    exports.remove()
    end = time.monotonic() + 30
    while (now := sessions(pid)) != 1 and time.monotonic() < end:
        time.sleep(0.5)
    found.append(now)
    exports.add()
    return [] if found == wanted else [
        f"CephFS sessions with and without the export: {found}, wanted "
        f"{wanted}"]


def run(args: argparse.Namespace) -> list[str]:
    mount = ["-t", "nfs", "-o", mount_options(args.vers), f"lab:{PSEUDO}",
             MOUNTED]
    logs = logs_from_now()
    first = stat()
    exports = Exports(export_block(args.fsal, args.mount))
    fresh = time.time_ns()
    kept = Client("steady", args.vers, f"/mnt/nfs/kept-{fresh}", [])
    going = Client("interrupted", args.vers, f"{MOUNTED}/{fresh}", mount)
    try:
        kept.wait_for_progress("at the beginning")
        going.wait_for_progress("at the beginning")
        samples = [cycle(number, exports, going, kept)
                   for number in range(1, args.cycles + 1)]
        told = kept.last_words(), going.last_words()
        print(f"unexport: the other export {told[0]}", flush=True)
        print(f"unexport: the one removed {told[1]}", flush=True)
        complaints = judge(first, samples, *told)
        complaints += sessions_right(args, first["pid"], exports)
    except (Complaint, dbus.DBusException) as err:
        complaints = [str(err)]
    finally:
        kept.end()
        going.end()
    bad = [line for log in logs for line in log.matching(LOST)]
    return complaints + [f"log: {line}"
                         for line in (bad + bad_lines(logs))[:20]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fsal", default="CEPH_ASYNC")
    parser.add_argument("--vers", default="4.2")
    parser.add_argument("--mount", default="separate",
                        choices=("shared", "separate"))
    parser.add_argument("--no-up", action="store_true",
                        help="use the lab that runs")
    parser.add_argument("cycles", type=int)
    args = parser.parse_args()
    if not args.no_up:
        lab("up", "--fsal", args.fsal, loud=True)
    lab("client", "--", "mkdir", "-p", f"/mnt/nfs{PSEUDO}", cwd="/")
    lab("ganesha", "restart", "--fsal", args.fsal, "--block",
        SMALL_CACHE if args.fsal == "CEPH_ASYNC" else "", "--append",
        export_block(args.fsal, args.mount), loud=True)
    return close("unexport", f"{args.cycles} cycles, NFSv{args.vers}, "
                 f"{args.mount} mount, {args.fsal}", run(args))


if __name__ == "__main__":
    sys.exit(main())
