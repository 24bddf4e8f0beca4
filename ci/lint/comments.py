#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Sentences in comments of C that have no subject of their own.

    ci/lint/comments.py FILE...

A sentence that begins with Who, Whoever or What asks a question.  A comment
before a declaration does not begin with "The same": it is read alone, where
that is not in sight.
"""

import re
import sys
from pathlib import Path

COMMENT = re.compile(r"/\*.*?\*/|(?://[^\n]*\n[ \t]*)+", re.S)
# Of a comment: its stars, tags, and the numbers and dashes of lists.
MARK = re.compile(r"^[ \t]*(?:/\*+<?|\*/|\*|//)?[ \t]*(?:-[ \t]|\d+\.[ \t])?",
                  re.M)
TAG = re.compile(r"@(?:param(?:\[[\w,]+\])?[ \t]+\w+|file[ \t]+\S+|\w+)")
SENTENCE = re.compile(r"\S.*?(?:[.?!:](?=\s|$)|$)", re.S)
HEADLESS = re.compile(r"(?:Who|Whoever|What)\b(?!.*\?$)", re.S)


def sentences(comment):
    """(place, sentence) of each in a comment."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match[0])

    text = MARK.sub(blank, comment.removesuffix("*/"))
    # A tag begins a paragraph.
    text = TAG.sub(lambda m: "\n\n" + " " * (len(m[0]) - 2), text)
    for paragraph in re.finditer(r"(?:[^\n]*\S[^\n]*(?:\n|$))+", text):
        for match in SENTENCE.finditer(paragraph[0]):
            yield paragraph.start() + match.start(), match[0].strip()


def findings(text):
    """(place, what is wrong) of each comment in a file."""
    for comment in COMMENT.finditer(text):
        said = list(sentences(comment[0]))
        for place, sentence in said:
            if HEADLESS.match(sentence):
                yield comment.start() + place, f"has no subject: {sentence}"
        if comment[0].startswith("/**") and said and \
                said[0][1].startswith("The same"):
            yield comment.start(), f"cannot be read alone: {said[0][1]}"


def main():
    """Print the findings."""
    found = False
    for name in sys.argv[1:]:
        text = Path(name).read_text(encoding="utf-8")
        for place, what in findings(text):
            line = text.count("\n", 0, place) + 1
            print(f"{name}:{line}: {' '.join(what.split())}")
            found = True
    sys.exit(found)


if __name__ == "__main__":
    main()
