#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Does a plugin built for one Ganesha fit another?  By two tables of table.py.

    ci/abi/compare.py BUILT OTHER

Prints what has moved or changed.  Exit status 0 when nothing has, else 1.
"""

import sys
from pathlib import Path


def read(text):
    """{(kind, name): {(where, what)}}"""
    rows = {}
    for line in text.splitlines():
        kind, name, where, what = line.split("\t")
        rows.setdefault((kind, name), set()).add((where, what))
    return rows


def offset(bits):
    """An offset in bits, as people say it."""
    bits = int(bits)
    return f"byte {bits // 8}" + (f" bit {bits % 8}" if bits % 8 else "")


def change(built, other):
    """What differs between the values of one name."""
    if len(built) != 1 or len(other) != 1:
        return f"was {sorted(built)}, is {sorted(other)}"
    (was_at, was), (is_at, now) = *built, *other
    said = []
    if was_at != is_at:
        said.append(f"was at {offset(was_at)}, is at {offset(is_at)}")
    if was != now:
        said.append(f"was {was}, is {now}")
    return "; ".join(said)


def differences(built, other):
    """A line for each name that is not the same in both."""
    lines = []
    for key in sorted(built.keys() | other.keys()):
        kind, name = key
        if kind == "error" and key in other:
            why = ", ".join(sorted(what for _, what in other[key]))
            lines.append(f"does not compile: {name}: {why}")
        elif key not in other:
            lines.append(f"{kind} {name}: is missing")
        elif key not in built:
            lines.append(f"{kind} {name}: is used there alone")
        elif built[key] != other[key]:
            lines.append(f"{kind} {name}: {change(built[key], other[key])}")
    return lines


def main():
    """Print the differences."""
    if len(sys.argv) != 3:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        sys.exit(2)
    built, other = (read(Path(name).read_text()) for name in sys.argv[1:])
    if not built or not other:
        print("compare.py: a table is empty", file=sys.stderr)
        sys.exit(2)
    lines = differences(built, other)
    print("\n".join(lines + [f"{len(built)} names compared, "
                             f"{len(lines)} differ"]))
    sys.exit(1 if lines else 0)


if __name__ == "__main__":
    main()
