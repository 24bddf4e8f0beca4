#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""What documents and comments name exists in the tree.

    ci/lint/names.py FILE...

In Markdown: each `function()` and each source file in backticks.  In comments
of C: each casync_function(), and each pair of a file and a function, "file.c,
function()" or "function() in file.c".  A casync_ name counts only where the
plugin has it: a stand-in of the tests does not keep an old name alive.  Links
are for ci/lint/links.py.
"""

import functools
import re
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
SKIPPED = {".git", "build", "results", "corpus", "__pycache__"}

# Of Ganesha: files and functions that documents name.
UPSTREAM = {"config.h", "fsal_api.h", "state_lock"}

NAME = r"([A-Za-z_]\w*)\(\)"
SOURCE = r"([\w./-]*\w\.(?:c|h|py|sh))"
SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
# Of either order: the file and the function.
PAIR = re.compile(rf"\b{SOURCE},\s+{NAME}|\b{NAME}\s+in\s+{SOURCE}")


@functools.cache
def tree():
    """Every file of the tree, from its top."""
    return ["/" + str(path.relative_to(TOP)) for path in TOP.rglob("*")
            if path.is_file() and
            not SKIPPED & set(path.relative_to(TOP).parts) and
            not path.relative_to(TOP).parts[0].startswith("build")]


def files_of(name):
    """Files whose path ends in NAME, by whole parts."""
    return [TOP / file[1:] for file in tree()
            if file.endswith("/" + name.removeprefix("./"))]


def code(path):
    """A file's text; of C without its comments."""
    text = path.read_text(encoding="utf-8", errors="replace")
    return COMMENT.sub(" ", text) if path.suffix in (".c", ".h") else text


def called(paths):
    """The names that stand before a bracket."""
    return {name for path in paths
            for name in re.findall(r"(\w+)\s*\(", code(path))}


@functools.cache
def functions(files):
    """Names that the code has in those files whose path fits FILES."""
    return called(TOP / file[1:] for file in tree() if re.search(files, file))


def exists(name):
    """Whether code has the function."""
    if name.startswith("casync_"):
        return name in functions(
            r"^/FSAL_CEPH_ASYNC/.*\.[ch]$|/CMakeLists.txt$")
    return name in UPSTREAM or name in functions(r"\.(c|h|py|sh)$|/[^./]+$")


def in_pairs(text):
    """What is wrong with the pairs of a file and a function."""
    for match in PAIR.finditer(text):
        file, name = match[1] or match[4], match[2] or match[3]
        if file in UPSTREAM:
            continue
        paths = files_of(file)
        if not paths:
            yield match.start(), f"there is no file {file}"
        elif name not in called(paths):
            yield match.start(), f"{file} has no {name}()"


def in_spans(text):
    """Names in backticks that nothing has."""
    for span in SPAN.finditer(text):
        for match in re.finditer(rf"(?<![\w.:>-]){NAME}", span[1]):
            if not exists(match[1]):
                yield span.start(), f"no code has {match[1]}()"
        for word in re.split(r"\s+|::|[,;()\"']", span[1]):
            if re.fullmatch(SOURCE, word) and not word.startswith("/") and \
                    word not in UPSTREAM and not files_of(word):
                yield span.start(), f"there is no file {word}"


def in_comments(text):
    """(place, what) of what the comments of C name and nothing has."""
    for comment in COMMENT.finditer(text):
        # Without the star before each line.
        inside = re.sub(r"(?<=\n)[ \t]*\*", lambda m: " " * len(m[0]),
                        comment[0])
        for match in re.finditer(rf"\b{NAME}", inside):
            if match[1].startswith("casync_") and not exists(match[1]):
                yield comment.start() + match.start(), \
                    f"the plugin has no {match[1]}()"
        for place, what in in_pairs(inside):
            yield comment.start() + place, what


def findings(path):
    """(line, what) of each name that does not exist."""
    text = path.read_text(encoding="utf-8")
    found = []
    if path.suffix == ".md":
        found += in_spans(text)
        found += in_pairs(text.replace("`", " "))
    elif path.suffix in (".c", ".h"):
        found += in_comments(text)
    for place, what in sorted(found):
        yield text.count("\n", 0, place) + 1, what


def main():
    """Print the names that do not exist."""
    found = False
    for name in sys.argv[1:]:
        for line, what in findings(Path(name)):
            print(f"{name}:{line}: {what}")
            found = True
    sys.exit(found)


if __name__ == "__main__":
    main()
