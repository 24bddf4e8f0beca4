#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Which small mistakes in the plugin do the unit tests notice?

    mutate.py [N] [--seed S] [--file PART] [--list]

Changes one line of the plugin at a time, N (40) times, builds the unit tests
that link its file, and runs them until one fails.  The same tree, N and seed
give the same changes, in turn from each folder of the plugin.  One takes 3 to
30 s.

    killed     a test failed, or came to no end
    survived   no test noticed
    same       equivalent.tsv says why the change makes no difference
    invalid    it does not compile, or compiles to the same object

Runs in the lab, in a copy of the tree (ci/job.sh mutate).  Prints a table; exit
status 1 if less than 90 % of those that could be noticed were killed.
"""
import argparse
import collections
import hashlib
import json
import random
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
TREE = Path("/build/mutants-tree")
BUILD = Path("/build/mutants")
PLUGIN = "FSAL_CEPH_ASYNC"
EQUIVALENT = Path(__file__).with_name("equivalent.tsv")
TEST_S = 60
# So many of a file's tests are built and run before the others.
NEAR = 6
# It repeats what other tests do, a million times.
LEFT_OUT = {"test_memory"}

# Of those that could be noticed.  Each night has others; the survivors are
# listed in any case.
LEAST = 0.9

# What only tells, declares or is checked by the compiler, or by a Debug build
# alone.
IGNORED = re.compile(
    r"^\s*(#|/?\*|//|Log[A-Z]|case |default:|goto |extern |enum |\"|\}|$)|"
    r"static_assert|CASYNC_CHECK\(|printf|__attribute__|\\$")


def _swap(old, new):
    def change(line):
        return line.replace(old, new, 1) if old in line else None
    return change


def _negate(line):
    """`if (X)` that ends on its line."""
    found = re.match(r"(\t+(?:\} else )?if )\((.*)\)( \{)?$", line)
    if not found or found[2].count("(") != found[2].count(")"):
        return None
    return f"{found[1]}(!({found[2]})){found[3] or ''}"


def _drop(line):
    """A call whose value nobody takes."""
    found = re.match(r"(\t+)(?:\(void\))?\w+\(.*\);$", line)
    if not found or line.count("(") != line.count(")") or "return" in line:
        return None
    return f"{found[1]};"


def _error(line):
    new = re.sub(r"ERR_FSAL_(?!NO_ERROR|INVAL)\w+", "ERR_FSAL_INVAL", line,
                 count=1)
    if new == line:
        new = re.sub(r"return -E(?!PERM)[A-Z]+;", "return -EPERM;", line)
    return None if new == line else new


OPERATORS = (
    _negate, _drop, _error,
    _swap(" && ", " || "), _swap(" || ", " && "),
    _swap(" == ", " != "), _swap(" != ", " == "),
    _swap(" < ", " <= "), _swap(" >= ", " > "), _swap(" > ", " >= "),
    _swap(" + 1", ""), _swap(" - 1", ""), _swap(" += ", " -= "),
    _swap("= true;", "= false;"), _swap("= false;", "= true;"),
    _swap("return true;", "return false;"),
    _swap("return false;", "return true;"),
    _swap("++;", "--;"), _swap("--;", "++;"))

Mutation = collections.namedtuple("Mutation", "file number old new")


def ninja(*words):
    return subprocess.run(["ninja", "-C", BUILD, *words], text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)


def configure():
    """A copy of the tree, built once."""
    shutil.copytree(SOURCE, TREE, dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns(".git", "build"))
    for words in (["cmake", "-S", TREE, "-B", BUILD, "-G", "Ninja",
                   "-DCMAKE_BUILD_TYPE=Debug"],
                  ["cmake", "--build", BUILD, "--target", "tests/unit/all"]):
        subprocess.run(words, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, check=True)


def inputs(names):
    """{name: what it is made of}, without what only has to be there before."""
    found, at, of_inputs = {}, None, False
    for line in ninja("-t", "query", *names).stdout.splitlines():
        word = line.strip()
        if not line.startswith(" "):
            at = found.setdefault(line.rstrip(":"), [])
        elif not line.startswith("   "):
            of_inputs = word.startswith("input")
        elif of_inputs and not word.startswith("||"):
            at.append(word.removeprefix("| "))
    return found


def tests_of_files():
    """{file of the plugin: tests that link it}, first those of its name, then
    those of its room."""
    programs = [program.relative_to(BUILD) for program in
                sorted(BUILD.glob("tests/unit/*/test_*"))
                if program.is_file() and program.name not in LEFT_OUT]
    made_of = inputs(map(str, programs))
    while more := {part for parts in made_of.values() for part in parts
                   if part.endswith((".o", ".a")) and part not in made_of}:
        made_of |= inputs(sorted(more))

    def sources(name):
        return {name} if name.endswith(".c") else \
            {source for part in made_of.get(name, ())
             for source in sources(part)}

    known = collections.defaultdict(list)
    for program in programs:
        for path in map(Path, sources(str(program))):
            if path.is_relative_to(TREE / PLUGIN):
                known[path.relative_to(TREE)].append(program)
    def nearness(file, program):
        return (f"{program.name}_".startswith(f"test_{file.stem}_"),
                program.parent.name == file.parent.name)

    return {str(file): [program.name for program in sorted(
        of_file, key=lambda program: nearness(file, program), reverse=True)]
        for file, of_file in known.items()}


def mutations(files):
    """All of these files, by room."""
    rooms = collections.defaultdict(list)
    for file in sorted(files):
        lines = (TREE / file).read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines):
            if IGNORED.search(line):
                continue
            rooms[str(Path(file).parent)].extend(
                Mutation(file, number, line, new) for change in OPERATORS
                if (new := change(line)) is not None)
    return rooms


def choose(rooms, count, seed):
    """COUNT of them, in turn from each room."""
    chance = random.Random(seed)
    for room in rooms.values():
        chance.shuffle(room)
    chosen = []
    while len(chosen) < count and any(rooms.values()):
        for room in rooms.values():
            if room and len(chosen) < count:
                chosen.append(room.pop())
    return chosen


def objects():
    """What is compiled of the plugin, by its content."""
    return {path: hashlib.sha1(path.read_bytes()).digest() for path in
            BUILD.glob(f"**/{PLUGIN}/**/*.o")}


def run_tests(tests):
    """Does one fail?"""
    return subprocess.run(
        ["ctest", "--test-dir", BUILD, "-R", f"^({'|'.join(tests)})$",
         "--stop-on-failure", "--timeout", str(TEST_S), "--parallel", "6",
         "--no-tests=error"], stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        check=False).returncode != 0


def equivalent():
    """{(file, old, new): reason}"""
    if not EQUIVALENT.exists():
        return {}
    rows = (line.split("\t") for line in
            EQUIVALENT.read_text(encoding="utf-8").splitlines()
            if line and not line.startswith("#"))
    return {(file, old, new): why for file, old, new, why in rows}


def tried(mutation, tests, before):
    """The word for the table."""
    path = TREE / mutation.file
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    lines[mutation.number] = mutation.new + "\n"
    try:
        path.write_text("".join(lines), encoding="utf-8")
        if ninja(*tests[:NEAR]).returncode != 0 or objects() == before:
            return "invalid"
        # A busy machine is not taken for a test that notices.
        if run_tests(tests[:NEAR]) and run_tests(tests[:NEAR]):
            return "killed"
        others = tests[NEAR:]
        if others and ninja(*others).returncode != 0:
            return "invalid"
        return "killed" if others and run_tests(others) and \
            run_tests(others) else "survived"
    finally:
        path.write_text(text, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("count", nargs="?", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--file", default="", help="only files with this in "
                        "their path")
    parser.add_argument("--list", action="store_true", help="run none")
    parser.add_argument("--json", type=Path, help="the table, too")
    args = parser.parse_args()
    configure()
    tests = tests_of_files()
    files = [file for file in tests if args.file in file]
    chosen = choose(mutations(files), args.count, args.seed)
    same = equivalent()
    ninja("tests/unit/all")
    before = objects()
    rows = []
    for mutation in chosen:
        key = (mutation.file, mutation.old.strip(), mutation.new.strip())
        began = time.monotonic()
        word = "same" if key in same else "-" if args.list else \
            tried(mutation, tests[mutation.file], before)
        rows.append((word, f"{mutation.file}:{mutation.number + 1}", *key[1:]))
        print(f"{word:9} {time.monotonic() - began:4.0f} s "
              f"{'  |  '.join(rows[-1][1:])}", flush=True)
    counts = collections.Counter(row[0] for row in rows)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    print(f"seed {args.seed}, {len(files)} files: {counts['invalid']} invalid, "
          f"{counts['same']} the same")
    print(f"mutations: {counts['killed']} passed, {counts['survived']} failed")
    sys.exit(counts["killed"] < LEAST * (counts["killed"] + counts["survived"]))


if __name__ == "__main__":
    main()
