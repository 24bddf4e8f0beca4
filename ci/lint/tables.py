#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""No cell of a table in Markdown has more than 40 words.

    ci/lint/tables.py FILE...
"""

import pathlib
import re
import sys

MOST = 40


def long_cells(path):
    """(line, words) of each cell that is too long."""
    code = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.lstrip().startswith("```"):
            code = not code
        if code or not line.lstrip().startswith("|"):
            continue
        for cell in re.split(r"(?<!\\)\|", line):
            if len(cell.split()) > MOST:
                yield number, len(cell.split())


def main():
    """Print the cells that are too long."""
    found = False
    for name in sys.argv[1:]:
        for number, words in long_cells(pathlib.Path(name)):
            print(f"{name}:{number}: a cell of {words} words, {MOST} allowed")
            found = True
    sys.exit(found)


if __name__ == "__main__":
    main()
