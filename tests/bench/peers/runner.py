# SPDX-License-Identifier: LGPL-3.0-or-later
"""The order of things: A B C, A B C, and how long it will still take."""
from __future__ import annotations

import statistics
import subprocess
import time
from dataclasses import dataclass
from typing import Any, Callable

from peers import files, measure
from peers.env import Env
from peers.loads import Files
from peers.scenarios import Case, Scenario
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
        self.done = 0
        self.worlds: set[Env] = set()
        self.began = time.monotonic()

    def left_s(self) -> float:
        """By what measurements took until now; worlds are guessed."""
        each = statistics.mean(run["took_s"] for run in self.runs) \
            if self.runs else self.plan.seconds + FIRST_GUESS_S
        worlds = {scenario.env for scenario in self.plan.scenarios}
        ahead = len(worlds - self.worlds)
        return (self.plan.count() - self.done) * each + ahead * WORLD_S

    def over(self) -> bool:
        return bool(self.plan.limit_s) and \
            time.monotonic() - self.began > self.plan.limit_s

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
        wanted = _files(scenario)
        owners = [name for name in systems
                  if SYSTEMS[name].kind not in ("rados", "rbd")]
        files.make(owners, wanted)
        for number in range(self.plan.rounds):
            if self.over():
                self.skipped.append(f"{scenario.name} from round "
                                    f"{number + 1} on")
                break
            for case in scenario.cases:
                self._round(scenario, case, number)
            self.keep(self.runs)
        if scenario.remove or self.world.keep_cluster:
            files.remove(owners, wanted)

    def _round(self, scenario: Scenario, case: Case, number: int) -> None:
        # Another one begins each time: nobody always follows the same.
        turn = number % len(case.systems)
        for name in case.systems[turn:] + case.systems[:turn]:
            self.done += 1
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
                                number + 1)
        except (SystemExit, OSError, ValueError, KeyError,
                subprocess.SubprocessError) as error:
            self.errors.append({**run, "error": str(error)})
            self.say(f"FAILED {scenario.name} {case.name} {name}: {error}")
            self.world.forget(SYSTEMS[name])
            return
        self.runs.append({**run, "took_s": time.monotonic() - began,
                          "figures": found})
        shown = "  ".join(f"{key} {found[key]:.4g}" for key in
                          (*case.show, "cpu_us") if key in found)
        self.say(f"[{self.done}/{self.plan.count()}, "
                 f"{_minutes(self.left_s())} left] {scenario.name} "
                 f"{case.name} round {number + 1} {name}: {shown}"
                 f"  others {found['others_cpus']:.2f} CPUs")


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def _files(scenario: Scenario) -> list[Files]:
    """Each once, and none that a load makes by itself."""
    found = {}
    for case in scenario.cases:
        for load in (case.load, *(load for _, load in case.own)):
            one = getattr(load, "files", None)
            if isinstance(one, Files):
                found[(one.name, one.object_size)] = max(
                    one, found.get((one.name, one.object_size), one),
                    key=lambda each: each.count)
    return list(found.values())
