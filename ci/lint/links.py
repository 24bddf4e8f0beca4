#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""What links name exists: the file, and the heading.

    ci/lint/links.py FILE...

In Markdown: each relative link and each #anchor.  In every file: each page of
docs/ that is named with the folder, but not in CHANGELOG.md, which is history.
"""

import functools
import re
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^ *(```+|~~~+).*?^ *\1", re.M | re.S)
SPAN = re.compile(r"(?<!`)(`+)(?!`)[^\n]*?\1")
LINK = re.compile(r"(?:\]\(|^ *\[[^]]+\]:\s)<?(?![\w+.-]+:)([^()\s<>]+)",
                  re.M)
PAGE = re.compile(r"(?<![\w./-])docs/[\w-]+\.md(?:#[\w-]+)?")
HEADING = re.compile(r"^ {0,3}#{1,6}\s+(.*?)\s*#*$", re.M)


def blank(pattern, text):
    """The text with blanks where the pattern is, each line in its place."""
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


@functools.cache
def anchors(path):
    """The anchors of a page, as GitHub makes them."""
    text = blank(FENCE, path.read_text("utf-8")) if path.is_file() else ""
    found = set(re.findall(r"<[^>]*\b(?:id|name)=\"([^\"]+)\"", text))
    for heading in HEADING.findall(text):
        shown = re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", shown).replace(" ", "-")
        same = (f"{slug}-{n}" if n else slug for n in range(100))
        found.add(next(one for one in same if one not in found))
    return found


def wrong(file, anchor, page):
    """What is wrong with a link to a file, or within the page."""
    if file and not Path(file).exists():
        return "there is no such file"
    if anchor and anchor not in anchors(Path(file or page).resolve()):
        return "there is no such heading"
    return None


def findings(path):
    """(line, what) of each link that leads nowhere."""
    text = path.read_text("utf-8", "replace")
    links = [] if path.name == "CHANGELOG.md" else [
        (m.start(), m[0], TOP) for m in PAGE.finditer(text)]
    if path.suffix == ".md":
        links += [(m.start(), m[1], path.parent) for m in
                  LINK.finditer(blank(SPAN, blank(FENCE, text)))]
    for start, target, folder in links:
        file, _, anchor = target.partition("#")
        what = wrong(file and folder / file, anchor, path)
        if what:
            yield text.count("\n", 0, start) + 1, f"{target}: {what}"


if __name__ == "__main__":
    lines = {f"{name}:{line}: {what}" for name in sys.argv[1:]
             for line, what in findings(Path(name))}
    sys.exit("\n".join(sorted(lines)) or 0)
