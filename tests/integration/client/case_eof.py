# SPDX-License-Identifier: LGPL-3.0-or-later
"""The end of a file is where it is, to the byte."""
import os
import subprocess

from registry import MIB, OBJECT, case, drop_caches, equal, opened

SIZES = (0, 1, 4095, 4096, 4097, MIB, OBJECT, OBJECT + 1, 10 * MIB - 1)


def reads_around(fd, data, how):
    """Reads before, at and past the end."""
    size = len(data)
    for offset in sorted({0, size // 2, max(0, size - 1), size, size + 1,
                          size + 4096, size + OBJECT}):
        for length in (1, 4096, 65536):
            equal(os.pread(fd, length, offset),
                  data[offset:offset + length],
                  f"{how}: {length} bytes at {offset} of {size}")


def exact(d, mode, name):
    for size in SIZES:
        data = os.urandom(size)
        path = d / str(size)
        path.write_bytes(data)
        drop_caches()
        equal(os.stat(path).st_size, size, "size")
        with opened(path, os.O_RDONLY | mode) as fd:
            reads_around(fd, data, name)


@case()
def end_of_file_buffered(d):
    exact(d, 0, "buffered")


@case()
def end_of_file_direct(d):
    exact(d, os.O_DIRECT, "direct")


@case()
def end_of_file_for_cat(d):
    for size in SIZES:
        data = os.urandom(size)
        (d / "file").write_bytes(data)
        drop_caches()
        done = subprocess.run(["cat", d / "file"], stdout=subprocess.PIPE,
                              check=True)
        equal(done.stdout, data, f"cat of {size} bytes")


@case()
def end_of_file_in_a_hole(d):
    """The last objects do not exist."""
    for size in (4097, OBJECT + 1, 10 * MIB - 1):
        with opened(d / "file", os.O_RDWR | os.O_CREAT | os.O_TRUNC) as fd:
            os.write(fd, b"begin")
            os.ftruncate(fd, size)
        drop_caches()
        done = subprocess.run(["cat", d / "file"], stdout=subprocess.PIPE,
                              check=True)
        equal(done.stdout, b"begin" + bytes(size - 5), f"cat of {size} bytes")


@case()
def end_of_file_moves(d):
    path = d / "file"
    with opened(path, os.O_RDWR | os.O_CREAT | os.O_DIRECT) as fd:
        for size in (10, 5000, 4096, OBJECT + 5, OBJECT, 1):
            if os.fstat(fd).st_size < size:
                os.pwrite(fd, b"z", size - 1)
            else:
                os.ftruncate(fd, size)
            equal(len(os.pread(fd, 100, size - 1)), 1, f"last of {size}")
            equal(os.pread(fd, 100, size), b"", f"past {size}")
