#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""What lcov counted, by folder and by file.

    ci/coverage/figures.py INFO [--floor LINES BRANCHES] [--unreached FILE]

Prints per cent of lines and branches.  Writes to FILE, for each source file,
the lines that were never reached and those with a branch that was never taken.
Fails when the whole has less than LINES % or BRANCHES %.
"""

import argparse
import collections
import pathlib
import sys


class Counts:
    """Of one file or of several: lines and branches, all and reached."""

    def __init__(self):
        self.lines = self.hit_lines = self.branches = self.hit_branches = 0
        self.missed_lines, self.missed_branches = [], []

    def add(self, other):
        """Count OTHER's, too."""
        self.lines += other.lines
        self.hit_lines += other.hit_lines
        self.branches += other.branches
        self.hit_branches += other.hit_branches

    def row(self, name):
        """One line of the table."""
        return (f"{name:40} {share(self.hit_lines, self.lines):5.1f} % of "
                f"{self.lines:5} lines, "
                f"{share(self.hit_branches, self.branches):5.1f} % of "
                f"{self.branches:5} branches")


def share(part, whole):
    """Per cent; nothing of nothing is all."""
    return 100 * part / whole if whole else 100.0


def read(path):
    """{source file: Counts} of a trace file of lcov."""
    files = {}
    for line in path.read_text().splitlines():
        kind, _, rest = line.partition(":")
        values = rest.split(",")
        if kind == "SF":
            name = rest[rest.rindex("FSAL_CEPH_ASYNC/"):]
            counts = files.setdefault(name, Counts())
        elif kind == "DA":
            counts.lines += 1
            counts.hit_lines += values[1] != "0"
            if values[1] == "0":
                counts.missed_lines.append(int(values[0]))
        elif kind == "BRDA":
            counts.branches += 1
            counts.hit_branches += values[3] not in "-0"
            if values[3] in "-0":
                counts.missed_branches.append(int(values[0]))
    return files


def ranges(numbers):
    """"3-5 9" for [3, 4, 5, 9]."""
    found = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return " ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in found)


def write_unreached(files, path):
    """List what no test reaches."""
    with open(path, "w", encoding="utf-8") as out:
        for name, counts in sorted(files.items()):
            half = set(counts.missed_branches) - set(counts.missed_lines)
            if counts.missed_lines or half:
                out.write(f"{counts.row(name)}\n"
                          f"    lines: {ranges(counts.missed_lines) or 'all'}"
                          f"\n    branches in: {ranges(half) or 'all'}\n")


def main():
    """Print the figures, compare them with the floor."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("info", type=pathlib.Path)
    parser.add_argument("--floor", nargs=2, type=float,
                        metavar=("LINES", "BRANCHES"))
    parser.add_argument("--unreached", metavar="FILE")
    args = parser.parse_args()

    files = read(args.info)
    folders, total = collections.defaultdict(Counts), Counts()
    for name, counts in files.items():
        folders[str(pathlib.PurePath(name).parent)].add(counts)
        total.add(counts)
    for name in sorted(folders):
        print(folders[name].row(name))
    print(total.row("all"))
    if args.unreached:
        write_unreached(files, args.unreached)
    got = (share(total.hit_lines, total.lines),
           share(total.hit_branches, total.branches))
    for what, have, least in zip(("lines", "branches"), got, args.floor or ()):
        if have < least:
            sys.exit(f"coverage: {have:.1f} % of the {what} are reached, "
                     f"at least {least:g} % must be")


if __name__ == "__main__":
    main()
