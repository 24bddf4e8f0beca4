#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Figures in documents are those of results/*/raw.json.

    python3 tests/bench/quote.py [--check] [DOCUMENT...]

Writes the figures of the results into the documents; with --check it says
which differ, and changes nothing.  tests/bench/README.md has the markers.
"""
from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from peers import figures, report

TOP = Path(__file__).resolve().parents[2]
COMMENT = re.compile(
    r"(?P<text>(?:(?<![\d.,])\d[\d.]*(?: \(\d[\d.]*–\d[\d.]*\))?)?)"
    r"<!-- (?P<words>[^>]*?) -->")
MARKER = re.compile(
    r"(?P<scenario>[\w.-]+)/(?P<case>[\w.-]+) (?P<over>\w+)"
    r"(?:/(?P<under>\w+|better\(\w+(?:,\w+)*\)))?(?P<rest>(?: \w+)*)")
RESULTS = re.compile(r"results: (?P<name>[\w.-]+)(?P<kept>, kept)?")
TABLE = re.compile(r"<!-- targets of (?P<name>[\w.-]+) -->")
END = "<!-- end -->"
PARTS = {"median": "median", "least": "min", "most": "max"}


class BadMarkerError(Exception):
    """A marker that cannot be followed; says what it lacks."""


@dataclass(frozen=True)
class Marker:
    scenario: str
    case: str
    over: str
    under: tuple[str, ...]      # several: the better of them in each round
    figure: str | None = None
    digits: int | None = None
    part: str | None = None     # of PARTS; None: median (least–most)

    @property
    def systems(self) -> tuple[str, ...]:
        return self.over, *self.under

    def key(self, system: str) -> figures.Key:
        return self.scenario, self.case, system


def parse(words: str) -> Marker:
    found = MARKER.fullmatch(words)
    if not found:
        raise BadMarkerError("not a marker")
    under = re.findall(r"\w+", (found["under"] or "").removeprefix("better"))
    rest: dict[str, Any] = {}
    for word in found["rest"].split():
        if word.isdigit():
            rest["digits"] = int(word)
        elif word in PARTS:
            rest["part"] = word
        else:
            rest["figure"] = word
    return Marker(found["scenario"], found["case"], found["over"],
                  tuple(under), **rest)


class Results:
    """Every stored run, by the name of its folder."""

    def __init__(self, folder: Path) -> None:
        self.raws = {path.parent.name: json.loads(path.read_text("utf-8"))
                     for path in sorted(folder.glob("*/raw.json"))}

    def run(self, name: str | None) -> dict[str, Any]:
        if name is None:
            raise BadMarkerError("no <!-- results: NAME --> before it")
        if name not in self.raws:
            raise BadMarkerError(f"no run results/{name}/raw.json")
        return self.raws[name]

    def newer(self, name: str, marker: Marker) -> str | None:
        """The newest run with that case and those systems, if not `name`."""
        having = [one for one, raw in self.raws.items()
                  if one == name or not lacking(raw, marker)]
        newest = max(having, key=lambda one: (self.raws[one]["when"], one))
        return None if newest == name else newest


def lacking(raw: dict[str, Any], marker: Marker) -> str | None:
    """What of the marker's names the run does not have."""
    keys = set(figures.keys_of(raw["runs"]))
    if marker.scenario not in {key[0] for key in keys}:
        return f"scenario {marker.scenario}"
    if (marker.scenario, marker.case) not in {key[:2] for key in keys}:
        return f"case {marker.scenario}/{marker.case}"
    for system in marker.systems:
        if marker.key(system) not in keys:
            return f"system {system} in {marker.scenario}/{marker.case}"
    return None


def first_shown(raw: dict[str, Any], marker: Marker) -> str:
    return next(case["show"][0] for scenario in raw["scenarios"]
                for case in scenario["cases"]
                if (scenario["name"], case["name"]) == marker.key("")[:2])


def measured(runs: list[figures.Run], marker: Marker,
             figure: str) -> dict[str, float] | None:
    over = figures.by_round(runs, marker.key(marker.over), figure)
    if not marker.under:
        return figures.spread(list(over.values()))
    return figures.divided(over, figures.better(
        runs, [marker.key(one) for one in marker.under], figure))


def text_of(raw: dict[str, Any], marker: Marker) -> str:
    """What a document has to say for this marker."""
    missing = lacking(raw, marker)
    if missing:
        raise BadMarkerError(f"the run has no {missing}")
    figure = marker.figure or first_shown(raw, marker)
    value = figure in report.COLUMNS and measured(raw["runs"], marker, figure)
    if not value:
        raise BadMarkerError(f"the run has no figure {figure} there")
    if marker.part:
        value = {"median": value[PARTS[marker.part]], "rounds": 1}
    _, factor, digits = (None, 1, 2) if marker.under \
        else report.COLUMNS[figure]
    return report.number(value, factor, digits if marker.digits is None
                         else marker.digits)


@dataclass
class Reader:
    """Goes through one document; `wrong` has what it found, by line."""

    results: Results
    name: str | None = None
    kept: bool = False
    wrong: list[tuple[int, str]] = field(default_factory=list)
    line: int = 0

    def follow(self, found: re.Match[str]) -> str:
        """The comment with the figure before it, as it should be."""
        text, words = found["text"], found["words"]
        run = RESULTS.fullmatch(words)
        try:
            if run:
                self.name, self.kept = run["name"], bool(run["kept"])
                self.results.run(self.name)
            elif text or MARKER.fullmatch(words):
                return self.figure(text, words) + f"<!-- {words} -->"
        except BadMarkerError as error:
            self.wrong.append((self.line, f"{error}: <!-- {words} -->"))
        return found[0]

    def figure(self, text: str, words: str) -> str:
        marker = parse(words)
        if not text:
            raise BadMarkerError("no figure directly before it")
        wanted = text_of(self.results.run(self.name), marker)
        newer = not self.kept and self.results.newer(self.name, marker)
        if newer:
            raise BadMarkerError(
                f"results/{newer} is newer than {self.name}; quote it, or "
                "take that folder away if it shall not be kept")
        if text != wanted:
            self.wrong.append((self.line, f"{text} is {wanted} in results/"
                               f"{self.name}: <!-- {words} -->"))
        return wanted

    def table(self, name: str, old: list[str]) -> list[str]:
        try:
            new = report.targets_table(self.results.run(name), measured=True)
        except BadMarkerError as error:
            self.wrong.append((self.line, f"{error}: targets of {name}"))
            return old
        if new != old:
            self.wrong.append((self.line, "the table is not what results/"
                               f"{name} gives: targets of {name}"))
        return new


def rewritten(text: str, reader: Reader) -> str:
    lines, code = [], False
    rest = text.split("\n")
    while rest:
        line = rest.pop(0)
        reader.line = text.count("\n") - len(rest) + 1
        code ^= line.lstrip().startswith("```")
        lines.append(line if code else COMMENT.sub(reader.follow, line))
        table = None if code else TABLE.fullmatch(line)
        if table and END in rest:
            end = rest.index(END)
            lines += reader.table(table["name"], rest[:end])
            rest = rest[end:]
        elif table:
            reader.wrong.append((reader.line, f"no {END}: {line}"))
    return "\n".join(lines)


def documents() -> list[Path]:
    return [TOP / "README.md", *sorted((TOP / "docs").rglob("*.md"))]


def visit(document: Path, results: Results, check: bool) -> list[str]:
    reader = Reader(results)
    old = document.read_text("utf-8")
    new = rewritten(old, reader)
    if not check and new != old:
        document.write_text(new, "utf-8")
        reader = Reader(results)
        rewritten(new, reader)          # what is left is what failed
    shown = document.relative_to(TOP) if document.is_relative_to(TOP) \
        else document
    return [f"{shown}:{line}: {what}" for line, what in reader.wrong]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true",
                        help="change nothing; exit 1 if a figure is wrong")
    parser.add_argument("--results", type=Path, default=TOP / "results")
    parser.add_argument("document", type=Path, nargs="*")
    args = parser.parse_args()
    results = Results(args.results)
    wrong = [line for one in args.document or documents()
             for line in visit(one.resolve(), results, args.check)]
    print("".join(f"{line}\n" for line in wrong), end="")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
