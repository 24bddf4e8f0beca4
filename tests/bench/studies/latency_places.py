#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Where the latency of a READ or WRITE goes, from libnfs to its answer.

    latency_places.py [--no-up] [--rounds N] [--seconds S] [--only WORD]
                      [--json FILE]

Little's law: the time in a place is the mean number of requests there,
divided by the requests that pass in a second.  The numbers come from the
byte counters of both ends of each connection, looked at 50 times a second:
what the client has written, what the server has read, what it has answered,
what the client has read of that.  A request and its answer have constant
sizes, which are measured, too: nfsload is quiet before and after the load.

The plugin's own part is from its metrics.  What nfsload says of the latency
is not used: the sum is compared with it.  Exit status 0 when the places have
at least 90 % of it (--least).
"""
from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

from bench import lab, nfsload, stat

PORT = 21059
PSEUDO = "/latency"
NAME = "latency"
EACH_S = 0.02
QUIET_MS = 400
WARMUP_S = 1.0
LEAST = 0.9
STAGES = ("queued", "libcephfs", "handover", "finish")
SERIES = re.compile(r'^ceph_async__latency_us_(sum|count)\{(.*)\} (\S+)$')
# A request that is half written counts as half.
LOADS = (
    ("WRITE 1 MiB, 64 in flight", ("write=100", "1M", 4, 16)),
    ("READ 1 MiB, 64 in flight", ("read=100", "1M", 4, 16)),
    ("WRITE 4 KiB, 128 in flight", ("write=100", "4k", 4, 32)),
    ("READ 4 KiB, 128 in flight", ("read=100", "4k", 4, 32)),
)
PLACES = (
    ("libnfs", "in libnfs, not yet written"),
    ("there", "on the way to Ganesha: two socket buffers"),
    ("ganesha", "in Ganesha before and after the plugin"),
    *((stage, f"in the plugin: {stage}") for stage in STAGES),
    ("back", "on the way back: two socket buffers"),
)
LINE = re.compile(
    r"ESTAB\s+(?P<unread>\d+)\s+(?P<unacked>\d+)\s+\S*?"
    r"(?P<mine>\d+)\s+\S*?:(?P<theirs>\d+)\s")


@dataclass(frozen=True)
class Look:
    """Bytes so far, of all connections."""
    at: float           # seconds
    written: int        # requests, by the client
    arrived: int        # requests, read by the server
    answered: int       # answers, written by the server
    done: int           # answers, read by the client

    def counts(self) -> tuple[int, int, int, int]:
        return self.written, self.arrived, self.answered, self.done


def look_of(text: str, port: int, at: float) -> Look:
    """From `ss -tinHO`; lines of other ports are left out."""
    written = arrived = answered = done = 0
    for line in text.splitlines():
        found = LINE.match(line)
        if not found:
            continue

        def so_far(name: str, line: str = line) -> int:
            match = re.search(rf"\b{name}:(\d+)", line)
            return int(match[1]) if match else 0
        sent = so_far("bytes_acked") + int(found["unacked"])
        read = so_far("bytes_received") - int(found["unread"])
        if int(found["mine"]) == port:
            arrived += read
            answered += sent
        elif int(found["theirs"]) == port:
            written += sent
            done += read
    return Look(at, written, arrived, answered, done)


class Looker(threading.Thread):
    """Looks until it is told to stop."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.port = port
        self.looks: list[Look] = []
        self.over = threading.Event()

    def run(self) -> None:
        where = f"( sport = :{self.port} or dport = :{self.port} )"
        while not self.over.wait(EACH_S):
            at = time.monotonic()
            done = subprocess.run(["ss", "-tinHO", where], check=True,
                                  text=True, stdin=subprocess.DEVNULL,
                                  capture_output=True, timeout=10)
            self.looks.append(look_of(done.stdout, self.port, at))

    def stop(self) -> list[Look]:
        self.over.set()
        self.join()
        return [one for one in self.looks if one.written]


def quiet_looks(looks: list[Look]) -> tuple[Look, Look]:
    """The last look before the load and the first one after it: those that
    end the first, and begin the last, long row of equal looks."""
    few = max(2, int(QUIET_MS / 1000 / EACH_S / 4))
    same = [index for index in range(len(looks) - few)
            if len({one.counts() for one in looks[index:index + few]}) == 1]
    if not same or looks[same[0]].counts() == looks[same[-1]].counts():
        raise SystemExit("latency_places: no quiet before and after the load")
    first, last = looks[same[0]], looks[same[-1]]
    before = max((one for one in looks if one.counts() == first.counts()),
                 key=lambda one: one.at)
    after = min((one for one in looks if one.counts() == last.counts()),
                key=lambda one: one.at)
    return before, after


def numbers(looks: list[Look], requests: int, in_flight: int,
            from_s: float, to_s: float) -> dict[str, float]:
    """The mean number of requests in each place, and how many a second.

    `requests` are all of the run; from_s and to_s count from the beginning
    of the load.
    """
    before, after = quiet_looks(looks)
    call = (after.written - before.written) / requests
    answer = (after.done - before.done) / requests
    during = [one for one in looks
              if before.at + from_s <= one.at <= before.at + to_s]
    if len(during) < 10:
        raise SystemExit(f"latency_places: {len(during)} looks at the load")

    def mean(each: Any) -> float:
        return statistics.fmean(each(one) for one in during)
    done = [(one.done - before.done) / answer for one in during]
    return {
        "libnfs": in_flight - mean(lambda one: (one.written - before.written)
                                   / call - (one.done - before.done) / answer),
        "there": mean(lambda one: (one.written - one.arrived - before.written
                                   + before.arrived) / call),
        "server": mean(lambda one: (one.arrived - before.arrived) / call -
                       (one.answered - before.answered) / answer),
        "back": mean(lambda one: (one.answered - one.done - before.answered
                                  + before.done) / answer),
        "per_s": (done[-1] - done[0]) / (during[-1].at - during[0].at)}


def parse_stages(text: str) -> dict[str, float]:
    """"sum libcephfs" -> µs, "count total" -> requests, of all operations."""
    found: dict[str, float] = {"count total": 0}
    for line in text.splitlines():
        match = SERIES.match(line)
        if match:
            labels = dict(re.findall(r'(\w+)="([^"]*)"', match[2]))
            key = f"{match[1]} {labels['stage']}"
            found[key] = found.get(key, 0) + float(match[3])
    return found


def stages(port: int) -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics",
                                timeout=10) as answer:
        return parse_stages(answer.read().decode())


def places(found: dict[str, float], before: dict[str, float],
           after: dict[str, float]) -> dict[str, float]:
    """Milliseconds in each place."""
    per_ms = found["per_s"] / 1000
    count = after["count total"] - before.get("count total", 0)
    took = {name: found[name] / per_ms for name in ("libnfs", "there", "back")}
    for stage in STAGES:
        took[stage] = (after.get(f"sum {stage}", 0) -
                       before.get(f"sum {stage}", 0)) / count / 1000
    took["ganesha"] = found["server"] / per_ms - \
        sum(took[stage] for stage in STAGES)
    return took


def measure(about: dict[str, Any], load: tuple[str, str, int, int],
            seconds: float, seed: int) -> dict[str, Any]:
    mix, block, connections, depth = load
    options = ["--port", about["port"], "--mount-port", about["port"] + 1,
               "--export", about["pseudo"], "--name", NAME,
               "--file-size", "256M", "--mix", mix, "--block-size", block,
               "--connections", connections, "--depth", depth]
    nfsload(*options, "--count", 1)         # the file is there, full
    before = stages(about["port"] + 4)
    looker = Looker(about["port"])
    looker.start()
    try:
        result = nfsload(*options, "--seed", seed, "--warmup", WARMUP_S,
                         "--seconds", seconds, "--quiet", QUIET_MS,
                         "--drain", 60)
    finally:
        looks = looker.stop()
    (each,) = result["ops"].values()
    found = numbers(looks, result["sent"], connections * depth, WARMUP_S,
                    WARMUP_S + seconds)
    took = places(found, before, stages(about["port"] + 4))
    client_ms = each["latency_us"]["mean"] / 1000
    return {"places_ms": took, "client_ms": client_ms,
            "accounted": sum(took.values()) / client_ms,
            "per_s": each["per_s"]}


def start() -> dict[str, Any]:
    lab("ganesha", "start", "--name", NAME, "--fsal", "CEPH_ASYNC", "--port",
        str(PORT), "--pseudo", PSEUDO, "--export", "", "--core",
        "Enable_Metrics = true;", "--block", "Cache_Bytes = 26214400;")
    return stat()["ganesha"][NAME]


def table(results: dict[str, list[dict[str, Any]]]) -> str:
    """Medians of the rounds, ms."""
    names = list(results)

    def row(title: str, value: Any) -> str:
        return f"| {title} | " + " | ".join(
            value(results[name]) for name in names) + " |"

    def median(of: Any, digits: int = 2) -> Any:
        return lambda rounds: \
            f"{statistics.median(map(of, rounds)):.{digits}f}"
    lines = ["| ms | " + " | ".join(names) + " |", "|---" * (len(names) + 1)
             + "|"]
    lines += [row(title, median(lambda one, key=key: one["places_ms"][key]))
              for key, title in PLACES]
    lines.append(row("sum", median(
        lambda one: sum(one["places_ms"].values()))))
    lines.append(row("what the client saw", median(
        lambda one: one["client_ms"])))
    lines.append(row("accounted for, %", median(
        lambda one: 100 * one["accounted"], 0)))
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--no-up", action="store_true",
                        help="use the cluster that runs")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--only", default="", help="loads with that word")
    parser.add_argument("--least", type=float, default=LEAST)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    if not args.no_up:
        lab("cluster", "--memstore")
    about = start()
    results: dict[str, list[dict[str, Any]]] = {}
    try:
        for number in range(args.rounds):
            for name, load in LOADS:
                if args.only in name:
                    one = measure(about, load, args.seconds, number + 1)
                    results.setdefault(name, []).append(one)
                    print(f"round {number + 1}, {name}: "
                          f"{one['client_ms']:.2f} ms, "
                          f"{one['accounted']:.0%} accounted for", flush=True)
    finally:
        lab("ganesha", "stop", "--name", NAME)
    print(table(results))
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n",
                             encoding="utf-8")
    return 0 if all(statistics.median(one["accounted"] for one in rounds)
                    >= args.least for rounds in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
