#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""What developers do, in the kernel client of the chaos job:

    trees.py DIRECTORY SIGNALS

A repository is cloned, built, changed, and the change is pushed back; fio
verifies what it wrote; all is removed again.  An error ends it with status 1.
SIGNALS is as in soak/verified.py.  While it has a file "rest", nothing is
made or removed; "resting" says so.  The last words: how many pushes were
acknowledged.

A file "expired" says that the server stood still for longer than the lease.
Ganesha 9.14 then answers a SEQUENCE with NFS4ERR_EXPIRED, which RFC 8881 does
not allow there, and Linux makes EIO of it (docs/limits.md).  A file "full"
says that the pool is full.  A file "killed" says that the gateway is killed:
an exclusive create whose answer died with it may find its own file, empty and
without the verifier (docs/durability.md).  The round begins anew after all
three; the last words tell how often.
"""
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

LIMIT_S = 300           # of one program, faults included
PAUSE_S = 0.2
FORGIVEN_S = 60         # after the server went on
FILES = 12
# No program of git goes on in the background, nobody has to be root's friend.
GIT = ("git", "-c", "gc.auto=0", "-c", "safe.directory=*", "-c",
       "user.name=chaos", "-c", "user.email=chaos@localhost")
MAIN = '#include <stdio.h>\n{0}\nint main(void)\n{{\n\tprintf("%d\\n", {1});' \
    "\n\treturn 0;\n}}\n"
FIO = ("fio", "--name=verify", "--size=4m", "--bs=16k", "--rw=randwrite",
       "--direct=1", "--ioengine=psync", "--verify=crc32c", "--do_verify=1",
       "--end_fsync=1", "--output=/dev/null")


class Refused(RuntimeError):
    """A program ended with an error."""


class Trees:
    def __init__(self, top, signals):
        self.top, self.signals = top, signals
        self.origin = top / "origin.git"
        self.rng = random.Random(1)
        self.progress = self.pushed = self.anew = self.cut_off = 0
        self.began = 0.0        # the program that runs, or ran last

    def run(self, *cmd, cwd=None):
        self.began = time.time()
        done = subprocess.run(cmd, cwd=cwd or self.top, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=LIMIT_S, check=False)
        if done.returncode:
            raise Refused(f"{cmd}: status {done.returncode}\n"
                          f"{done.stdout}{done.stderr}")
        self.done()
        return done.stdout.strip()

    def done(self):
        """One step; the place where we rest."""
        self.progress += 1
        (self.signals / "progress").write_text(str(self.progress))
        while (self.signals / "rest").exists() and not self.stopped():
            (self.signals / "resting").touch()
            time.sleep(PAUSE_S)
        (self.signals / "resting").unlink(missing_ok=True)
        time.sleep(PAUSE_S)

    def stopped(self):
        return (self.signals / "stop").exists()

    def prepare(self):
        self.top.mkdir(exist_ok=True)
        self.run(*GIT, "init", "-q", "--bare", "-b", "main", self.origin)

    def round(self, number):
        clone = self.top / f"clone-{number}"
        self.run(*GIT, "clone", "-q", "--no-hardlinks", self.origin, clone)
        terms = self.change(clone, number)
        self.run(*GIT, "add", "-A", cwd=clone)
        self.run(*GIT, "commit", "-q", "-m", f"round {number}", cwd=clone)
        self.run("make", "-s", cwd=clone)
        said = int(self.run(clone / "answer"))
        if said != sum(terms):
            raise RuntimeError(f"the program says {said}, not {sum(terms)}")
        self.run(*GIT, "push", "-q", "origin", "HEAD:main", cwd=clone)
        self.pushed += 1
        self.run(*FIO, f"--directory={clone}")
        shutil.rmtree(clone)
        self.done()

    def may_begin_anew(self, err):
        """After the errors that are not the file system's fault.  Git and
        the compiler do not always say that there is no space."""
        full = self.lately("full") and isinstance(err, (Refused, OSError))
        expired = self.lately("expired") and "Input/output error" in str(err)
        cut_off = self.since("killed") > self.began and \
            self.own_file_was_there(err)
        if not full and not expired and not cut_off:
            return False
        self.cut_off += cut_off
        self.anew += 1
        for clone in self.top.glob("clone-*"):
            shutil.rmtree(clone)
        for lock in self.origin.rglob("*.lock"):
            lock.unlink()
        return True

    @staticmethod
    def own_file_was_there(err):
        """What a create that was cut off leaves is empty."""
        lock = re.search(r"Unable to create '(.*\.lock)': File exists",
                         str(err))
        path = Path(lock[1]) if lock else None
        return bool(path) and path.is_file() and path.stat().st_size == 0

    def lately(self, what):
        """Within that time, or while the last program ran: a WRITE that
        failed is told at close(), and a gateway may stand still before it."""
        since = self.since(what)
        return since > self.began or time.time() - since < FORGIVEN_S

    def since(self, what):
        """When the signal was given last; 0: never."""
        signal = self.signals / what
        return signal.stat().st_mtime if signal.exists() else 0

    def change(self, clone, number):
        """All files anew; what the program has to say, as a sum."""
        terms = [self.rng.randrange(1000) for _ in range(FILES)]
        for n, term in enumerate(terms):
            (clone / f"part{n}.c").write_text(
                f"int part{n}(void);\n\n/* {os.urandom(8000).hex()} */\n"
                f"int part{n}(void)\n{{\n\treturn {term};\n}}\n")
        names = [f"part{n}" for n in range(FILES)]
        (clone / "main.c").write_text(MAIN.format(
            "\n".join(f"int {name}(void);" for name in names),
            " + ".join(f"{name}()" for name in names)))
        (clone / "Makefile").write_text(
            "answer: $(patsubst %.c,%.o,$(wildcard *.c))\n"
            "\tcc -o $@ $^\n")
        (clone / ".gitignore").write_text("*.o\nanswer\nverify*\n")
        (clone / "round").write_text(f"{number}\n")
        return terms


def main():
    trees = Trees(Path(sys.argv[1]), Path(sys.argv[2]))
    wrong = None
    try:
        trees.prepare()
        number = 0
        while not trees.stopped():
            try:
                trees.round(number)
            except (RuntimeError, OSError) as err:
                if not trees.may_begin_anew(err):
                    raise
            number += 1
    except Exception as err:  # noqa: BLE001 (the last words tell it)
        wrong = f"{type(err).__name__}: {err}"
    print(json.dumps({"pushed": trees.pushed, "steps": trees.progress,
                      "anew": trees.anew, "cut off": trees.cut_off,
                      "wrong": wrong}), flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
