# SPDX-License-Identifier: LGPL-3.0-or-later
"""What developers do all day: git and make, on the mount."""
import os
import shutil
import subprocess
from pathlib import Path

from registry import case, drop_caches, equal

SOURCES = Path(__file__).resolve().parents[3]
PARTS = ("FSAL_CEPH_ASYNC", "tests", "ci", "lab", "cmake")
FILES = 40


def run(*command, cwd):
    """The output; a failure shows it."""
    done = subprocess.run(
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", check=False,
        env={**os.environ, "HOME": str(cwd), "TMPDIR": "/run",
             "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C.UTF-8"})
    equal(done.returncode, 0, f"{' '.join(map(str, command))}: {done.stdout}")
    return done.stdout


@case(versions=("3", "4.2"), seconds=120)
def git_repository(d):
    tree = d / "tree"
    tree.mkdir()
    for part in PARTS:
        shutil.copytree(SOURCES / part, tree / part, symlinks=True,
                        ignore=shutil.ignore_patterns("__pycache__"))
    files = sum(len(names) for _, _, names in os.walk(tree))
    run("git", "init", "-q", "-b", "main", cwd=tree)
    run("git", "config", "user.name", "A Tester", cwd=tree)
    run("git", "config", "user.email", "tester@localhost", cwd=tree)
    run("git", "add", ".", cwd=tree)
    run("git", "commit", "-q", "-m", "All of it", cwd=tree)
    drop_caches()
    equal(run("git", "status", "--porcelain", cwd=tree), "", "git status")
    equal(len(run("git", "ls-files", cwd=tree).splitlines()), files,
          "files in the repository")
    run("git", "fsck", "--full", "--strict", cwd=tree)
    run("git", "gc", "-q", cwd=tree)
    run("git", "clone", "-q", "tree", "clone", cwd=d)
    run("diff", "-r", "-x", ".git", "tree", "clone", cwd=d)
    run("git", "fsck", "--full", cwd=d / "clone")


@case(versions=("3", "4.2"), seconds=150)
def build_with_make(d):
    (d / "all.h").write_text("".join(
        f"long f{n}(long);\n" for n in range(FILES)))
    for n in range(FILES):
        (d / f"f{n}.c").write_text(
            f'#include "all.h"\nlong f{n}(long x) {{ return x + {n}; }}\n')
    calls = "".join(f"\tx = f{n}(x);\n" for n in range(FILES))
    (d / "main.c").write_text(
        '#include <stdio.h>\n#include "all.h"\n'
        f'int main(void)\n{{\n\tlong x = 0;\n{calls}'
        '\tprintf("%ld\\n", x);\n\treturn 0;\n}\n')
    objects = " ".join(f"f{n}.o" for n in range(FILES))
    (d / "Makefile").write_text(
        f"sum: main.o libsum.a\n\tcc -o $@ main.o libsum.a\n"
        f"libsum.a: {objects}\n\tar rcs $@ $^\n"
        "%.o: %.c all.h\n\tcc -O1 -c -o $@ $<\n"
        "clean:\n\trm -f *.o *.a sum\n")
    run("make", "-s", "-j4", cwd=d)
    drop_caches()
    wanted = f"{sum(range(FILES))}\n"
    equal(run("./sum", cwd=d), wanted, "what the program says")
    equal("up to date" in run("make", "sum", cwd=d), True,
          "nothing is left to build")
    run("make", "-s", "clean", cwd=d)
    equal(sorted(p.suffix for p in d.iterdir() if p.suffix not in
                 (".c", ".h")), [""], "files left after make clean")
