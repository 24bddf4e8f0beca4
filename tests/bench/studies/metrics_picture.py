#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""docs/metrics.svg: Ganesha's endpoint scraped each second under real load.

    metrics_picture.py [--seconds S] [--json FILE] [--from FILE] PICTURE

Runs in the lab; wants python3-matplotlib.  The series is kept in the JSON
file, and --from draws one again.
"""
from __future__ import annotations

import argparse
import json
import re
import sys
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

from bench import lab, nfsload

ENDPOINT = "http://127.0.0.1:9587/metrics"
SERIES = re.compile(r'^ceph_async__latency_us_(sum|count)\{(.*)\} (\S+)$')
LICENSE = "<!-- SPDX-License-Identifier: LGPL-3.0-or-later -->"
STAGES = ("queued", "libcephfs", "handover", "finish")
# (what, Stable_Write of the export, nfsload's options)
PHASES = (
    ("write, 8 in flight", "data", ("--mix", "write=100", "--depth", 2)),
    ("write, 32 in flight", "data", ("--mix", "write=100", "--depth", 8)),
    ("read, 32 in flight", "data", ("--mix", "read=100", "--depth", 8)),
    ("write, 8, Stable_Write = full", "full",
     ("--mix", "write=100", "--depth", 2)),
)


def sample() -> dict[str, float]:
    """"sum write libcephfs" → µs, …"""
    with urllib.request.urlopen(ENDPOINT, timeout=10) as answer:
        text = answer.read().decode()
    found = {}
    for line in text.splitlines():
        match = SERIES.match(line)
        if match:
            labels = dict(re.findall(r'(\w+)="([^"]*)"', match[2]))
            found[f"{match[1]} {labels['op']} {labels['stage']}"] = \
                float(match[3])
    return found


def phase(what: str, mode: str, options: tuple[Any, ...],
          seconds: float) -> dict[str, Any]:
    lab("ganesha", "restart", "--export", f"Stable_Write = {mode};", "--core",
        "Enable_Metrics = true;")
    load = threading.Thread(target=nfsload, args=(
        "--name", "picture", "--connections", 4, *options, "--seconds",
        seconds))
    samples = []
    load.start()
    while load.is_alive():
        samples.append({"at": time.monotonic(), **sample()})
        time.sleep(1)
    load.join()
    return {"what": what, "op": "read" if "read" in what else "write",
            "samples": samples}


def differences(found: dict[str, Any]) -> list[dict[str, float]]:
    """Of one second each: requests, and the mean of each stage."""
    seconds = []
    for before, after in zip(found["samples"], found["samples"][1:]):
        since = {key: value - before.get(key, 0)
                 for key, value in after.items()}
        op, took = found["op"], after["at"] - before["at"]
        count = since.get(f"count {op} total", 0)
        if count < 10:
            continue
        seconds.append({"per_s": count / took, **{
            stage: since.get(f"sum {op} {stage}", 0) / count
            for stage in STAGES}})
    return seconds


def draw(phases: list[dict[str, Any]], picture: Path) -> None:
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams["svg.fonttype"] = "none"
    from matplotlib import pyplot
    figure, (top, below) = pyplot.subplots(2, 1, figsize=(8, 5), sharex=True)
    rows, edges = [], []
    for one in phases:
        edges.append((len(rows), one["what"]))
        rows += differences(one)
    at = range(len(rows))
    top.plot(at, [row["per_s"] for row in rows], color="black")
    top.set_ylabel("requests a second")
    below.stackplot(at, [[row[stage] for row in rows] for stage in STAGES],
                    labels=STAGES)
    below.set_ylabel("mean latency, µs")
    below.set_xlabel("seconds of load")
    below.legend(loc="upper left", fontsize=8)
    top.set_ylim(bottom=0)
    for where, what in edges:
        for axis in (top, below):
            axis.axvline(where, color="grey", linewidth=0.5)
        top.text(where + 0.2, top.get_ylim()[1], what, fontsize=7,
                 verticalalignment="bottom")
    figure.tight_layout()
    figure.savefig(picture, metadata={"Date": None})
    if picture.suffix == ".svg":
        text = picture.read_text(encoding="utf-8")
        picture.write_text(text.replace("?>\n", f"?>\n{LICENSE}\n", 1),
                           encoding="utf-8")


def table(phases: list[dict[str, Any]]) -> None:
    """Markdown, of all seconds of a phase together."""
    print("| load | requests/s | " + " | ".join(STAGES) + " |")
    print("|---" * (len(STAGES) + 2) + "|")
    for one in phases:
        rows = differences(one)
        count = sum(row["per_s"] for row in rows)
        cells = [f"{sum(row[stage] * row['per_s'] for row in rows) / count:.1f}"
                 for stage in STAGES]
        print(f"| {one['what']} | {count / len(rows):.0f} | "
              + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--from", dest="old", type=Path, metavar="FILE")
    parser.add_argument("picture", type=Path)
    args = parser.parse_args()
    if args.old:
        phases = json.loads(args.old.read_text(encoding="utf-8"))
    else:
        lab("up", "--fsal", "CEPH_ASYNC", "--export", "", "--block", "")
        nfsload("--name", "picture", "--count", 1)      # makes its file
        phases = [phase(*one, args.seconds) for one in PHASES]
        lab("ganesha", "restart", "--export", "", "--core", "")
    if args.json:
        args.json.write_text(json.dumps(phases) + "\n", encoding="utf-8")
    table(phases)
    draw(phases, args.picture)


if __name__ == "__main__":
    main()
