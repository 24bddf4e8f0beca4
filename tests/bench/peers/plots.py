# SPDX-License-Identifier: LGPL-3.0-or-later
"""A picture for each scenario, from raw.json; wants python3-matplotlib."""
from __future__ import annotations

from pathlib import Path
from typing import Any

from peers import figures
from peers.report import COLUMNS

LICENSE = "<!-- SPDX-License-Identifier: LGPL-3.0-or-later -->"
COLORS = {"casync": "#0b5394", "fdatasync": "#6fa8dc", "full": "#9fc5e8",
          "single": "#3d85c6", "ceph": "#b45f06", "cephasync": "#f6b26b",
          "quiet": "#7f6000", "kcephfs": "#38761d",
          "kcephfsnocrc": "#6aa84f", "fuse": "#93c47d", "knfsd": "#674ea7",
          "rados": "#666666", "rbd": "#999999", "oc": "#e69138",
          "tenth": "#0b5394"}


def draw(raw: dict[str, Any], folder: Path) -> list[tuple[str, str]]:
    """(scenario, the name of the file that was written)"""
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams["svg.fonttype"] = "none"
    matplotlib.rcParams["svg.hashsalt"] = "peers"
    names = []
    for scenario in raw["scenarios"]:
        units = list(dict.fromkeys(case["show"][0]
                                   for case in scenario["cases"]))
        for unit in units:
            bars = _bars(raw["runs"], scenario, unit)
            if bars:
                name = f"{scenario['name']}-{unit.removesuffix('_us')}.svg"
                _picture(scenario, unit, bars, folder / name)
                names.append((scenario["name"], name))
    return names


def _bars(runs: list[figures.Run], scenario: dict[str, Any],
          unit: str) -> list[tuple[str, str, dict[str, float]]]:
    """(case, system, value)"""
    found = []
    for case in scenario["cases"]:
        for system in case["systems"]:
            value = figures.of(runs, (scenario["name"], case["name"],
                                      system), unit)
            if value and case["show"][0] == unit:
                found.append((case["title"], system, value))
    return found


def _picture(scenario: dict[str, Any], unit: str,
             bars: list[tuple[str, str, dict[str, float]]],
             path: Path) -> None:
    """A group of bars a case, each with its least and most."""
    from matplotlib import pyplot
    heading, factor, _ = COLUMNS[unit]
    cases = list(dict.fromkeys(case for case, _, _ in bars))
    figure, axis = pyplot.subplots(
        figsize=(8, 0.9 + 0.17 * len(bars) + 0.25 * len(cases)))
    at, ticks, seen = 0.0, [], set()
    for case in cases:
        members = [bar for bar in bars if bar[0] == case]
        ticks.append(at + (len(members) - 1) / 2)
        for _, system, value in members:
            middle = value["median"] * factor
            axis.barh(at, middle, color=COLORS.get(system, "black"),
                      label=None if system in seen else system,
                      xerr=[[middle - value["min"] * factor],
                            [value["max"] * factor - middle]],
                      error_kw={"linewidth": 0.8})
            seen.add(system)
            at += 1
        at += 1.2
    axis.set_yticks(ticks, cases, fontsize=7)
    axis.invert_yaxis()
    axis.set_xlim(left=0)
    axis.set_xlabel(heading)
    axis.set_title(scenario["title"], fontsize=8)
    axis.legend(fontsize=7)
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    from matplotlib import pyplot
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("?>\n", f"?>\n{LICENSE}\n", 1),
                    encoding="utf-8")
