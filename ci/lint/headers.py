#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Each header compiles alone, and twice in one file.

    ci/lint/headers.py BUILD HEADER...

The flags are those of a source file in the header's folder, or in the
nearest folder above that has one.  A header for another FSAL API than the
build's is left out.
"""

import concurrent.futures
import os
import pathlib
import re
import shlex
import subprocess
import sys

from compile_db import entries


def flags_for(header, known):
    """The compiler and its flags, without input and output."""
    for folder in header.parents:
        for path, entry in known.items():
            if path.parent == folder:
                words = shlex.split(entry["command"])
                return words[:words.index("-o")], entry["directory"]
    sys.exit(f"{header}: no source file near it is compiled")


def complaint(header, known):
    """What the compiler says about a file that includes only the header."""
    command, folder = flags_for(header, known)
    done = subprocess.run(
        [*command, "-fsyntax-only", "-x", "c", "-"], cwd=folder, text=True,
        capture_output=True, check=False,
        input=f'#include "{header}"\n#include "{header}"\n')
    return done.stderr if done.returncode else ""


def is_of_another_api(header, known):
    """Is it for an FSAL API of Ganesha that this is no build for?"""
    return (re.fullmatch(r"api\d+", header.parent.name) and
            not any(str(header.parent) in entry["command"]
                    for entry in known.values()))


def main():
    """Print what does not compile."""
    known = entries(sys.argv[1])
    headers = [pathlib.Path(name).resolve() for name in sys.argv[2:]]
    headers = [header for header in headers
               if not is_of_another_api(header, known)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        said = list(pool.map(lambda header: complaint(header, known), headers))
    for text in filter(None, said):
        print(text, end="")
    sys.exit(any(said))


if __name__ == "__main__":
    main()
