#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""How many completion threads?  The plugin built with each number, measured.

    threads.py [--threads 1,2,4] [--rounds N] [--seconds S] [--quiet CPUS]
               [--json FILE]

4 KiB stable writes and reads over NFSv3 on a memstore OSD.  The variants
take turns in every round; medians of the rounds.  Runs in the lab.
"""
from __future__ import annotations

import argparse
import json
import os
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

from bench import Others, cpu_s, lab, nfsload, show, spread, stat

SOURCE = Path(__file__).resolve().parents[3]
LIBRARY = "libfsalceph_async.so"
CASES = {
    "write, 32": ("write=100", 4, 8),
    "write, 128": ("write=100", 4, 32),
    "read, 32": ("read=100", 4, 8),
    "read, 128": ("read=100", 4, 32),
}
TRIES = 4
# Column → (key, digits).
COLUMNS = {
    "IOPS": ("iops", 0),
    "p99 ms": ("p99_ms", 2),
    "CPU µs per op": ("cpu_us", 1),
    "voluntary switches per op": ("voluntary", 3),
    "involuntary": ("involuntary", 3),
    "completions per filling": ("per_filling", 2),
    "completions per sleep": ("per_sleep", 2),
}


def build(count: int) -> Path:
    """The folder of a plugin with so many threads."""
    where = Path(f"/build/threads-{count}")
    for cmd in (["cmake", "-S", SOURCE, "-B", where, "-G", "Ninja",
                 "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DBUILD_TESTING=OFF",
                 f"-DCMAKE_C_FLAGS=-DCASYNC_COMPLETERS={count}"],
                ["ninja", "-C", where, "fsalceph_async"]):
        subprocess.run(list(map(str, cmd)), check=True, timeout=600,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return next(where.rglob(LIBRARY)).parent


class Plugin:
    """The statics of complete.c in a running Ganesha, and its threads."""

    def __init__(self, pid: int, folder: Path):
        self.pid = pid
        self.base = self._base()
        self.symbols = {}
        names = subprocess.run(["nm", folder / LIBRARY], check=True,
                               text=True, stdout=subprocess.PIPE).stdout
        for line in names.splitlines():
            address, kind, name = line.rsplit(maxsplit=2) \
                if line[0] != " " else ("0", "", "")
            if kind == "b":
                self.symbols[name] = self.base + int(address, 16)
        missing = {"filled", "sleepers", "answered"} - set(self.symbols)
        if missing:
            raise SystemExit(f"threads: complete.c has no {missing} any more")
        self.completers = self._completers()

    def _base(self) -> int:
        maps = Path(f"/proc/{self.pid}/maps").read_text(encoding="utf-8")
        return min(int(line.split("-")[0], 16)
                   for line in maps.splitlines() if line.endswith(LIBRARY))

    def _completers(self) -> list[str]:
        """The threads that sleep on `filled`: all, when there is no load."""
        found = []
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            words = (task / "syscall").read_text(encoding="utf-8").split()
            if len(words) > 1 and words[1].startswith("0x") and \
                    int(words[1], 16) == self.symbols["filled"]:
                found.append(task.name)
        return found

    def word(self, name: str, form: str = "=I") -> int:
        with open(f"/proc/{self.pid}/mem", "rb", buffering=0) as memory:
            memory.seek(self.symbols[name])
            return struct.unpack(form, memory.read(struct.calcsize(form)))[0]

    def sample(self) -> dict[str, float]:
        return {"cpu_s": cpu_s(self.pid), "filled": self.word("filled"),
                "answered": self.word("answered", "=Q")}

    def switches(self) -> dict[str, tuple[int, int]]:
        """Thread → voluntary and involuntary context switches."""
        found = {}
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            try:
                text = (task / "status").read_text(encoding="utf-8")
            except OSError:
                continue        # it has ended
            lines = dict(line.split(":", 1) for line in text.splitlines()
                         if "ctxt_switches" in line)
            found[task.name] = (int(lines["voluntary_ctxt_switches"]),
                                int(lines["nonvoluntary_ctxt_switches"]))
        return found


def start(folder: Path, count: int) -> Plugin:
    """Ganesha "a" with that plugin; it must have that many threads."""
    lab("ganesha", "restart", "--core", f'Plugins_Dir = "{folder}";')
    pid = stat()["ganesha"]["a"]["pid"]
    nfsload("--name", "threads", "--count", 1)
    time.sleep(0.5)
    plugin = Plugin(pid, folder)
    if len(plugin.completers) != count or plugin.word("sleepers") != count:
        raise SystemExit(f"threads: {len(plugin.completers)} threads sleep, "
                         f"{count} were to")
    return plugin


def measure(plugin: Plugin, case: str, seconds: float,
            seed: int) -> dict[str, float]:
    mix, connections, depth = CASES[case]
    before, slept = plugin.sample(), plugin.switches()
    others = Others()
    result = nfsload("--name", "threads", "--mix", mix, "--connections",
                     connections, "--depth", depth, "--seconds", seconds,
                     "--seed", seed)
    busy = others.cpus()
    after, now = plugin.sample(), plugin.switches()
    op = result["ops"][mix.split("=")[0]]
    delta = {who: [a - b for a, b in zip(at, slept.get(who, (0, 0)))]
             for who, at in now.items()}
    answered = after["answered"] - before["answered"]
    # Everything in Ganesha, for everything that was sent.
    sent = result["sent"]
    return {
        "iops": op["per_s"],
        "p99_ms": op["latency_us"]["p99"] / 1000,
        "cpu_us": (after["cpu_s"] - before["cpu_s"]) * 1e6 / sent,
        "voluntary": sum(v for v, _ in delta.values()) / sent,
        "involuntary": sum(i for _, i in delta.values()) / sent,
        "per_filling": answered / max(1, after["filled"] - before["filled"]),
        "per_sleep": answered / max(1, sum(delta[who][0] for who in
                                           plugin.completers)),
        "others_cpus": busy,
    }


def undisturbed(plugin: Plugin, case: str, seconds: float, seed: int,
                quiet: float) -> dict[str, float]:
    """The first of at most TRIES runs beside which others used no more than
    QUIET CPUs, or the least disturbed one."""
    tries = []
    while len(tries) < TRIES:
        tries.append(measure(plugin, case, seconds, seed))
        if tries[-1]["others_cpus"] <= quiet:
            break
    return min(tries, key=lambda one: one["others_cpus"])


def table(found: dict[str, dict[int, list[dict[str, float]]]]) -> None:
    """Markdown: medians, and the range of the IOPS."""
    print("| in flight | threads | " + " | ".join(COLUMNS) + " |")
    print("|---" * (len(COLUMNS) + 2) + "|")
    for case, variants in found.items():
        for count, results in variants.items():
            cells = []
            for key, digits in COLUMNS.values():
                values = spread([one[key] for one in results])
                cells.append(show(values, digits) if key == "iops"
                             else f"{values['median']:.{digits}f}")
            print(f"| {case} | {count} | " + " | ".join(cells) + " |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", default="1,2,4")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--quiet", type=float, default=0.2, metavar="CPUS",
                        help="repeat a run beside which others used more")
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    folders = {int(n): build(int(n)) for n in args.threads.split(",")}
    lab("up", "--fsal", "CEPH_ASYNC", "--export", "", "--block", "")
    nfsload("--name", "threads", "--count", 1)      # makes its file
    found: dict[str, dict[int, list[Any]]] = {
        case: {count: [] for count in folders} for case in CASES}
    for number in range(args.rounds):
        # Turned by one every time: nobody is always the first.
        turn = list(folders)
        turn = turn[number % len(turn):] + turn[:number % len(turn)]
        for count in turn:
            plugin = start(folders[count], count)
            for case in CASES:
                one = undisturbed(plugin, case, args.seconds, number + 1,
                                  args.quiet)
                found[case][count].append(one)
                print(f"round {number + 1}  {count} threads  {case:<11}"
                      f"{one['iops']:6.0f} IOPS  p99 {one['p99_ms']:5.1f} ms  "
                      f"{one['cpu_us']:5.1f} µs per op  others "
                      f"{one['others_cpus']:.2f} CPUs", file=sys.stderr,
                      flush=True)
    lab("ganesha", "restart", "--core", "")
    table(found)
    busy = [one["others_cpus"] for variants in found.values()
            for results in variants.values() for one in results]
    print(f"\nmeanwhile others used {show(spread(busy), 2)} of "
          f"{os.cpu_count()} CPUs")
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n",
                             encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
