#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Whether FSAL_CEPH_ASYNC/README.md is the map of the plugin.

    ci/lint/map.py BUILD

Every source file has one row, with a test that exists; a header has one where
no source file goes with it.  A room uses the rooms below it only, as the
object files in BUILD show, but for the pairs that the page names.
"""

import re
import sys
from pathlib import Path

import call_graph

TOP = Path(__file__).resolve().parents[2]
PLUGIN = TOP / "FSAL_CEPH_ASYNC"

# From below; rooms of one level may use each other.
LEVELS = {"ganesha": 0, "base": 0, "config": 1, "metrics": 2, "cache": 3,
          "mount": 3, "object": 4, "io": 4, "root": 5}


def room(file):
    """The folder of a file, "root" where it has none."""
    return file.split("/")[0] if "/" in file else "root"


def sources():
    """Files that need a row: sources, and headers without one."""
    files = {str(path.relative_to(PLUGIN)) for path in PLUGIN.rglob("*.[ch]")}
    # What these declare is defined by several files of their room.
    files -= {"obj_ops.h"}
    return {file for file in files
            if file.endswith(".c") or file[:-1] + "c" not in files}


def rows(text):
    """Of each table, each row's cells."""
    for line in text.splitlines():
        if line.startswith("| `"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def read(text):
    """{file: names of its tests}, and the pairs that may call up."""
    tests, pairs = {}, set()
    for cells in rows(text):
        file, names = cells[0].strip("`"), re.findall(r"`([^`]+)`", cells[-1])
        if re.fullmatch(r"`[\w/]+\.c`", cells[1]):
            pairs.add((file, cells[1].strip("`")))
        else:
            tests[file] = names
    return tests, pairs


def findings(build):
    """What is not as the page says, a line each."""
    tests, pairs = read((PLUGIN / "README.md").read_text(encoding="utf-8"))
    for file in sorted(sources() - tests.keys()):
        yield f"{file}: the map has no row for it"
    for file in sorted(tests.keys() - sources()):
        yield f"{file}: the map has a row for it, and there is none"
    for file, names in sorted(tests.items()):
        if not names:
            yield f"{file}: its row names no test"
        for name in names:
            folder = "unit/*" if name.endswith(".c") else "integration"
            if not list((TOP / "tests").glob(f"{folder}/{name}")):
                yield f"{file}: there is no tests/{folder}/{name}"
    up = {(file, other) for file, others in call_graph.graph(build).items()
          for other in others if LEVELS[room(other)] > LEVELS[room(file)]}
    for file, other in sorted(up - pairs):
        yield f"{file} uses {other}, in a room above it"
    for file, other in sorted(pairs - up):
        yield f"{file} does not use {other}: the map says it does"


def main():
    """Print the findings, and fail when there is one."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    found = list(findings(sys.argv[1]))
    print("\n".join(found) or f"{len(sources())} files, all on the map")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
