#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Figures in documents are those of results/*/raw.json.

    python3 tests/bench/quote.py [--check]

Each line of docs/figures.tsv is a figure: document, place, figure, query.
Writes what the newest run that can answer has into documents and that file;
with --check it says what differs, and changes nothing.  tests/bench/README.md
has the queries.
"""
from __future__ import annotations

import argparse
import itertools
import json
import re
import sys
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from peers import figures, report

TOP = Path(__file__).resolve().parents[2]
TABLE = "docs/figures.tsv"
QUERY = re.compile(
    r"(?P<scenario>[\w.-]+)/(?P<case>[\w.-]+) (?P<over>\w+)"
    r"(?:/(?P<under>\w+))?(?P<rest>(?: \w+)*)")
ABOUT = re.compile(r"(?P<scenario>[\w.-]+) (?P<what>folder|versions)")
PARTS = {"median": "median", "least": "min", "most": "max"}


class BadEntryError(Exception):
    """An entry that cannot be followed; says what it lacks."""


@dataclass
class Entry:
    document: str
    place: str              # text that one line of the document has
    figure: str
    query: str


class Results:
    """Every stored run, the newest first."""

    def __init__(self, folder: Path) -> None:
        self.raws = []
        for path in folder.glob("*/raw.json"):
            raw = json.loads(path.read_text("utf-8"))
            raw.update(folder=path.parent.name,
                       keys=set(figures.keys_of(raw["runs"])))
            self.raws.append(raw)
        self.raws.sort(key=lambda raw: (raw["when"], raw["folder"]),
                       reverse=True)

    def text(self, query: str) -> str:
        """What a document has to say, by the newest run that knows."""
        why = "there is no run in results/"
        for raw in self.raws:
            try:
                return self._text(raw, query)
            except BadEntryError as error:
                why = str(error)
        raise BadEntryError(why)

    @staticmethod
    def _text(raw: dict[str, Any], query: str) -> str:
        about, found = ABOUT.fullmatch(query), QUERY.fullmatch(query)
        if about and about["scenario"] in {key[0] for key in raw["keys"]}:
            return str(raw[about["what"]])
        if not found:
            raise BadEntryError(f"the run has no scenario {about['scenario']}"
                                if about else "not a query")
        return measured(raw, found)


def measured(raw: dict[str, Any], query: re.Match[str]) -> str:
    case = query["scenario"], query["case"]
    under = query["under"]
    keys = [(*case, system) for system in (query["over"], under) if system]
    for length, what in (1, "scenario"), (2, "case"), (3, "system"):
        known = {key[:length] for key in raw["keys"]}
        for key in keys:
            if key[:length] not in known:
                raise BadEntryError(
                    f"the run has no {what} {'/'.join(key[:length])}")
    words = query["rest"].split()
    part = next((word for word in words if word in PARTS), None)
    figure = next((word for word in words
                   if word not in PARTS and not word.isdigit()),
                  None) or first_shown(raw, case)
    if figure not in report.COLUMNS:
        raise BadEntryError(f"there is no figure {figure}")
    value = figures.ratio(raw["runs"], keys[0], keys[1], figure) if under \
        else figures.of(raw["runs"], keys[0], figure)
    if not value:
        raise BadEntryError(f"the run has no figure {figure} there")
    if part:
        value = {"median": value[PARTS[part]], "rounds": 1}
    _, factor, digits = (None, 1, 2) if under else report.COLUMNS[figure]
    return report.number(value, factor, next(
        (int(word) for word in words if word.isdigit()), digits))


def first_shown(raw: dict[str, Any], names: tuple[str, str]) -> str:
    return next(case["show"][0] for scenario in raw["scenarios"]
                for case in scenario["cases"]
                if (scenario["name"], case["name"]) == names)


def find(lines: list[str], group: list[Entry]) -> tuple[int, list[Any]]:
    """The line of a place, and where in it its figures are."""
    place = group[0].place
    having = [number for number, line in enumerate(lines)
              for _ in range(line.count(place))]
    if len(having) != 1:
        raise BadEntryError(f"{len(having)} times there: {place}")
    texts = [entry.figure for entry in group]
    known = "|".join(map(re.escape, sorted(texts, key=len, reverse=True)))
    found = list(re.finditer(
        rf"(?<![\w.,–])(?:{known})(?!\w|[.,–-]\d| \(\d[\d.]*–)",
        lines[having[0]].replace(place, "\0" * len(place))))
    if [match[0] for match in found] != texts:
        raise BadEntryError(f"has not just {', '.join(texts)}: {place}")
    return having[0], found


def follow(group: list[Entry], lines: list[str], results: Results,
           check: bool) -> list[str]:
    """Sets one line and its entries right, or says what is wrong."""
    document, wrong = group[0].document, []
    try:
        number, found = find(lines, group)
    except BadEntryError as error:
        return [f"{document}: {error}"]
    for entry, match in reversed(list(zip(group, found, strict=True))):
        try:
            wanted = results.text(entry.query)
            if check and entry.figure != wanted:
                raise BadEntryError(f"{entry.figure} is {wanted}")
            line = lines[number]
            lines[number] = line[:match.start()] + wanted + line[match.end():]
            entry.figure = wanted
        except BadEntryError as error:
            wrong.insert(0, f"{document}:{number + 1}: {error}: "
                            f"{entry.query}")
    return wrong


def entries(table: list[str]) -> dict[int, Entry]:
    """By the number of its line."""
    return {number: Entry(*line.split("\t"))
            for number, line in enumerate(table)
            if line and not line.startswith("#")}


def visit(top: Path, check: bool) -> list[str]:
    """What is wrong; without `check`, what could not be set right."""
    results = Results(top / "results")
    table = (top / TABLE).read_text("utf-8").split("\n")
    known, wrong = entries(table), []
    of_lines = itertools.groupby(
        sorted(known.values(), key=lambda one: (one.document, one.place)),
        key=lambda one: (one.document, one.place))
    texts = {one.document: (top / one.document).read_text("utf-8").split("\n")
             for one in known.values()}
    for (document, _), group in of_lines:
        wrong += follow(list(group), texts[document], results, check)
    if check:
        return wrong
    for number, entry in known.items():
        table[number] = "\t".join(astuple(entry))
    for name, lines in [*texts.items(), (TABLE, table)]:
        (top / name).write_text("\n".join(lines), "utf-8")
    return visit(top, check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true",
                        help="change nothing; exit 1 if a figure is wrong")
    args = parser.parse_args()
    wrong = visit(TOP, args.check)
    print("".join(f"{line}\n" for line in wrong), end="")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
