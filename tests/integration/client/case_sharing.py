# SPDX-License-Identifier: LGPL-3.0-or-later
"""One file, several opens, several processes."""
import os

from registry import (MIB, case, cold, drop_caches, equal, in_child, opened,
                      read_all, write_at)


@case()
def two_opens_of_one_file(d):
    path = d / "file"
    with opened(path, os.O_RDWR | os.O_CREAT) as one, \
            opened(path, os.O_RDWR | os.O_DIRECT) as two, \
            opened(path, os.O_RDONLY) as three:
        os.pwrite(one, b"1" * 5000, 0)
        os.fsync(one)
        equal(os.pread(two, 9000, 0), b"1" * 5000, "the second open")
        os.pwrite(two, b"2" * 5000, 2500)
        equal(os.pread(three, 9000, 0), b"1" * 2500 + b"2" * 5000,
              "the third open")
        os.ftruncate(one, 10)
        equal(os.fstat(three).st_size, 10, "size")
    equal(cold(path), b"1" * 10, "content")


@case()
def close_of_one_open_keeps_the_other(d):
    path = d / "file"
    with opened(path, os.O_RDWR | os.O_CREAT) as one:
        with opened(path, os.O_WRONLY) as two:
            os.write(two, b"by two")
        with opened(path, os.O_RDONLY) as three:
            drop_caches()
            equal(os.read(three, 10), b"by two", "content")
        os.pwrite(one, b"one", 3)
        os.fsync(one)
    equal(cold(path), b"by one", "content")


@case()
def two_processes_append(d):
    path = d / "file"
    path.touch()

    def appender(mark):
        def run():
            with opened(path, os.O_WRONLY | os.O_APPEND) as fd:
                for n in range(100):
                    os.write(fd, f"{mark} {n:05} {'.' * 90}\n".encode())
        return run
    in_child(appender("a"), appender("b"))
    lines = cold(path).decode().splitlines()
    for mark in "ab":
        equal([line for line in lines if line.startswith(mark)],
              [f"{mark} {n:05} {'.' * 90}" for n in range(100)],
              f"records of {mark}")
    equal(len(lines), 200, "records")


@case()
def four_processes_write_their_parts(d):
    path = d / "file"
    path.touch()
    data = [os.urandom(3 * MIB + 1) for _ in range(4)]

    def writer(n, flags):
        def run():
            with opened(path, os.O_WRONLY | flags) as fd:
                for at in range(0, len(data[n]), 100_000):
                    write_at(fd, data[n][at:at + 100_000],
                             n * len(data[n]) + at)
        return run
    in_child(*(writer(n, os.O_DIRECT) for n in range(4)))
    equal(cold(path), b"".join(data), "content")


@case()
def reader_beside_a_writer(d):
    path = d / "file"
    step = 64 << 10
    path.write_bytes(bytes(4 * MIB))

    def writer():
        with opened(path, os.O_WRONLY | os.O_DIRECT) as fd:
            for at in range(0, 4 * MIB, step):
                os.pwrite(fd, b"\xff" * step, at)

    def reader():
        with opened(path, os.O_RDONLY | os.O_DIRECT) as fd:
            for _ in range(10):
                data = read_all(fd)
                equal(len(data), 4 * MIB, "bytes read beside the writer")
                equal(set(data) <= {0, 255}, True, "old or new, no other")
    in_child(writer, reader)
    equal(cold(path), b"\xff" * (4 * MIB), "content")
