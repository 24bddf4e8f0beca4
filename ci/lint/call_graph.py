#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Which source files of the plugin use each other, from its object files.

    ci/lint/call_graph.py BUILD [--most FILES] [--most-edges N] [--edges]

An object file names what it defines and what it needs (nm), so a call, an
address taken and a variable used all count, and inline functions count where
they are used.  Files that reach each other are a ring.  An edge is a file that
uses another one.  Prints the rings and the number of edges; fails when the
largest ring has more than FILES files, or if there are more than N edges.
"""

import argparse
import pathlib
import subprocess
import sys

PLUGIN = pathlib.Path(__file__).resolve().parents[2] / "FSAL_CEPH_ASYNC"


def symbols(obj):
    """Names that an object file defines, and those that it needs."""
    defined, needed = set(), set()
    out = subprocess.run(["nm", "-P", "-g", obj], check=True,
                         capture_output=True, text=True).stdout
    for line in out.splitlines():
        name, kind = line.split()[:2]
        (needed if kind in "Uwv" else defined).add(name)
    return defined, needed


def graph(build):
    """{file: {file it uses: {symbols}}}, files without their folder's root."""
    root = pathlib.Path(build) / "FSAL_CEPH_ASYNC/CMakeFiles/casync_objects.dir"
    sources = {str(path.relative_to(PLUGIN)) for path in PLUGIN.rglob("*.c")}
    tables = {file: symbols(root / f"{file}.o") for file in sorted(sources)
              if (root / f"{file}.o").exists()}
    if not tables:
        sys.exit(f"no object file below {root}: build the plugin first")
    owner = {name: file for file, (defined, _) in tables.items()
             for name in defined}
    uses = {file: {} for file in tables}
    for file, (_, needed) in tables.items():
        for name in needed & owner.keys():
            uses[file].setdefault(owner[name], set()).add(name)
    return uses


def rings(uses):
    """Sets of files that reach each other, the largest first (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(file):
        index[file] = low[file] = len(index)
        stack.append(file)
        for other in uses[file]:
            if other not in index:
                visit(other)
                low[file] = min(low[file], low[other])
            elif other in stack:
                low[file] = min(low[file], index[other])
        if low[file] == index[file]:
            ring = set()
            while file not in ring:
                ring.add(stack.pop())
            if len(ring) > 1:
                found.append(ring)

    for file in uses:
        if file not in index:
            visit(file)
    return sorted(found, key=len, reverse=True)


def main():
    """Print the rings and the edges, and fail when a ring is too large."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", help="build folder of the plugin")
    parser.add_argument("--most", type=int, metavar="FILES",
                        help="most files that a ring may have")
    parser.add_argument("--most-edges", type=int, metavar="N",
                        help="most pairs of which one uses the other")
    parser.add_argument("--edges", action="store_true",
                        help="print what closes each ring")
    args = parser.parse_args()
    uses = graph(args.build)
    found = rings(uses)
    edges = sum(len(others) for others in uses.values())
    print(f"{len(uses)} source files, {edges} edges, {len(found)} rings")
    for ring in found:
        print(f"a ring of {len(ring)}: {' '.join(sorted(ring))}")
        if not args.edges:
            continue
        for file in sorted(ring):
            for other in sorted(ring & uses[file].keys()):
                print(f"  {file} -> {other}: "
                      f"{' '.join(sorted(uses[file][other]))}")
    largest = len(found[0]) if found else 0
    if args.most is not None and largest > args.most:
        sys.exit(f"the largest ring has {largest} files, {args.most} allowed")
    if args.most_edges is not None and edges > args.most_edges:
        sys.exit(f"{edges} edges, {args.most_edges} allowed")


if __name__ == "__main__":
    main()
