#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""A compilation database with one entry for each file named on stdin.

    ci/lint/compile_db.py BUILD FOLDER < FILES

CMake's own database names a source of the plugin once for each unit test
that links it.  Here each file is there once, with the plugin's own flags if
it is the plugin's.  Where the build is of another copy of the tree, its paths
are replaced by those here.  Prints how many files that are.
"""

import json
import pathlib
import re
import sys


def entries(build):
    """{file: entry}; of several entries that in the file's own folder."""
    build = pathlib.Path(build)
    cache = (build / "CMakeCache.txt").read_text()
    tree = re.search(r"^CMAKE_HOME_DIRECTORY:\w+=(.*)$", cache, re.M)[1]
    here = str(pathlib.Path.cwd())
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        for key in "file", "command":
            entry[key] = entry[key].replace(f"{tree}/", f"{here}/")
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        own = "FSAL_CEPH_ASYNC/CMakeFiles/" in entry["command"]
        if path not in found or (own and not found[path][0]):
            found[path] = own, entry
    return {path: entry for path, (_, entry) in found.items()}


def main():
    """Write the database."""
    known = entries(sys.argv[1])
    wanted = [pathlib.Path(line.strip()).resolve() for line in sys.stdin]
    chosen = [known[path] for path in wanted if path in known]
    out = pathlib.Path(sys.argv[2]) / "compile_commands.json"
    out.write_text(json.dumps(chosen, indent=1))
    print(f"{len(chosen)} files")


if __name__ == "__main__":
    main()
