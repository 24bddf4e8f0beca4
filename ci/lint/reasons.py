#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Each suppression of a check has its reason beside it.

    ci/lint/reasons.py FILE...

In a source file the reason is in the same comment, or in a comment in the
line before.  In a list of suppressions a comment stands above the entry; it
may stand for several entries in a row.
"""

import pathlib
import re
import sys

# A suppression as its check wants it, with the names of what it suppresses.
SUPPRESSION = re.compile(
    r"NOLINT(?:NEXTLINE|BEGIN)?\b(?:\([^)]*\))?"
    r"|cppcheck-suppress(?:-begin|-file)?\s+(?:\[[^]]*\]|\w+)"
    r"|shellcheck disable=[\w,]+"
    r"|noqa\b(?::\s*[A-Z]+\d+(?:,\s*[A-Z]+\d+)*)?"
    r"|LCOV_EXCL_(?:BR_|EXCEPTION_)*(?:LINE|START)"
    r"|codespell:ignore\s+[\w,]+"
    r"|type:\s*ignore(?:\[[\w,-]+\])?")
PRAGMA = re.compile(r"#\s*pragma\s+(?:GCC|clang)\s+diagnostic\s+ignored")
COMMENT = re.compile(r"(?:^|\s)#|//|/\*|^\s*\*")
SOURCE = re.compile(r"\.(c|h|py|sh|cmake)$|/CMakeLists\.txt$|/[^./]+$")

# Lists: which lines of the file are entries.
LISTS = {
    ".clang-tidy": r"\s*- -",
    ".codespellrc": r"\s+\w",
    "cppcheck.suppress": r"\w",
    "rpmlint.toml": r'\s+"',
    "ruff.toml": r'\s+"[A-Z]+\d+"',
}


def words(text):
    """How many words TEXT has."""
    return len(re.findall(r"[A-Za-z]{2,}", text))


def says_why(lines, at):
    """True where the suppression in line AT has two words beside it."""
    comment = COMMENT.split(lines[at], maxsplit=1)[-1]
    if words(SUPPRESSION.sub("", comment)) > 1:
        return True
    above = lines[at - 1] if at else ""
    return bool(COMMENT.search(above)) and \
        words(SUPPRESSION.sub("", above)) > 1


def in_source(lines):
    """Lines with a suppression that has no reason."""
    for at, line in enumerate(lines):
        comment = COMMENT.search(line)
        found = comment and SUPPRESSION.search(line, comment.start())
        if found and not says_why(lines, at):
            yield at
        if PRAGMA.search(line) and not COMMENT.search(lines[at - 1]):
            yield at


def in_list(lines, entry):
    """Entries that no comment heads, nor an entry that one heads."""
    headed = False
    for at, line in enumerate(lines):
        if re.match(r"\s*#", line) or re.search(r"\s#\s+\w", line):
            headed = True
        elif not re.match(entry, line):
            headed = False
        if re.match(entry, line) and not headed:
            yield at


def without_reason(path):
    """Lines of a file that suppress something and do not say why."""
    lines = path.read_text(errors="replace").splitlines()
    entry = LISTS.get(path.name)
    if path.name.endswith("lintian-overrides"):
        entry = r"\w"
    if entry:
        return in_list(lines, entry)
    if SOURCE.search("/" + str(path)):
        return in_source(lines)
    return ()


def main():
    """Print the suppressions without a reason."""
    found = False
    for name in sys.argv[1:]:
        path = pathlib.Path(name)
        for at in without_reason(path):
            print(f"{name}:{at + 1}: a suppression without its reason")
            found = True
    sys.exit(found)


if __name__ == "__main__":
    main()
