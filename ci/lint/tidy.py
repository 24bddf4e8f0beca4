#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""clang-tidy of the files of a compilation database.

    ci/lint/tidy.py FOLDER JOBS

FOLDER has compile_commands.json.  With CCACHE_DIR set, a file that was clean is
not looked at again while the compiler sees the same text, comments included,
and .clang-tidy is the same: a whole run takes minutes, and most files do not
change.
"""

import concurrent.futures
import hashlib
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path


def key_of(entry, settings):
    """What clang-tidy's findings depend on, as a hash; None: not known."""
    words = shlex.split(entry["command"])
    words = words[:words.index("-o")] + words[words.index("-o") + 2:] \
        if "-o" in words else words
    done = subprocess.run(
        [*words, "-E", "-C"], cwd=entry["directory"], check=False,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL)
    if done.returncode != 0:
        return None
    return hashlib.sha256(settings + done.stdout).hexdigest()


def main():
    """Run it on those that are not known to be clean."""
    folder, jobs = Path(sys.argv[1]), int(sys.argv[2])
    database = folder / "compile_commands.json"
    entries = json.loads(database.read_text(encoding="utf-8"))
    clean = Path(os.environ["CCACHE_DIR"], "clang-tidy") \
        if "CCACHE_DIR" in os.environ else None
    keys = {}
    if clean:
        clean.mkdir(parents=True, exist_ok=True)
        version = subprocess.run(["clang-tidy", "--version"], check=True,
                                 stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE).stdout
        settings = version + Path(".clang-tidy").read_bytes()
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            keys = dict(zip((entry["file"] for entry in entries),
                            pool.map(lambda entry: key_of(entry, settings),
                                     entries)))
        entries = [entry for entry in entries
                   if not keys[entry["file"]]
                   or not (clean / keys[entry["file"]]).exists()]
        database.write_text(json.dumps(entries), encoding="utf-8")
    print(f"[{len(entries)}/{len(keys) or len(entries)}] files", flush=True)
    if not entries:
        return
    done = subprocess.run(
        ["run-clang-tidy", "-p", folder, "-j", str(jobs), "-quiet"],
        env=os.environ | {"PYTHONUNBUFFERED": "1"}, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, check=False)
    print(done.stdout, end="")
    if clean and done.returncode == 0:
        for entry in entries:
            if keys[entry["file"]]:
                (clean / keys[entry["file"]]).touch()
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
