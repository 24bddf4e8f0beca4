#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""How many files one parameter passes on the way of an operation: its trip.

    ci/lint/trip.py BUILD [--most TRIP=FILES,...] [--list]

A trip begins in the function of an operation.  It goes on in each function of
ours that is called and takes what travels: a pointer to one of the trip's
structs.  A call that passes a member's own struct (&obj->size) does not carry
it on.  A function that is called by pointer (a worker's, a callback) is not
followed, and neither are those in ENDS.

The files of a trip are what somebody reads to follow it:
 - files that define a function of the trip,
 - headers that declare these functions,
 - headers that define the trip's structs, and those of ours that they include.
Headers of Ganesha and of Ceph do not count.  BUILD has the compiler's flags.
"""

import argparse
import concurrent.futures
import os
import shlex
import sys
from pathlib import Path

from clang.cindex import CursorKind, Index, TypeKind

from compile_db import entries

PLUGIN = Path(__file__).resolve().parents[2] / "FSAL_CEPH_ASYNC"

# Trip: where it begins, and the structs that travel.
OBJECT = {"casync_object", "fsal_obj_handle"}
TRIPS = {
    "setattr": ("casync_setattr2", OBJECT),
    "open": ("casync_open2", OBJECT),
    "op": ("casync_write2", {"casync_op"}),
}

# An op's trip is its way to libcephfs: these answer it instead.
ENDS = {"casync_op_answer_early", "casync_op_answer", "casync_op_end_unblocked",
        "casync_finish", "casync_repair_whole"}


def ours(file):
    """The path below the plugin; "" for another file."""
    path = Path(file.name).resolve() if file else Path("/")
    return str(path.relative_to(PLUGIN)) if PLUGIN in path.parents else ""


def takes(function):
    """Names of the structs that a function gets pointers to."""
    kinds = [kind.get_canonical() for kind in
             function.type.get_canonical().argument_types()]
    return {kind.get_pointee().get_declaration().spelling for kind in kinds
            if kind.kind == TypeKind.POINTER}


def calls(function):
    """{id: (file that declares it, structs)} of each function it calls."""
    called = [cursor.referenced for cursor in function.walk_preorder()
              if cursor.kind == CursorKind.CALL_EXPR and cursor.referenced]
    return {other.get_usr(): (ours(other.canonical.location.file),
                              takes(other))
            for other in called if other.kind == CursorKind.FUNCTION_DECL}


def scan(path, command):
    """Functions, the files of structs, and the includes of a source file."""
    words = shlex.split(command)
    first = next(at for at, word in enumerate(words) if word.startswith("-"))
    unit = Index.create().parse(str(path), words[first:words.index("-o")])
    functions, structs = {}, {}
    for cursor in unit.cursor.get_children():
        file = ours(cursor.location.file)
        if file and cursor.is_definition():
            if cursor.kind == CursorKind.FUNCTION_DECL:
                functions[cursor.get_usr()] = (cursor.spelling, file,
                                               calls(cursor))
            elif cursor.kind == CursorKind.STRUCT_DECL:
                structs[cursor.spelling] = file
    return functions, structs, {(ours(edge.source), ours(edge.include))
                                for edge in unit.get_includes()}


def scan_all(build):
    """The same of all source files together that can be on a trip."""
    names = {struct for _, travels in TRIPS.values() for struct in travels}
    known = {path: entry["command"] for path, entry in entries(build).items()
             if PLUGIN in path.parents and
             any(f"struct {name} " in path.read_text() for name in names)}
    functions, structs, includes = {}, {}, set()
    with concurrent.futures.ProcessPoolExecutor(os.cpu_count()) as pool:
        for found in pool.map(scan, known, known.values()):
            functions |= found[0]
            structs |= found[1]
            includes |= found[2]
    return functions, structs, includes


def trip(start, travels, functions, structs, includes):
    """Files of a trip."""
    todo = [usr for usr, (name, _, _) in functions.items() if name == start]
    seen, files = set(), set()
    while todo:
        usr = todo.pop()
        if usr in seen or usr not in functions:
            continue
        seen.add(usr)
        name, file, called = functions[usr]
        files.add(file)
        for other, (declared, taken) in called.items():
            if declared and taken & travels and name not in ENDS:
                files.add(declared)
                todo.append(other)
    needed = {structs[name] for name in travels & structs.keys()}
    while more := {file for by, file in includes if by in needed} - needed:
        needed |= more
    return files | needed - {""} if files else files


def main():
    """Print each trip's length, and fail when one is too long."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", help="build folder of the plugin")
    parser.add_argument("--most", default="", metavar="TRIP=FILES,...",
                        help="most files that a trip may pass")
    parser.add_argument("--list", action="store_true",
                        help="print the files")
    args = parser.parse_args()
    most = dict(limit.split("=") for limit in args.most.split(",") if limit)
    known, failed = scan_all(args.build), False
    for name, (start, travels) in TRIPS.items():
        files = sorted(trip(start, travels, *known))
        print(f"{name}: {len(files)} files")
        if args.list:
            print("   ", "\n    ".join(files))
        failed |= not files or len(files) > int(most.get(name, len(files)))
    sys.exit(f"a trip is missing, or longer than {args.most}" if failed else 0)


if __name__ == "__main__":
    main()
