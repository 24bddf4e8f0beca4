# SPDX-License-Identifier: LGPL-3.0-or-later
"""Another CephFS client truncates and extends a file that we read over NFS:
other_client.py DIRECTORY LAYOUT

What is read must be what the file was at some moment of the read.
"""
import mmap
import os
import random
import struct
import sys
import time
from pathlib import Path

from server_side import ceph_client, ceph_path
from case_layouts import KIB, LAYOUTS, lay_out
from registry import MIB, cold, equal, in_child, opened

LIMIT = 10 * MIB
READ_SECONDS = 4
PATIENCE_SECONDS = 30               # for the other client's changes
LEAST_CHANGES = 20
CHANGE = struct.Struct("ddq")       # begun, ended, the size after it
MOST_CHANGES = 100_000


def content():
    """No zero in it: one that is read was never in the file."""
    return random.Random(7).randbytes(LIMIT).replace(b"\0", b"\1")


class Changes:
    """What the other process did to the size, in memory of both."""

    def __init__(self):
        self.memory = mmap.mmap(-1, 16 + MOST_CHANGES * CHANGE.size)

    def add(self, begun, ended, size):
        count = len(self)
        CHANGE.pack_into(self.memory, 16 + count * CHANGE.size,
                         begun, ended, size)
        struct.pack_into("q", self.memory, 0, count + 1)

    def __len__(self):
        return struct.unpack_from("q", self.memory, 0)[0]

    def stop(self):
        self.memory[8] = 1

    def stopped(self):
        return self.memory[8] or len(self) >= MOST_CHANGES

    def all(self):
        return [CHANGE.unpack_from(self.memory, 16 + i * CHANGE.size)
                for i in range(len(self))]


def change(path, data, changes, seed):
    """Append and truncate until told to stop."""
    rng = random.Random(seed)
    with ceph_client() as fs:
        fd = fs.open(ceph_path(path), "r+", 0o644)
        size = fs.fstat(fd).st_size
        while not changes.stopped():
            begun = time.monotonic()
            if size >= LIMIT or rng.random() < 0.3:
                size = rng.randrange(size) if size else 0
                fs.ftruncate(fd, size)
            else:
                more = data[size:size + rng.randrange(1, 700 * KIB)]
                done = fs.write(fd, more, size)
                equal(done, len(more), "written by the other client")
                size += done
            changes.add(begun, time.monotonic(), size)
            time.sleep(rng.random() * 0.01)
        fs.close(fd)


def sizes_during(changes, begun, ended):
    """The least and the largest size that the file had in that time."""
    sizes = []
    before = 0
    for change_begun, change_ended, size in changes:
        if change_begun > ended:
            break
        if change_ended < begun:
            sizes = [size]
        else:
            sizes += [before, size]
        before = size
    return min(sizes), max(sizes)


def read_meanwhile(path, data, changes):
    """Reads of all sizes; each must be what the file was at some moment
    of it.  Past the page cache, which NFS does not keep coherent."""
    rng = random.Random(8)
    reads = []
    began = time.monotonic()

    def enough():
        after = time.monotonic() - began
        return after > PATIENCE_SECONDS or (
            after > READ_SECONDS and len(changes) > LEAST_CHANGES)

    try:
        with opened(path, os.O_RDONLY | os.O_DIRECT) as fd:
            while not enough():
                length = rng.choice((4 * KIB, 64 * KIB, MIB))
                offset = rng.randrange(LIMIT)
                begun = time.monotonic()
                got = os.pread(fd, length, offset)
                reads.append((begun, time.monotonic(), offset, length,
                              len(got)))
                equal(got, data[offset:offset + len(got)],
                      f"{len(got)} of {length} bytes at {offset}")
    finally:
        changes.stop()
    return reads


def judge(reads, changes):
    for begun, ended, offset, length, got in reads:
        least, most = sizes_during(changes, begun, ended)
        low = min(length, max(0, least - offset))
        high = min(length, max(0, most - offset))
        if not low <= got <= high:
            raise AssertionError(
                f"{got} of {length} bytes at {offset} while the size was "
                f"{least} to {most}")


def beside_another_client(d):
    data = content()
    path = d / "file"
    path.write_bytes(data[:LIMIT // 2])
    changes = Changes()
    now = time.monotonic()
    changes.add(now, now, LIMIT // 2)
    reads = []

    def reader():
        reads.extend(read_meanwhile(path, data, changes))
        judge(reads, changes.all())
        print(f"{len(reads)} reads, {len(changes)} changes", flush=True)

    in_child(lambda: change(path, data, changes, seed=9), reader)
    equal(len(changes) > LEAST_CHANGES, True,
          f"more than {LEAST_CHANGES} changes by the other client")
    final = changes.all()[-1][2]
    equal(cold(path), data[:final], "content at last")


def main():
    directory = Path(sys.argv[1])
    directory.mkdir()
    lay_out(directory, LAYOUTS[sys.argv[2]])
    beside_another_client(directory)


main()
