# SPDX-License-Identifier: LGPL-3.0-or-later
"""Data against a model in memory; sparse files; mmap."""
import mmap
import os
import random

from registry import (MIB, OBJECT, case, cold, drop_caches, equal, opened,
                      read_all, write_at)

FILE = 12 * MIB


def size_of_any_magnitude(rng, most=MIB):
    """1 B to MOST, small ones as likely as large ones."""
    return min(most, int(2 ** rng.uniform(0, most.bit_length() - 1)))


def against_model(d, name, flags, seed, rounds=120):
    """Random writes, reads, truncations and syncs by fds with FLAGS."""
    rng = random.Random(seed)
    model = bytearray()
    path = d / name
    fds = [os.open(path, os.O_RDWR | os.O_CREAT | more) for more in flags]
    for step in range(rounds):
        fd = rng.choice(fds)
        action = rng.random()
        size = size_of_any_magnitude(rng)
        offset = rng.randrange(FILE - size)
        if action < 0.55:
            data = rng.randbytes(size)
            write_at(fd, data, offset)
            if len(model) < offset:
                model += bytes(offset - len(model))
            model[offset:offset + size] = data
        elif action < 0.85:
            equal(os.pread(fd, size, offset), model[offset:offset + size],
                  f"step {step}: {size} bytes at {offset}")
        elif action < 0.90:
            os.ftruncate(fd, offset)
            model = model[:offset] + bytes(max(0, offset - len(model)))
        elif action < 0.95:
            os.fsync(fd)
        else:
            os.fdatasync(fd)
        equal(os.fstat(fd).st_size, len(model), f"step {step}: size")
    for fd in fds:
        os.close(fd)
    equal(cold(path), model, "the whole file at last")


@case()
def random_data_buffered(d):
    against_model(d, "file", [0], seed=1)


@case()
def random_data_direct(d):
    against_model(d, "file", [os.O_DIRECT], seed=2)


@case()
def random_data_o_sync(d):
    against_model(d, "file", [os.O_SYNC], seed=3)


@case()
def random_data_o_dsync_direct(d):
    against_model(d, "file", [os.O_DSYNC | os.O_DIRECT], seed=4)


@case()
def random_data_through_all_kinds_of_fd(d):
    against_model(d, "file", [0, os.O_DIRECT, os.O_SYNC,
                              os.O_SYNC | os.O_DIRECT], seed=5)


@case()
def sparse_file_of_many_objects(d):
    parts = {0: b"begin", 9 * MIB: b"in the middle" * 1000,
             41 * MIB + 3: b"the end"}
    size = 41 * MIB + 3 + 7
    wanted = bytearray(size)
    with opened(d / "file", os.O_RDWR | os.O_CREAT) as fd:
        for offset in (9 * MIB, 41 * MIB + 3, 0):
            write_at(fd, parts[offset], offset)
            wanted[offset:offset + len(parts[offset])] = parts[offset]
        os.fsync(fd)
    drop_caches()
    equal(os.stat(d / "file").st_size, size, "size")
    equal(cold(d / "file"), wanted, "O_DIRECT")
    drop_caches()
    equal((d / "file").read_bytes(), wanted, "buffered")


@case()
def file_of_nothing_but_a_hole(d):
    size = 5 * OBJECT + 17
    with opened(d / "file", os.O_RDWR | os.O_CREAT) as fd:
        os.ftruncate(fd, size)
    equal(cold(d / "file"), bytes(size), "content")
    with opened(d / "file", os.O_RDWR | os.O_DIRECT) as fd:
        os.pwrite(fd, b"x", 3 * OBJECT)
        wanted = bytearray(size)
        wanted[3 * OBJECT] = ord("x")
        equal(read_all(fd, 3 * MIB + 1), wanted, "with one byte in it")


@case()
def hole_inside_one_object(d):
    with opened(d / "file", os.O_RDWR | os.O_CREAT | os.O_DIRECT) as fd:
        os.pwrite(fd, b"a" * 4096, 0)
        os.pwrite(fd, b"b" * 4096, 3 * MIB)
        wanted = b"a" * 4096 + bytes(3 * MIB - 4096) + b"b" * 4096
        equal(os.pread(fd, 4 * MIB, 0)[:MIB], wanted[:MIB], "first read")
        equal(read_all(fd), wanted, "content")
    os.truncate(d / "file", OBJECT + 10)
    equal(cold(d / "file"), wanted + bytes(OBJECT + 10 - len(wanted)),
          "content after growing")


@case()
def write_across_an_object_boundary(d):
    data = os.urandom(2 * MIB)
    with opened(d / "file", os.O_RDWR | os.O_CREAT | os.O_DIRECT) as fd:
        write_at(fd, data, OBJECT - MIB + 1)
        equal(os.pread(fd, 10, OBJECT - 5),
              data[MIB - 6:MIB + 4], "around the boundary")
    equal(cold(d / "file"), bytes(OBJECT - MIB + 1) + data, "content")


@case()
def mapped_memory(d):
    size = MIB + 4096
    (d / "file").write_bytes(bytes(size))
    wanted = bytearray(size)
    with opened(d / "file", os.O_RDWR) as fd, mmap.mmap(fd, size) as memory:
        for offset in (0, 4095, 70_000, size - 5):
            memory[offset:offset + 5] = b"hello"
            wanted[offset:offset + 5] = b"hello"
        memory.flush()
        with opened(d / "file", os.O_RDONLY | os.O_DIRECT) as other:
            equal(read_all(other), wanted, "after msync, past the cache")
    drop_caches()
    with opened(d / "file", os.O_RDONLY) as fd, \
            mmap.mmap(fd, size, prot=mmap.PROT_READ) as memory:
        equal(memory[:], bytes(wanted), "through a new mapping")
