#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Each function of the plugin begins with the name of its file.

    ci/lint/symbols.py [--list]

In FILE.c and FILE.h a public function is casync_FILE() or begins with
casync_FILE_; a static one is FILE() or begins with FILE_.  An inline function
of a header is public.  --list prints every function with its file.
"""

import argparse
import re
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
PLUGIN = TOP / "FSAL_CEPH_ASYNC"

# casync_ and the name that fsal_api.h of Ganesha gives an operation: by that
# name its contract is found there.
OPERATIONS = {
    "check_verifier", "close", "close2", "commit2", "fallocate", "getattrs",
    "getxattrs", "handle_to_key", "handle_to_wire", "host_to_key", "io_advise",
    "lease_op2", "link", "listxattrs", "lock_op2", "lookup", "mkdir", "mknode",
    "open2", "read2", "readdir", "readlink", "removexattrs", "rename",
    "reopen2", "seek2", "setattr2", "setxattrs", "status2", "symlink",
    "unlink", "wire_to_host", "write2",
}

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
# Lines of the preprocessor, with those that go on after a backslash.
MACRO = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
# .clang-format has the opening brace of a function, and only that, alone at
# the beginning of a line.
FUNCTION = re.compile(r"^([A-Za-z_][^;{}]*?\b(\w+)\([^;{}]*\))\s*\n\{", re.M)


def functions(text):
    """(place, name, whether it is static) of each function in a file."""
    blank = re.compile(r"[^\n]")
    for hidden in COMMENT, MACRO:
        text = hidden.sub(lambda m: blank.sub(" ", m[0]), text)
    for match in FUNCTION.finditer(text):
        head = match[1].split("(")[0].split()
        yield match.start(), head[-1].lstrip("*"), "static" in head


def fits(path, name, static):
    """Whether the function may have its name."""
    file = path.stem if static and path.suffix == ".c" else \
        f"casync_{path.stem}"
    return name == file or name.startswith(f"{file}_") or \
        name.removeprefix("casync_") in OPERATIONS


def main():
    """Print the functions with another name."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--list", action="store_true",
                        help="print every function")
    args = parser.parse_args()
    public, wrong, wrong_public = 0, 0, 0
    for path in sorted(PLUGIN.rglob("*.[ch]")):
        text = path.read_text(encoding="utf-8")
        for place, name, static in functions(text):
            own = static and path.suffix == ".c"
            public += not own
            line = text.count("\n", 0, place) + 1
            where = f"{path.relative_to(TOP)}:{line}"
            if args.list:
                print(f"{where}: {'static' if own else 'public'} {name}")
            elif not fits(path, name, static):
                wrong += 1
                wrong_public += not own
                print(f"{where}: {name}() does not begin with its file's name")
    if not args.list:
        share = 100 * (public - wrong_public) / public
        print(f"{public} public functions, {share:.1f} % have the name")
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main()
