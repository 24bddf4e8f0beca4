# SPDX-License-Identifier: LGPL-3.0-or-later
"""The order of things: A B C, A B C, and how long it will still take."""
from __future__ import annotations

import statistics
import subprocess
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from peers import files, measure
from peers.case import Case, Scenario
from peers.env import Env
from peers.loads import Files
from peers.systems import SYSTEMS
from peers.world import World

# What a measurement takes beside its seconds, before one was made; and
# another world (daemons, files).
FIRST_GUESS_S = 1.0
WORLD_S = 12
ERRORS_BORNE = 2


@dataclass
class Plan:
    scenarios: list[Scenario]
    rounds: int
    seconds: float
    limit_s: float = 0          # 0: none

    def count(self) -> int:
        return self.rounds * sum(len(case.systems) for scenario in
                                 self.scenarios for case in scenario.cases)


class Runner:
    """What run() finds is in `runs`, `errors` and `skipped`."""

    def __init__(self, plan: Plan, world: World,
                 say: Callable[[str], None],
                 keep: Callable[[list[dict[str, Any]]], None]) -> None:
        self.plan, self.world = plan, world
        self.say, self.keep = say, keep
        self.runs: list[dict[str, Any]] = []
        self.errors: list[dict[str, Any]] = []
        self.skipped: list[str] = []
        self.done: dict[tuple[str, str], int] = {}
        self.worlds: set[Env] = set()
        self.made: set[tuple[str, str, Files]] = set()     # store, whose
        self.began = time.monotonic()

    def left_s(self) -> float:
        """By what measurements took, those of the same case where there are
        some; worlds are guessed."""
        took: dict[tuple[str, str], list[float]] = {}
        for run in self.runs:
            took.setdefault((run["scenario"], run["case"]),
                            []).append(run["took_s"])
        usual = statistics.median(run["took_s"] for run in self.runs) \
            if self.runs else self.plan.seconds + FIRST_GUESS_S
        left = 0.0
        for scenario in self.plan.scenarios:
            for case in scenario.cases:
                mine = took.get((scenario.name, case.name))
                count = len(case.systems) * self.plan.rounds - \
                    self.done.get((scenario.name, case.name), 0)
                left += count * (statistics.mean(mine) if mine else usual)
        worlds = {scenario.env for scenario in self.plan.scenarios}
        return left + len(worlds - self.worlds) * WORLD_S

    def elapsed_s(self) -> float:
        return time.monotonic() - self.began

    def over(self) -> bool:
        return bool(self.plan.limit_s) and \
            self.elapsed_s() > self.plan.limit_s

    def late(self, scenario: Scenario, round_s: float) -> bool:
        """Would one more round take the time of the scenarios behind it?
        Better fewer rounds of each than none of the last ones."""
        if not self.plan.limit_s:
            return False
        until = self.plan.scenarios.index(scenario) + 1
        counts = [sum(len(case.systems) for case in one.cases)
                  for one in self.plan.scenarios]
        share = sum(counts[:until]) / sum(counts)
        return self.elapsed_s() + round_s > self.plan.limit_s * share

    def run(self) -> None:
        for scenario in self.plan.scenarios:
            if self.over():
                self.skipped.append(scenario.name)
                continue
            self._scenario(scenario)

    def _scenario(self, scenario: Scenario) -> None:
        self.say(f"{scenario.name}: {scenario.title}")
        systems = list(dict.fromkeys(
            name for case in scenario.cases for name in case.systems))
        self.worlds.add(scenario.env)
        self.world.enter(scenario.env, systems)
        self._make_files(scenario)
        for number in range(self.plan.rounds):
            began = time.monotonic()
            for case in scenario.cases:
                self._round(scenario, case, number)
                self.keep(self.runs)
            if number + 1 < self.plan.rounds and \
                    self.late(scenario, time.monotonic() - began):
                self._skip(scenario, number + 1)
                break
        self._remove_files(scenario)

    def _skip(self, scenario: Scenario, number: int) -> None:
        """The rounds from NUMBER on are not made."""
        left = self.plan.rounds - number
        self.skipped.append(f"{scenario.name} (the last "
                            f"{left} of {self.plan.rounds} rounds)")
        self.say(f"late: {self.skipped[-1]} skipped")
        for case in scenario.cases:
            self.done[scenario.name, case.name] += \
                left * len(case.systems)

    def _make_files(self, scenario: Scenario) -> None:
        wanted = _files(scenario)
        files.make(wanted)
        self.made |= {(scenario.env.store, *one) for one in wanted}

    def _remove_files(self, scenario: Scenario) -> None:
        """What no later scenario needs: memstore is small."""
        later = self.plan.scenarios[
            self.plan.scenarios.index(scenario) + 1:]
        if not self.world.keep_cluster and not any(
                other.env.store == scenario.env.store for other in later):
            return              # the whole cluster goes
        needed = {(other.env.store, *one) for other in later
                  for one in _files(other)}
        gone = {one for one in self.made - needed
                if one[0] == scenario.env.store}
        files.remove((system, each) for _, system, each in gone)
        self.made -= gone
        if gone:
            self.world.settle()

    def _round(self, scenario: Scenario, case: Case, number: int) -> None:
        # Another one begins each time: nobody always follows the same.
        turn = number % len(case.systems)
        for name in case.systems[turn:] + case.systems[:turn]:
            key = scenario.name, case.name
            self.done[key] = self.done.get(key, 0) + 1
            if self._given_up(scenario, case, name):
                continue
            self._one(scenario, case, name, number)

    def _given_up(self, scenario: Scenario, case: Case, name: str) -> bool:
        return sum((one["scenario"], one["case"], one["system"]) ==
                   (scenario.name, case.name, name)
                   for one in self.errors) >= ERRORS_BORNE

    def _one(self, scenario: Scenario, case: Case, name: str,
             number: int) -> None:
        run = {"scenario": scenario.name, "case": case.name, "system": name,
               "round": number}
        began = time.monotonic()
        try:
            found = measure.run(self.world, SYSTEMS[name],
                                case.load_of(name), self.plan.seconds,
                                seed_of(scenario, case, number))
        except (SystemExit, OSError, ValueError, KeyError,
                subprocess.SubprocessError) as error:
            self.errors.append({**run, "error": str(error)})
            last = str(error).strip().splitlines()[-1:] or ["?"]
            self.say(f"FAILED {scenario.name} {case.name} {name}: {last[0]} "
                     "(all of it is in raw.json)")
            self.world.forget(SYSTEMS[name])
            return
        self.runs.append({**run, "took_s": time.monotonic() - began,
                          "figures": found})
        shown = "  ".join(f"{key} {found[key]:.4g}" for key in
                          (*case.show, "cpu_us") if key in found)
        self.say(f"[{sum(self.done.values())}/{self.plan.count()}, "
                 f"{_minutes(self.left_s())} left] {scenario.name} "
                 f"{case.name} round {number + 1} {name}: {shown}"
                 f"  others {found['others_cpus']:.2f} CPUs")


def seed_of(scenario: Scenario, case: Case, number: int) -> int:
    """The same for all systems of a round.  Of its own for each case: else
    one reads what the case before it has brought into a gateway's cache."""
    return zlib.crc32(f"{scenario.name} {case.name} {number}".encode())


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def _files(scenario: Scenario) -> list[tuple[str, Files]]:
    """Whose, and which; each once, and none that a load makes by itself."""
    found: dict[tuple[str, str], Files] = {}
    for system, load in ((name, case.load_of(name))
                         for case in scenario.cases for name in case.systems):
        one = getattr(load, "files", None)
        if isinstance(one, Files) and \
                SYSTEMS[system].kind not in ("rados", "rbd"):
            key = system, one.name
            found[key] = max(one, found.get(key, one),
                             key=lambda each: (each.count, each.size))
    return [(key[0], one) for key, one in found.items()]
