# SPDX-License-Identifier: LGPL-3.0-or-later
"""Small files with inline data, over NFS: inline_data.py DIRECTORY MAKER

They are made by another CephFS client (MAKER ceph) or over NFS (nfs), read
at and past their ends, overwritten, appended to and grown out of the inode.
"""
import os
import sys
from pathlib import Path

from server_side import ceph_client, ceph_path, has_object
from case_eof import reads_around
from registry import cold, drop_caches, equal, opened, write_at

SIZES = (0, 1, 100, 4000, 4096)
HOW = {"buffered": 0, "direct": os.O_DIRECT}


def make(directory, maker, contents):
    if maker == "nfs":
        for path, data in contents.items():
            path.write_bytes(data)
        return
    with ceph_client() as fs:
        for path, data in contents.items():
            fd = fs.open(ceph_path(path), "w", 0o644)
            if data:
                equal(fs.write(fd, data, 0), len(data), "written")
            fs.close(fd)
    # Or this test would be about something else.  (A client that may not
    # buffer at that moment writes objects at once.)
    inline = [path.name for path, data in contents.items()
              if data and not has_object(path)]
    equal(len(inline) >= len(contents) // 2, True, f"{inline} have no object")


def check(path, data, what):
    drop_caches()
    equal(os.stat(path).st_size, len(data), f"{what}: size")
    for how, flags in HOW.items():
        drop_caches()
        with opened(path, os.O_RDONLY | flags) as fd:
            reads_around(fd, data, f"{what}, {how}")
    equal(cold(path), data, what)


def change(path, data, flags):
    """Overwrite, append, then grow out of any inode."""
    model = bytearray(data)
    with opened(path, os.O_RDWR | flags) as fd:
        for offset, more in ((len(data) // 2, b"in the middle"),
                             (len(data), b"at the end" * 10),
                             (70_000, b"far away")):
            write_at(fd, more, offset)
            model += bytes(max(0, offset + len(more) - len(model)))
            model[offset:offset + len(more)] = more
            os.fsync(fd)
    return bytes(model)


def main():
    directory = Path(sys.argv[1])
    directory.mkdir()
    contents = {directory / f"{size}-{how}": os.urandom(size)
                for size in SIZES for how in HOW}
    make(directory, sys.argv[2], contents)
    for path, data in contents.items():
        print(path.name, flush=True)
        check(path, data, path.name)
        data = change(path, data, HOW[path.name.split("-")[1]])
        check(path, data, f"{path.name} changed")
    print("inline data: all well")


main()
