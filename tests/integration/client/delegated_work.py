# SPDX-License-Identifier: LGPL-3.0-or-later
"""git, make, SQLite and a maildir, on the mount and on a local file system:
delegated_work.py DIRECTORY LOCAL

Both get the same bytes, sizes, modes and link counts, or it ends with an error.
Prints JSON: seconds on either, delegations that were returned meanwhile, and
the tree with its times as the client sees it.
"""
import hashlib
import json
import os
import sqlite3
import stat
import subprocess
import sys
import time
from pathlib import Path

from registry import drop_caches, equal, in_child

DATE = "2026-01-02T03:04:05+0000"
GIT = {"GIT_AUTHOR_NAME": "A Tester", "GIT_AUTHOR_EMAIL": "a@localhost",
       "GIT_COMMITTER_NAME": "A Tester", "GIT_COMMITTER_EMAIL": "a@localhost",
       "GIT_AUTHOR_DATE": DATE, "GIT_COMMITTER_DATE": DATE,
       "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nonexistent"}
SOURCES, FILES, MESSAGES, ROWS, COUNTS = 6, 30, 40, 100, 15


def run(cwd, *command):
    done = subprocess.run(
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", check=False,
        env={**os.environ, **GIT, "TMPDIR": "/run", "LC_ALL": "C.UTF-8"})
    equal(done.returncode, 0, f"{' '.join(command)}: {done.stdout}")
    return done.stdout


def git(d):
    def texts(word):
        for n in range(FILES):
            folder = d / f"folder{n % 5}"
            folder.mkdir(exist_ok=True)
            (folder / f"{n}.txt").write_text(f"{word} {n}\n" * (n * 20 + 1))
    run(d, "git", "init", "-q", "-b", "main", "--template=")
    texts("first")
    run(d, "git", "add", ".")
    run(d, "git", "commit", "-q", "-m", "first")
    run(d, "git", "checkout", "-q", "-b", "side")
    texts("second, longer")
    run(d, "git", "mv", "folder1/1.txt", "moved.txt")
    run(d, "git", "commit", "-q", "-a", "-m", "second")
    run(d, "git", "checkout", "-q", "main")
    equal((d / "folder1/1.txt").read_text(), "first 1\n" * 21, "checkout")
    run(d, "git", "-c", "pack.threads=1", "gc", "-q", "--prune=now")
    run(d, "git", "fsck", "--full", "--strict")
    run(d, "git", "checkout", "-q", "side")
    equal(run(d, "git", "status", "--porcelain"), "", "git status")
    staged = run(d, "git", "ls-files", "-s")
    (d / ".git" / "index").unlink()         # it has inode numbers and times
    (d / "staged").write_text(staged)


def make(d):
    for n in range(SOURCES):
        (d / f"f{n}.c").write_text(
            f'#include "all.h"\nlong f{n}(long x) {{ return x + {n}; }}\n')
    (d / "all.h").write_text("".join(
        f"long f{n}(long);\n" for n in range(SOURCES)))
    calls = "".join(f"\tx = f{n}(x);\n" for n in range(SOURCES))
    (d / "main.c").write_text(
        '#include <stdio.h>\n#include "all.h"\n'
        f'int main(void)\n{{\n\tlong x = 0;\n{calls}'
        '\tprintf("%ld\\n", x);\n\treturn 0;\n}\n')
    objects = " ".join(f"f{n}.o" for n in range(SOURCES))
    (d / "Makefile").write_text(
        "sum: main.o libsum.a\n\tcc -o $@ main.o libsum.a\n"
        f"libsum.a: {objects}\n\tar rcsD $@ $^\n"
        "%.o: %.c all.h\n\tcc -O1 -c -o $@ $<\n")
    run(d, "make", "-s", "-j2")
    equal(run(d, "./sum"), f"{sum(range(SOURCES))}\n", "the program")
    equal("up to date" in run(d, "make", "sum"), True, "nothing to build")
    os.utime(d / "f1.c")
    said = run(d, "make")
    equal((said.count("cc -O1"), "ar rcsD" in said), (1, True),
          f"what is built after one source is touched: {said}")


def sqlite(d):
    def connect():
        return sqlite3.connect(d / "data.db", timeout=30,
                               isolation_level=None)

    def count():
        mine = connect()
        for _ in range(COUNTS):
            mine.execute("BEGIN IMMEDIATE")
            mine.execute("UPDATE counter SET n = n + 1")
            mine.execute("COMMIT")
        mine.close()
    db = connect()
    db.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, v BLOB)")
    db.execute("CREATE TABLE counter (n INTEGER)")
    db.execute("INSERT INTO counter VALUES (0)")
    for start in range(0, ROWS, 20):
        db.execute("BEGIN")
        db.executemany("INSERT INTO t VALUES (?, ?)", (
            (k, bytes([k]) * k * 30) for k in range(start, start + 20)))
        db.execute("ROLLBACK" if start == 40 else "COMMIT")
    db.close()
    in_child(count, count)
    db = connect()
    db.execute("DELETE FROM t WHERE k % 3 = 0")
    db.execute("VACUUM")
    equal(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)],
          "integrity")
    equal(db.execute("SELECT n FROM counter").fetchall(), [(2 * COUNTS,)],
          "the counter of two processes")
    db.close()


def maildir(d):
    tmp, new, cur = (d / part for part in ("tmp", "new", "cur"))
    for part in (tmp, new, cur):
        part.mkdir()
    for n in range(MESSAGES):
        with open(tmp / str(n), "wb") as file:
            file.write(b"message %d\n" % n * n)
            file.flush()
            os.fsync(file.fileno())
        if n % 2:
            os.link(tmp / str(n), new / str(n))
            os.unlink(tmp / str(n))
        else:
            os.rename(tmp / str(n), new / str(n))
    for n in range(0, MESSAGES, 3):
        os.rename(new / str(n), cur / f"{n}:2,S")
    for n in range(0, MESSAGES, 6):
        os.unlink(cur / f"{n}:2,S")
    os.link(new / "1", d / "kept")
    os.rename(new / "4", new / "2")         # over another


def tree(top):
    """{path: [mode, size, links, what is in it, time]} of all below TOP."""
    found = {}
    for path in sorted(top.rglob("*")):
        about = path.lstat()
        entry = [oct(about.st_mode)]
        if stat.S_ISREG(about.st_mode):
            entry += [about.st_size, about.st_nlink, hashlib.sha256(
                path.read_bytes()).hexdigest(), about.st_mtime_ns]
        found[str(path.relative_to(top))] = entry
    return found


def without_times(found):
    return {path: entry[:4] for path, entry in found.items()}


def work(top):
    """The seconds of each part."""
    seconds = {}
    for part in (git, make, sqlite, maildir):
        folder = top / part.__name__
        folder.mkdir(parents=True)
        began = time.monotonic()
        part(folder)
        seconds[part.__name__] = round(time.monotonic() - began, 1)
    return seconds


def returned():
    """The delegations that this client has returned."""
    for line in Path("/proc/self/mountstats").read_text(
            encoding="ascii").splitlines():
        if line.split()[:1] == ["DELEGRETURN:"]:
            return int(line.split()[1])
    raise AssertionError("no count of DELEGRETURN")


def main():
    mount, local = map(Path, sys.argv[1:])
    seconds = {"mount": work(mount), "local": work(local)}
    drop_caches()
    found, wanted = tree(mount), tree(local)
    equal(without_times(found), without_times(wanted), "the tree")
    print("\n" + json.dumps({"seconds": seconds, "returned": returned(),
                             "tree": found}))


if __name__ == "__main__":
    main()
