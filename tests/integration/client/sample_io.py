# SPDX-License-Identifier: LGPL-3.0-or-later
"""Files on every export of a sample: sample_io.py PSEUDO=RW|RO … [--nfs3
PSEUDO:NAME …]

The whole pseudo tree is mounted.  A file that is written by one export is
there in the others of the same folder, which are named after it with a comma:
/a,/b=RW.  With --nfs3 all of it once more over NFSv3, where each export is
mounted by its NAME.
"""
import errno
import os
import subprocess
import sys
import time
from pathlib import Path

MOUNT = Path("/mnt/nfs")
THREE = Path("/mnt/nfs3")
DATA = os.urandom(3 * 1024 * 1024 + 17)


def write(path):
    """By fsync, so that all of it is a stable write or a COMMIT."""
    with open(path, "xb") as file:
        file.write(DATA)
        file.flush()
        os.fsync(file.fileno())


def read_from_server(path):
    """Not from this client's cache."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        with os.fdopen(os.dup(fd), "rb") as file:
            return file.read()
    finally:
        os.close(fd)


def refused(path):
    try:
        write(path)
    except OSError as err:
        assert err.errno == errno.EROFS, err
    else:
        raise AssertionError(f"{path}: written by an export that is RO")


def mount_by_3(pairs):
    """Ports are asked for, of rpcbind, as a client does that knows none."""
    for pair in pairs:
        pseudo, name = pair.split(":")
        where = THREE / pseudo.lstrip("/")
        where.mkdir(parents=True)
        subprocess.run(
            ["mount", "-t", "nfs", "-o", "vers=3,proto=tcp,mountproto=tcp,"
             "nolock", f"lab:{name}", where], check=True, timeout=30)


def use(mount, arguments):
    name = f"sample-{time.time_ns()}"
    for argument in arguments:
        pseudos, access = argument.split("=")
        tops = [mount / pseudo.lstrip("/") for pseudo in pseudos.split(",")]
        for top in tops:
            os.listdir(top)
            assert os.path.ismount(top), f"{top} is no export of its own"
        if access == "RO":
            for top in tops:
                refused(top / name)
            continue
        for number, top in enumerate(tops):
            mine = f"{name}-{number}"
            write(top / mine)
            for other in tops:
                assert read_from_server(other / mine) == DATA, other
    print(f"{mount}: all well")


def main(arguments):
    if "--nfs3" in arguments:
        at = arguments.index("--nfs3")
        mount_by_3(arguments[at + 1:])
        use(THREE, arguments[:at])
        arguments = arguments[:at]
    use(MOUNT, arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
