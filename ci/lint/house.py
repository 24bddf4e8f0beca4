#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""The size of the plugin, and the few files that open its doors.

    ci/lint/house.py

Prints each figure, and each file that takes a slot, enters the guard or
announces a change without being named here.  Fails for such a file, for a
figure that has to be 0, and for one that is over its limit here: code lines of
a room, and members of what lives long.  Comments and blank lines do not count.
A commit that raises a limit says in its body what it makes unnecessary.
"""

import argparse
import re
import sys
from pathlib import Path

PLUGIN = Path(__file__).resolve().parents[2] / "FSAL_CEPH_ASYNC"

LONGEST = 500  # lines of a file
TINY = 80      # lines below which a source file is small

# What there is none of.  Figures without a limit are a report: whoever makes
# one larger sees it here.
NONE = {"files that name guarded_",
        "files that ask for a version, outside of ganesha/",
        "comment lines over 80 columns"}

# Code lines of a room: the measured ones and a function more.
ROOMS = {
    "base": 1130, "cache": 1730, "config": 1720, "ganesha": 370, "io": 5300,
    "metrics": 1340, "mount": 3590, "object": 6685, "root": 1575,
}

# Members of the structs that say where something is in its life.
STATES = {
    "mount, client, keeper, session, guard": (53, (
        "mount/mount.h:casync_mount", "mount/client.h:casync_client",
        "mount/keeper.h:casync_keeper", "mount/session.h:casync_session",
        "mount/guard.h:casync_guard")),
    "file queue": (13, ("io/queue.h:casync_queue",)),
    "object": (30, ("object/object.h:casync_object",)),
    "op": (43, ("io/op.h:casync_op",)),
}

# What a request passes once, in call.c: a pattern of the calls, and the files
# that may make them.  A file that defines such a function may call it too.
EVERYWHERE = {
    "object/call.c": "the one door of all requests",
    "mount/keeper.c": "looks at the session when no request does, and "
                         "replaces the client",
}
DOORS = {
    "limit of waiters": (
        r"casync_(?:budget|room)_(?:enter|try)\w*", EVERYWHERE),
    "guard": (r"casync_guard_enter\w*", EVERYWHERE | {
        "mount/journal.c": "the journal's thread, for no request",
        "mount/mount.c": "takes the sessions of a node over, for no request",
        "mount/upcalls.c": "the upcalls' job, for no request",
    }),
    "announcement": (r"casync_cache_begin_write", EVERYWHERE),
}

COMMENT = re.compile(r"/\*.*?\*/|(?<!:)//[^\n]*", re.S)
VERSION = re.compile(r"^\s*#\s*(?:if|elif)\b.*VERSION", re.M)
MEMBER = re.compile(r"[^;{}]*(\{[^{}]*\})?[^;{}]*;")
INCLUDE = re.compile(r'^#include "(\w+\.h)"', re.M)


def read():
    """{path below the plugin: text}"""
    return {str(path.relative_to(PLUGIN)): path.read_text(encoding="utf-8")
            for path in sorted(PLUGIN.rglob("*.[ch]"))}


def figures(files):
    """{figure: (number, files that it counts)}"""
    ours = {Path(file).name for file in files}
    lines = {file: text.count("\n") for file, text in files.items()}
    sources = [file for file in files if file.endswith(".c")]
    includes = {file: INCLUDE.findall(text) for file, text in files.items()}
    lists = {
        f"files over {LONGEST} lines":
            [file for file in files if lines[file] > LONGEST],
        f".c files under {TINY} lines":
            [file for file in sources if lines[file] < TINY],
        "files that include export.h":
            [file for file in files if "export.h" in includes[file]],
        "headers of ours that export.h includes":
            [name for name in includes["export.h"] if name in ours],
        "files that name guarded_":
            [file for file in files if "guarded_" in files[file]],
        "files that ask for a version, outside of ganesha/":
            [file for file in files if VERSION.search(files[file])
             and not file.startswith("ganesha/")],
    }
    found = {name: (len(members), members) for name, members in lists.items()}
    wide = list(wide_comments(files))
    found["comment lines over 80 columns"] = len(wide), wide
    found["code lines"] = sum(code_lines(text) for text in files.values()), []
    found[".c files"] = len(sources), []
    found[".h files"] = len(files) - len(sources), []
    found["lines, without ganesha/"] = sum(
        count for file, count in lines.items()
        if not file.startswith("ganesha/")), []
    return found


def room_of(file):
    return file.split("/")[0] if "/" in file else "root"


def code_lines(text):
    """Without comments, and without lines that are blank then."""
    return sum(1 for line in COMMENT.sub("", text).splitlines()
               if line.strip())


def rooms(files):
    """{room: code lines}"""
    found = dict.fromkeys(ROOMS, 0)
    for file, text in files.items():
        found[room_of(file)] += code_lines(text)
    return found


def members(text, struct):
    """How many a struct has; a struct within it is one."""
    body = re.search(rf"^struct {struct} \{{\n(.*?)^\}}",
                     COMMENT.sub("", text), re.M | re.S).group(1)
    return sum(1 + re.sub(r"\{.*?\}|\(.*?\)|\[.*?\]", "", member.group(0),
                          flags=re.S).count(",")
               for member in MEMBER.finditer(body))


def wide_comments(files):
    """file:line of each line with a comment that is wider than 80."""
    for file, text in files.items():
        lines = text.splitlines()
        for found in COMMENT.finditer(text):
            first = text.count("\n", 0, found.start())
            for number in range(first, first + found.group().count("\n") + 1):
                if len(lines[number].expandtabs(8)) > 80:
                    yield f"{file}:{number + 1}"


def bounded(files):
    """Of each figure that has a limit: its name, itself, the limit."""
    for room, number in rooms(files).items():
        yield f"code lines of {room}", number, ROOMS[room]
    for name, (most, structs) in STATES.items():
        number = sum(members(files[file], struct) for file, struct in
                     (place.split(":") for place in structs))
        yield f"members of {name}", number, most


def strangers(files, pattern, allowed):
    """file: what it calls, of those that are not allowed to."""
    call = re.compile(rf"\b(?:{pattern})(?=\()")
    defined = re.compile(rf"^[^\s#*/].*\b(?:{pattern})\([^;{{]*\)\n{{", re.M)
    own = {Path(file).stem for file, text in files.items()
           if defined.search(text)}
    for file, text in files.items():
        called = set(call.findall(COMMENT.sub("", text)))
        if called and file not in allowed and Path(file).stem not in own:
            yield f"{file}: {' '.join(sorted(called))}"


def main():
    """Print the figures, and fail when one is over its limit."""
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    files = read()
    over = set()
    for name, (number, members) in figures(files).items():
        print(f"{name}: {number}")
        if number and name in NONE:
            over.add(name)
            print(f"    {' '.join(members)}")
    for name, number, most in bounded(files):
        print(f"{name}: {number} of {most}")
        if number > most:
            over.add(name)
    for name, (pattern, allowed) in DOORS.items():
        found = list(strangers(files, pattern, allowed))
        print(f"{name}: {len(found)} other files")
        if found:
            over.add(name)
            print("    " + "\n    ".join(found))
    sys.exit(bool(over))


if __name__ == "__main__":
    main()
