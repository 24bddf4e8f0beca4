#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""docs/dashboard.png: each panel of the Grafana dashboard, with data of a real
run: Prometheus scrapes Ganesha while clients read and write.

    dashboard_picture.py [--seconds S] PICTURE

Runs in the lab; wants the packages prometheus and python3-matplotlib.  It is no
Grafana: Prometheus itself evaluates the panels' queries, matplotlib draws the
answers.
"""
from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

from bench import lab, nfsload

DASHBOARD = Path(__file__).parents[3] / "config" / "monitoring" / \
    "grafana-dashboard.json"
ADDRESS = "127.0.0.1:9590"
# What Grafana puts in the place of its variables.
VARIABLES = {"$instance": ".*", "$export": ".*", "$__rate_interval": "10s"}
LOADS = (
    ("--mix", "write=100", "--depth", 4),
    ("--mix", "read=100", "--depth", 8),
    ("--mix", "read=70,write=30", "--depth", 8),
)
STEP_S = 1
COLUMNS = 3


def prometheus(folder: Path) -> subprocess.Popen:
    (folder / "prometheus.yml").write_text(
        "scrape_configs:\n- job_name: nfs-ganesha\n  scrape_interval: 1s\n"
        "  static_configs:\n  - targets: ['127.0.0.1:9587']\n")
    running = subprocess.Popen(
        ["prometheus", f"--config.file={folder}/prometheus.yml",
         f"--storage.tsdb.path={folder}/data",
         f"--web.listen-address={ADDRESS}"], stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            urllib.request.urlopen(f"http://{ADDRESS}/-/ready", timeout=5)
            return running
        except OSError:
            time.sleep(0.5)
    raise SystemExit("Prometheus does not answer")


def evaluate(query: str, begin: float, end: float) -> list[dict[str, Any]]:
    for name, value in VARIABLES.items():
        query = query.replace(name, value)
    words = urllib.parse.urlencode({"query": query, "start": begin,
                                    "end": end, "step": STEP_S})
    with urllib.request.urlopen(
            f"http://{ADDRESS}/api/v1/query_range?{words}",
            timeout=30) as answer:
        return json.load(answer)["data"]["result"]


def legend(target: dict[str, Any], labels: dict[str, str]) -> str:
    text = target.get("legendFormat") or ""
    for name, value in labels.items():
        text = text.replace("{{" + name + "}}", value)
    return text


def draw(panels: list[dict[str, Any]], begin: float, end: float,
         picture: Path) -> int:
    import matplotlib
    matplotlib.use("agg")
    from matplotlib import pyplot
    rows = -(-len(panels) // COLUMNS)
    figure, axes = pyplot.subplots(rows, COLUMNS,
                                   figsize=(5 * COLUMNS, 2.4 * rows))
    filled = 0
    for axis, panel in zip(axes.flat, panels):
        lines = 0
        for target in panel["targets"]:
            for series in evaluate(target["expr"], begin, end):
                points = [(float(at) - begin, float(value))
                          for at, value in series["values"]]
                axis.plot(*zip(*points), linewidth=1,
                          label=legend(target, series["metric"]))
                lines += 1
        filled += lines > 0
        axis.set_title(panel["title"], fontsize=9)
        axis.tick_params(labelsize=7)
        if 1 < lines <= 8:
            axis.legend(fontsize=6)
    for axis in axes.flat[len(panels):]:
        axis.set_visible(False)
    figure.tight_layout()
    figure.savefig(picture, dpi=64)
    return filled


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--seconds", type=float, default=30)
    args = parser.parse_args()
    panels = [panel for panel in json.loads(DASHBOARD.read_text())["panels"]
              if panel["type"] != "row"]
    lab("up", "--fsal", "CEPH_ASYNC")
    lab("ganesha", "restart", "--core", "Enable_Metrics = true;")
    with tempfile.TemporaryDirectory() as folder:
        running = prometheus(Path(folder))
        begin = time.time()
        for options in LOADS:
            load = threading.Thread(target=nfsload, args=(
                "--name", "dashboard", "--connections", 4, *options,
                "--seconds", args.seconds))
            load.start()
            load.join()
            time.sleep(5)
        filled = draw(panels, begin, time.time(), args.picture)
        running.terminate()
        running.wait(30)
    print(f"{args.picture}: {filled} of {len(panels)} panels have data")


if __name__ == "__main__":
    main()
