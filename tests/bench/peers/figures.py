# SPDX-License-Identifier: LGPL-3.0-or-later
"""Medians, ratios and comparisons of what was measured; pure.

A run is a dict: scenario, case, system, round, figures.
"""
from __future__ import annotations

import statistics
from typing import Any

Run = dict[str, Any]
Key = tuple[str, str, str]              # scenario, case, system

# From here on others' load may be what a figure shows, in CPUs.
DISTURBED_CPUS = 0.3


def by_round(runs: list[Run], key: Key, figure: str) -> dict[int, float]:
    return {run["round"]: run["figures"][figure] for run in runs
            if (run["scenario"], run["case"], run["system"]) == key
            and figure in run["figures"]}


def spread(values: list[float]) -> dict[str, float] | None:
    if not values:
        return None
    return {"median": statistics.median(values), "min": min(values),
            "max": max(values), "rounds": len(values)}


def of(runs: list[Run], key: Key, figure: str) -> dict[str, float] | None:
    return spread(list(by_round(runs, key, figure).values()))


def divided(over: dict[int, float],
            under: dict[int, float]) -> dict[str, float] | None:
    """Each round's own ratio, of the rounds that both have."""
    return spread([over[number] / under[number]
                   for number in sorted(over.keys() & under.keys())
                   if under[number]])


def ratio(runs: list[Run], over: Key, under: Key,
          figure: str) -> dict[str, float] | None:
    return divided(by_round(runs, over, figure),
                   by_round(runs, under, figure))


def better(runs: list[Run], keys: list[Key],
           figure: str) -> dict[int, float]:
    """In each round that all have, the greatest."""
    each = [by_round(runs, key, figure) for key in keys]
    rounds = set.intersection(*(set(one) for one in each))
    return {number: max(one[number] for one in each) for number in rounds}


def disturbed(runs: list[Run], scenario: str, case: str,
              system: str) -> bool:
    """Did others take CPUs in half of the rounds or more?"""
    values = by_round(runs, (scenario, case, system), "others_cpus")
    return bool(values) and \
        statistics.median(values.values()) > DISTURBED_CPUS


def others(runs: list[Run]) -> float:
    """How many CPUs others used while something was measured."""
    seconds = sum(run["took_s"] for run in runs)
    return sum(run["figures"]["others_cpus"] * run["took_s"]
               for run in runs) / seconds if seconds else 0.0


def keys_of(runs: list[Run]) -> list[Key]:
    return list(dict.fromkeys(
        (run["scenario"], run["case"], run["system"]) for run in runs))


def against(new: list[Run], old: list[Run],
            shown: dict[tuple[str, str], str]) -> list[dict[str, Any]]:
    """Every key in both; `shown` has the figure that a case is about.

    A change is one that the spreads do not explain: the two ranges of
    values have nothing in common.
    """
    lines = []
    for key in keys_of(new):
        figure = shown.get(key[:2])
        now = of(new, key, figure) if figure else None
        then = of(old, key, figure) if figure else None
        if not now or not then or not then["median"]:
            continue
        apart = now["min"] > then["max"] or now["max"] < then["min"]
        lines.append({"key": key, "figure": figure, "now": now, "then": then,
                      "ratio": now["median"] / then["median"],
                      "apart": apart})
    return lines
