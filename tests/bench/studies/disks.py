#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""How many sequential streams do eight SATA disks bear?

    disks.py [--no-up] [--rounds N] [--seconds S] [--only TEXT]
             [--streams N…] [--disk MIB_S,SEEK_MS] [--json FILE]

Eight OSDs whose BlueStore has its data in a file as slow as a disk
(load/disks), with RocksDB beside it on one that is not.  The disk is one of
150 MiB/s and 8 ms for a seek, in slow motion: six times as slow, so that two
CPUs are quicker than eight of them.  CEPH_ASYNC and FSAL_CEPH in turns.  Each
stream is a client with a file of its own and four requests of 1 MiB in
flight.  Objects of 1, 4 and 32 MiB are in one pool on all disks; 4 and 32 MiB
also in two pools on four disks each, as two exports would have them.

read     the files as one program wrote them, one after the other
write    over them, stable
reread   the files as the streams wrote them

Seeks are those of all disks, for each MiB there.  "kept" is what a stream has
of the rate of one alone, with a * where that is 90 %.  Exit status 0 when the
disks moved what the streams did, no faster than such disks can.
"""
from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import struct
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

from bench import Others, lab, nfsload
from lab_program import ceph, until
from peers import files
from peers.loads import MIB, Files

LIBRARY = "/usr/local/lib/libdisks.so"
FILE = Path("/tmp/disks.figures")
FIELDS = ("mib_s", "seek_us", "reads", "writes", "bytes", "seeks")
OSDS = 8
OPTIONS = (
    "bluestore_block_db_create = true", "bluestore_block_db_size = 1073741824",
    # Reads shall come from the disks.
    "bluestore_cache_autotune = false", "bluestore_cache_size = 16777216",
    # mClock holds an OSD to what it takes a disk for.
    "osd_op_queue = wpq")
# More than is written over and over, less than this machine's disk has.
BLOCK = "--bluestore_block_size=4294967296"
POOLS = {"disks_all": range(OSDS), "disks_left": range(OSDS // 2),
         "disks_right": range(OSDS // 2, OSDS)}
PGS_OF_OSD = 8
SYSTEMS = {"CEPH_ASYNC": (2049, "/ceph"), "CEPH": (12049, "/ceph-b")}
CACHE = "Cache_Bytes = 26214400;"   # as peers' `tenth`
DEPTH = 4
KEPT = 0.9
WAYS = ("read", "write", "reread")

Run = dict[str, Any]


@dataclass(frozen=True)
class Case:
    object_mib: int
    pools: tuple[str, ...] = ("disks_all",)

    def __str__(self) -> str:
        return f"{self.object_mib} MiB, {len(self.pools)}x" \
            f"{OSDS // len(self.pools)} disks"

    def file(self, number: int) -> Files:
        """Of a stream."""
        return Files(f"stream-{number}", 64 * MIB, 1, self.object_mib * MIB,
                     self.pools[number % len(self.pools)])


TWO = ("disks_left", "disks_right")
CASES = (Case(1), Case(4), Case(32), Case(4, TWO), Case(32, TWO))


def each_disk() -> list[Path]:
    return list(FILE.parent.glob(FILE.name + ".*"))


def figures() -> dict[str, int]:
    """Of all disks together."""
    return dict(zip(FIELDS, map(sum, zip(*(
        struct.unpack("6Q", path.read_bytes()) for path in each_disk())))))


def slow_down(mib_s: int) -> None:
    """0: as quick as they are."""
    for path in each_disk():
        with path.open("r+b") as file:
            file.write(struct.pack("Q", mib_s))


def up(mib_s: int, seek_ms: float) -> None:
    lab("down")
    for path in each_disk():
        path.unlink()
    about = {"LD_PRELOAD": LIBRARY, "DISK_FILE": str(FILE), "CEPH_ARGS": BLOCK,
             "DISK_MIB_S": str(mib_s), "DISK_SEEK_US": f"{seek_ms * 1e3:.0f}",
             "OSD": str(OSDS)}
    os.environ.update(about)    # the daemons get it from us
    lab("cluster", "--bluestore", *(
        word for option in OPTIONS for word in ("-o", option)))
    for key in about:
        del os.environ[key]
    slow_down(0)
    for name, osds in POOLS.items():
        make_pool(name, osds)
    lab("up", "--fsal", "CEPH_ASYNC", "--export", "", "--block", CACHE)
    lab("ganesha", "start", "--name", "b", "--fsal", "CEPH", "--port", "12049",
        "--pseudo", "/ceph-b")


def make_pool(pool: str, osds: range) -> None:
    """Each OSD has as many placement groups of it; CRUSH would not say so."""
    count = PGS_OF_OSD * len(osds)
    ceph("osd", "pool", "create", pool, count)
    ceph("fs", "add_data_pool", "cephfs", pool)
    (number,) = (one["poolnum"] for one in json.loads(
        ceph("osd", "lspools", "--format", "json")) if one["poolname"] == pool)
    wanted = {f"{number}.{pg:x}": osds[pg % len(osds)] for pg in range(count)}
    import rados            # not where figures are only looked at
    # All at once: each by itself takes a second.
    with rados.Rados(conffile="", name="client.admin") as monitor, \
            ThreadPoolExecutor(count) as pools:
        list(pools.map(lambda pgid: monitor.mon_command(json.dumps({
            "prefix": "osd pg-upmap", "pgid": pgid, "id": [wanted[pgid]]}),
            b""), wanted))
    until(lambda: wanted == {
        one["pgid"]: one["acting_primary"] for one in json.loads(ceph(
            "pg", "ls-by-pool", pool, "--format", "json"))["pg_stats"]
        if one["state"] == "active+clean"}, f"the placement of {pool}", 60)


def stream(system: str, of: Files, way: str, seconds: float) -> float:
    """MiB/s."""
    port, pseudo = SYSTEMS[system]
    result = nfsload(
        "--port", port, "--export", pseudo + files.folder_of(system, of),
        "--name", of.name, "--file-size", of.size, "--block-size", "1M",
        "--mix", "write=100" if way == "write" else "read=100", "--pattern",
        "sequential", "--connections", 1, "--depth", DEPTH,
        "--seconds", seconds, "--warmup", 1, "--drain", 120)
    return sum(each["mib_per_s"] for each in result["ops"].values())


def run(system: str, case: Case, way: str, count: int,
        args: argparse.Namespace) -> Run:
    others, before, since = Others(), figures(), time.monotonic()
    with ThreadPoolExecutor(count) as pool:
        rates = list(pool.map(
            lambda number: stream(system, case.file(number), way,
                                  args.seconds), range(count)))
    did = {key: value - before[key] for key, value in figures().items()}
    seconds, disk_mib = time.monotonic() - since, did["bytes"] / MIB
    return {"system": system, "case": str(case), "way": way, "streams": count,
            "mib_s": sum(rates), "each": statistics.mean(rates),
            "least": min(rates), "seeks_mib": did["seeks"] / max(1, disk_mib),
            "disk_mib": disk_mib, "disk_mib_s": disk_mib / seconds,
            "others_cpus": others.cpus()}


def turns(args: argparse.Namespace, mib_s: int) -> list[Run]:
    runs = []
    for turn in range(args.rounds):
        for case in (case for case in CASES if args.only in str(case)):
            made = [(system, case.file(number)) for system in SYSTEMS
                    for number in range(max(args.streams))]
            slow_down(0)
            files.make(made)
            slow_down(mib_s)
            for way, count in itertools.product(WAYS, args.streams):
                for system in list(SYSTEMS)[::-1 if turn % 2 else 1]:
                    runs.append(run(system, case, way, count, args))
                    print(f"round {turn + 1}  {case!s:<20}{way:<8}{count:>3}"
                          f"  {system:<12}{cell(runs[-1:])}  others "
                          f"{runs[-1]['others_cpus']:.2f} CPUs", flush=True)
            slow_down(0)
            files.remove(made)
    return runs


def middle(runs: list[Run], key: str) -> float:
    return statistics.median(one[key] for one in runs)


def cell(runs: list[Run]) -> str:
    return (f"{middle(runs, 'mib_s'):9.1f}{middle(runs, 'each'):8.1f}"
            f"{middle(runs, 'least'):7.1f}{middle(runs, 'seeks_mib'):7.2f}")


def tell(runs: list[Run]) -> None:
    """Medians of the rounds."""
    key = "case", "way", "system", "streams"
    of: dict[tuple[Any, ...], list[Run]] = {}
    for one in runs:
        of.setdefault(tuple(map(one.get, key)), []).append(one)
    print(f"\n{'':<46}{'MiB/s':>9}{'each':>8}{'least':>7}{'seeks':>7}"
          f"{'kept':>7}")
    for case, way, system, count in sorted(of):
        mine = of[case, way, system, count]
        alone = of[case, way, system, min(one["streams"] for one in runs)]
        kept = middle(mine, "each") / middle(alone, "each")
        print(f"{case:<20}{way:<8}{system:<12}{count:>3}   {cell(mine)}"
              f"{kept:7.0%}{'' if kept < KEPT else ' *'}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-up", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--only", default="", metavar="TEXT",
                        help="; ".join(map(str, CASES)))
    parser.add_argument("--streams", type=int, nargs="+", metavar="N",
                        default=[1, 4, 8, 16, 32])
    parser.add_argument("--disk", default="25,48", metavar="MIB_S,SEEK_MS")
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    mib_s, seek_ms = args.disk.split(",")
    if not args.no_up:
        up(int(mib_s), float(seek_ms))
    runs = turns(args, int(mib_s))
    tell(runs)
    # The read cache may have had some of it.
    slow = all(0.9 * one["mib_s"] * args.seconds < one["disk_mib"] and
               one["disk_mib_s"] < OSDS * int(mib_s) for one in runs)
    print(f"\nothers used {middle(runs, 'others_cpus'):.2f} CPUs; the disks "
          f"were {'' if slow else 'NOT '}as slow as they have to be")
    if args.json:
        args.json.write_text(json.dumps(
            {"disk": args.disk, "runs": runs, "slow": slow}, indent=1) + "\n",
            encoding="utf-8")
    return 0 if slow else 1


if __name__ == "__main__":
    sys.exit(main())
