# SPDX-License-Identifier: LGPL-3.0-or-later
"""The command line: plan, run, keep raw.json, write the report."""
from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from lab_program import json_lines
from peers import figures, report, targets
from peers.case import Scenario
from peers.runner import Plan, Runner
from peers.scenarios import SCENARIOS, chosen
from peers.systems import SYSTEMS
from peers.world import World

FORMAT = 1
# --quick ends within 10 minutes: this, the last round, and the report.
QUICK_LIMIT_MIN = 8.5

_began = time.monotonic()


def say(text: str) -> None:
    seconds = int(time.monotonic() - _began)
    print(f"bench {seconds // 60}:{seconds % 60:02}  {text}", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench", description="CEPH_ASYNC side by side with its peers.")
    parser.add_argument("scenario", nargs="*", help="all, if none is named")
    parser.add_argument("--quick", action="store_true", help="what the "
                        "targets are about, 3 rounds of 2 s, in 10 minutes")
    parser.add_argument("--rounds", type=int, help="default 5")
    parser.add_argument("--seconds", type=float, help="of each measurement, "
                        "default 4")
    parser.add_argument("--systems", metavar="A,B", help="only these")
    parser.add_argument("--cases", metavar="A,B", help="only these")
    parser.add_argument("--limit", type=float, metavar="MINUTES",
                        help="fewer rounds of each scenario, as many as "
                        "that gives time for")
    parser.add_argument("--against", type=Path, metavar="RAW.JSON",
                        help="compare with a stored run")
    parser.add_argument("--output", type=Path, metavar="FOLDER",
                        default=Path("results") / time.strftime("%Y-%m-%d"))
    parser.add_argument("--no-up", action="store_true",
                        help="use the cluster that runs, and leave it")
    parser.add_argument("--list", action="store_true",
                        help="say what would be measured")
    parser.add_argument("--report", type=Path, metavar="RAW.JSON",
                        help="measure nothing, write its report again")
    return parser


def _plan(args: argparse.Namespace) -> Plan:
    scenarios = chosen(args.scenario, args.quick)
    unknown = [name for name in args.scenario if not chosen([name], False)]
    if unknown:
        raise SystemExit(f"bench: no scenario {', '.join(unknown)}; there "
                         f"are {', '.join(s.name for s in SCENARIOS)}")
    if args.systems:
        scenarios = _only(scenarios, "systems", args.systems.split(","))
    if args.cases:
        scenarios = _only(scenarios, "cases", args.cases.split(","))
    if any(scenario.env.disk for scenario in scenarios) and \
            not (args.list or os.environ.get("CASYNC_DISK")):
        raise SystemExit("bench: the scenario disk needs a container whose "
                         "disk has limits: ci/bench.sh --disk 60,200 disk")
    if not scenarios:
        raise SystemExit("bench: nothing is left to measure")
    rounds = args.rounds or (3 if args.quick else 5)
    limit = args.limit or (QUICK_LIMIT_MIN if args.quick else 0)
    return Plan(scenarios, rounds,
                args.seconds or (2.0 if args.quick else 4.0), limit * 60)


def _only(scenarios: list[Scenario], what: str,
          names: list[str]) -> list[Scenario]:
    """Of each case those systems, or of each scenario those cases."""
    found = []
    for scenario in scenarios:
        if what == "cases":
            cases = tuple(case for case in scenario.cases
                          if case.name in names)
        else:
            cases = tuple(replace(case, systems=tuple(
                name for name in case.systems if name in names))
                for case in scenario.cases)
            cases = tuple(case for case in cases if case.systems)
        if cases:
            found.append(replace(scenario, cases=cases))
    return found


def _list(plan: Plan) -> None:
    for scenario in plan.scenarios:
        print(f"{scenario.name}: {scenario.title}")
        for case in scenario.cases:
            print(f"    {case.name}: {', '.join(case.systems)}")
    count = plan.count()
    print(f"{count} measurements of {plan.seconds:g} s in {plan.rounds} "
          f"rounds, about {count * (plan.seconds + 2) / 60:.0f} minutes")


def _machine() -> str:
    info = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    model = re.search(r"model name\s*:\s*(.+)", info)
    memory = int(re.search(
        r"MemTotal:\s*(\d+)",
        Path("/proc/meminfo").read_text(encoding="utf-8"))[1]) / (1 << 20)
    return (f"{os.cpu_count()} CPUs ({model[1] if model else '?'}), "
            f"{memory:.0f} GiB, Linux {platform.release()}, everything on "
            "this one machine")


def _versions() -> str:
    def first(*words: str) -> str:
        done = subprocess.run(words, check=False, text=True, timeout=30,
                              stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        return (done.stdout.splitlines() or ["?"])[0]
    ceph = re.search(r"version (\S+)", first("ceph", "--version"))
    ganesha = re.search(r"(V?\d+\.\S+)", first("ganesha.nfsd", "-v"))
    commit = os.environ.get("CASYNC_COMMIT", "?")
    return (f"Ceph {ceph[1] if ceph else '?'}, NFS-Ganesha "
            f"{ganesha[1] if ganesha else '?'}, FSAL_CEPH_ASYNC {commit}")


def _disk() -> str:
    """As ci/bench.sh --disk has said it."""
    limits = os.environ.get("CASYNC_DISK")
    return "{} MiB/s and {} IOPS".format(*limits.split(",")) if limits else ""


def _raw(plan: Plan, args: argparse.Namespace) -> dict[str, Any]:
    return {
        "format": FORMAT, "when": time.strftime("%Y-%m-%d %H:%M"),
        "machine": _machine(), "versions": _versions(),
        "cpus": os.cpu_count(), "others_cpus": 0.0,
        "settings": {"rounds": plan.rounds, "seconds": plan.seconds,
                     "quick": args.quick,
                     "disk": _disk()},
        "systems": {name: one.label for name, one in SYSTEMS.items()},
        "scenarios": [{
            "name": scenario.name, "title": scenario.title,
            "env": asdict(scenario.env),
            "cases": [{"name": case.name, "title": case.title,
                       "show": case.show, "systems": case.systems,
                       "loads": {name: {"by": type(case.load_of(name))
                                        .__name__.lower(),
                                        **asdict(case.load_of(name))}
                                 for name in case.systems}}
                      for case in scenario.cases]}
            for scenario in plan.scenarios],
        "runs": [], "errors": [], "skipped": []}


def _keep(raw: dict[str, Any], folder: Path) -> None:
    new = folder / "raw.json.new"
    new.write_text(json_lines(raw), encoding="utf-8")
    new.replace(folder / "raw.json")


def _tell(raw: dict[str, Any], folder: Path, against: Path | None) -> None:
    old = json.loads(against.read_text(encoding="utf-8")) if against else None
    (folder / "report.md").write_text(report.write(raw, old),
                                      encoding="utf-8")
    for line in report.changes(raw, old) if old else []:
        if line["apart"]:
            print(f"{'changed':<12} {' '.join(line['key'])}: "
                  f"{line['ratio']:.2f} times")
    for one in targets.judge(raw["runs"]):
        if one["met"] is not None:
            print(f"{report.WORDS[one['met']].strip('*'):<12} {one['what']}: "
                  f"{report.number(one['value'], digits=3)}, wanted "
                  f"{one['wanted']}")
    say(f"{folder}/report.md")


def _measure(plan: Plan, args: argparse.Namespace) -> dict[str, Any]:
    raw = _raw(plan, args)
    world = World(args.no_up, say)

    def keep(runs: list[dict[str, Any]]) -> None:
        raw["others_cpus"] = figures.others(runs)
        _keep(raw, args.output)
    runner = Runner(plan, world, say, keep)
    raw.update(runs=runner.runs, errors=runner.errors,
               skipped=runner.skipped)
    say(f"{plan.count()} measurements, about "
        f"{runner.left_s() / 60:.0f} minutes")
    try:
        runner.run()
    finally:
        keep(runner.runs)
        world.end()
    return raw


def main() -> int:
    args = _parser().parse_args()
    if args.report:
        raw = json.loads(args.report.read_text(encoding="utf-8"))
        _tell(raw, args.report.parent, args.against)
        return 0
    plan = _plan(args)
    if args.list:
        _list(plan)
        return 0
    if args.against and not args.against.exists():
        raise SystemExit(f"bench: --against {args.against}: no such file")
    args.output.mkdir(parents=True, exist_ok=True)
    raw = _measure(plan, args)
    _tell(raw, args.output, args.against)
    if raw["errors"]:
        say(f"{len(raw['errors'])} measurements failed, see the report")
    return 1 if raw["errors"] else 0


if __name__ == "__main__":
    sys.exit(main())
