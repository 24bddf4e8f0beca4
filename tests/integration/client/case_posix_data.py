# SPDX-License-Identifier: LGPL-3.0-or-later
"""What is in a file: append, truncate, holes, seek, mapped memory."""
import ctypes
import errno
import fcntl
import mmap
import os
import time

from posix_helpers import (check, elsewhere, fresh, libc, meanwhile,
                           second_mount)
from registry import (MIB, case, cold, drop_caches, each, equal, opened,
                      refused, write_at)

PAGE = mmap.PAGESIZE


# --- append

@case()
def append_ignores_the_position(d):
    (d / "file").write_bytes(b"0123456789")
    with opened(d / "file", os.O_RDWR | os.O_APPEND) as fd:
        os.lseek(fd, 2, os.SEEK_SET)
        os.write(fd, b"end")
        equal(os.lseek(fd, 0, os.SEEK_CUR), 13, "position")
        os.lseek(fd, 0, os.SEEK_SET)
        equal(os.read(fd, 4), b"0123", "read from the start")
        os.write(fd, b"!")
    equal(cold(d / "file"), b"0123456789end!", "content")


@case()
def append_after_a_truncation_by_another(d):
    (d / "file").write_bytes(b"x" * 10_000)
    with opened(d / "file", os.O_WRONLY | os.O_APPEND) as fd:
        os.write(fd, b"one")
        equal(elsewhere(os.truncate, d / "file", 5), 0, "truncated")
        os.write(fd, b"two")
    equal(cold(d / "file"), b"xxxxxtwo", "content")


@case()
def appends_of_four_processes(d):
    path = d / "file"
    path.touch()

    def appender(mark):
        def run():
            with opened(path, os.O_WRONLY | os.O_APPEND) as fd:
                for n in range(50):
                    os.write(fd, f"{mark}{n:03};".encode() * (1 + n % 7))
        return run
    with meanwhile(appender("a")), meanwhile(appender("b")), \
            meanwhile(appender("c")):
        appender("d")()
    words = cold(path).decode().split(";")[:-1]
    equal(len(words), 4 * sum(1 + n % 7 for n in range(50)), "words")
    for mark in "abcd":
        equal([word for word in words if word[0] == mark],
              [f"{mark}{n:03}" for n in range(50) for _ in range(1 + n % 7)],
              f"words of {mark}")


@case()
def append_and_truncate_race(d):
    """Records are whole, and follow one another from the start on."""
    path = d / "file"
    path.touch()
    record = b"<" + b"r" * 98 + b">"

    def appender():
        with opened(path, os.O_WRONLY | os.O_APPEND) as fd:
            for _ in range(150):
                os.write(fd, record)
    with meanwhile(appender), opened(path, os.O_WRONLY) as fd:
        for _ in range(20):
            os.ftruncate(fd, 0)
    data = cold(path)
    equal(data, record * (len(data) // 100), "content")


@case()
def append_under_a_lock_from_two_clients(d):
    """What fcntl locks promise: who has the lock sees all that was written
    under it."""
    path = d / "file"
    path.touch()

    def appender(path, mark):
        def run():
            with opened(path, os.O_RDWR | os.O_APPEND) as fd:
                for n in range(8):
                    fcntl.lockf(fd, fcntl.LOCK_EX)
                    os.write(fd, f"{mark}{n:02};".encode())
                    fcntl.lockf(fd, fcntl.LOCK_UN)
                    time.sleep(0.05)    # who is refused polls, ever rarer
        return run
    with meanwhile(appender(second_mount(d) / "file", "b")):
        appender(path, "a")()
    words = cold(path).decode().split(";")[:-1]
    equal(sorted(words), sorted(f"{mark}{n:02}" for mark in "ab"
                                for n in range(8)), "words")


# --- truncate

SIZES = (1, PAGE - 1, PAGE, PAGE + 1, 65_535, MIB, MIB + 3)


@each({f"truncate_at_{size}": (size,) for size in SIZES})
def truncate_at(d, size):
    """Shorter and longer again: what was cut off is zeros."""
    path = d / "file"
    path.write_bytes(b"\xaa" * (2 * MIB))
    os.truncate(path, size)
    os.truncate(path, size + 3 * PAGE)
    equal(fresh(path).size, size + 3 * PAGE, "size")
    wanted = b"\xaa" * size + bytes(3 * PAGE)
    equal(path.read_bytes(), wanted, "from the page cache")
    equal(cold(path), wanted, "from the server")


@case()
def truncate_to_a_large_size(d):
    path = d / "file"
    path.write_bytes(b"start")
    for size in (2**31 - 1, 2**31, 2**32 + 1, 2**39):
        os.truncate(path, size)
        equal(fresh(path).size, size, "size")
        with opened(path, os.O_RDONLY) as fd:
            equal(os.pread(fd, 100, size - 10), bytes(10), "its end")
    os.truncate(path, 5)
    equal(cold(path), b"start", "content")


@case()
def truncate_beside_writes_behind_it(d):
    """Data in the page cache past the new end do not come back."""
    with opened(d / "file", os.O_RDWR | os.O_CREAT) as fd:
        os.write(fd, b"a" * (3 * PAGE))
        os.ftruncate(fd, PAGE)
        os.pwrite(fd, b"b", 4 * PAGE)
        os.fsync(fd)
    equal(cold(d / "file"), b"a" * PAGE + bytes(3 * PAGE) + b"b", "content")


@case()
def truncate_by_another_is_seen(d):
    path = d / "file"
    path.write_bytes(b"x" * 50_000)
    other = second_mount(d) / "file"
    with opened(other, os.O_RDWR) as fd:
        os.ftruncate(fd, 123)
    with opened(path, os.O_RDONLY) as fd:
        equal((fresh(fd).size, os.read(fd, 50_000)), (123, b"x" * 123),
              "size and content after the open")


@case()
def o_trunc_without_a_write(d):
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_CREAT):
        (d / "file").write_bytes(b"x" * 1000)
        with opened(d / "file", flags | os.O_TRUNC) as fd:
            equal(fresh(fd).size, 0, "size")
        equal(cold(d / "file"), b"", "content")


@case()
def o_trunc_beside_an_open_reader(d):
    (d / "file").write_bytes(b"x" * 10_000)
    with opened(d / "file", os.O_RDONLY) as reader:
        with opened(d / "file", os.O_WRONLY | os.O_TRUNC) as writer:
            os.write(writer, b"new")
        equal(os.pread(reader, 10_000, 0), b"new", "by the reader")


# --- read and write

@case()
def read_around_the_end(d):
    with opened(d / "file", os.O_RDWR | os.O_CREAT) as fd:
        os.write(fd, b"0123456789")
        equal([os.pread(fd, size, at) for at, size in
               ((0, 0), (5, 100), (10, 1), (11, 1), (10**12, 1))],
              [b"", b"56789", b"", b"", b""], "reads")


@case()
def write_far_behind_the_end(d):
    with opened(d / "file", os.O_RDWR | os.O_CREAT) as fd:
        os.write(fd, b"start")
        os.pwrite(fd, b"end", 100_000)
        equal(fresh(fd).size, 100_003, "size")
    equal(cold(d / "file"), b"start" + bytes(99_995) + b"end", "content")


@case()
def empty_write_does_not_grow(d):
    with opened(d / "file", os.O_RDWR | os.O_CREAT) as fd:
        equal(os.pwrite(fd, b"", 1000), 0, "written")
        equal(fresh(fd).size, 0, "size")


@case()
def vectors_of_many_parts(d):
    parts = [bytes([n]) * (n * 37) for n in range(1, 200)]
    with opened(d / "file", os.O_RDWR | os.O_CREAT) as fd:
        equal(os.pwritev(fd, parts, 11), sum(map(len, parts)), "written")
        back = [bytearray(len(part)) for part in parts]
        os.preadv(fd, back, 11)
        equal([bytes(part) for part in back], parts, "parts")


@case()
def duplicates_share_the_position(d):
    with opened(d / "file", os.O_RDWR | os.O_CREAT) as fd:
        second = os.dup(fd)
        os.write(fd, b"one")
        os.write(second, b"two")
        os.close(second)
        os.write(fd, b"three")
    equal(cold(d / "file"), b"onetwothree", "content")


@case()
def direct_and_buffered_see_each_other(d):
    with opened(d / "file", os.O_RDWR | os.O_CREAT) as cached, \
            opened(d / "file", os.O_RDWR | os.O_DIRECT) as direct:
        for n in range(1, 30):
            os.pwrite(cached, bytes([n]) * 100, n * 50)
            equal(os.pread(direct, 100, n * 50), bytes([n]) * 100, "direct")
            os.pwrite(direct, bytes([255 - n]) * 60, n * 70)
            equal(os.pread(cached, 60, n * 70), bytes([255 - n]) * 60,
                  "buffered")


@case()
def unsynced_data_reach_another_client_by_close(d):
    """Close-to-open: what was closed is seen by who opens afterwards."""
    other = second_mount(d)
    for n in range(5):
        (d / "file").write_bytes(b"%d" % n * (1000 - n))
        equal((other / "file").read_bytes(), b"%d" % n * (1000 - n),
              "on the other side")
        (other / "file").write_bytes(b"%d" % n * (500 + n))
        equal((d / "file").read_bytes(), b"%d" % n * (500 + n), "and back")


@case()
def names_by_another_client(d):
    other = second_mount(d)
    (d / "file").write_bytes(b"x")
    equal(os.listdir(other), ["file"], "names on the other side")
    os.rename(other / "file", other / "moved")
    os.mkdir(other / "dir")
    drop_caches()
    equal(sorted(os.listdir(d)), ["dir", "moved"], "names")
    refused(errno.EEXIST, os.mkdir, d / "dir")
    os.unlink(d / "moved")
    refused(errno.ENOENT, os.unlink, other / "moved")


@case()
def rename_elsewhere_by_another_client(d):
    """Both directories have changed for everybody."""
    for name in ("one", "two"):
        (d / name).mkdir()
    (d / "one" / "file").touch()
    (d / "one" / "sub").mkdir()
    other = second_mount(d)
    for name in ("file", "sub"):
        equal(name in os.listdir(other / "one"), True, f"{name} is there")
        os.rename(d / "one" / name, d / "two" / name)
        fresh(other / "one")        # as its attributes are asked for again
        equal(name in os.listdir(other / "one"), False,
              f"{name} is still there")
        equal(name in os.listdir(other / "two"), True,
              f"{name} has arrived")


@case()
def file_removed_by_another_client(d):
    """Its data may be gone; an error then, never other data."""
    other = second_mount(d)
    (d / "file").write_bytes(b"x" * 5000)
    with opened(d / "file", os.O_RDONLY) as fd:
        os.unlink(other / "file")
        (other / "file").write_bytes(b"y" * 5000)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        try:
            data = os.pread(fd, 5000, 0)
        except OSError as err:
            equal(err.errno, errno.ESTALE, "error")
        else:
            equal(data, b"x" * 5000, "content")
    equal(cold(d / "file"), b"y" * 5000, "the new file")


@case()
def copy_file_range(d):
    data = os.urandom(300_000)
    (d / "from").write_bytes(data)
    with opened(d / "from", os.O_RDONLY) as source, \
            opened(d / "to", os.O_RDWR | os.O_CREAT) as target:
        done = 0
        while done < 200_000:
            done += os.copy_file_range(source, target, 200_000 - done,
                                       1000 + done, 77 + done)
    equal(cold(d / "to"), bytes(77) + data[1000:201_000], "content")


@case()
def sendfile_and_splice(d):
    data = os.urandom(200_000)
    (d / "from").write_bytes(data)
    drop_caches()
    with opened(d / "from", os.O_RDONLY) as source, \
            opened(d / "to", os.O_RDWR | os.O_CREAT) as target:
        done = 0
        while part := os.sendfile(target, source, done, 200_000 - done):
            done += part
        equal(done, 200_000, "sent")
    equal(cold(d / "to"), data, "content")


# --- seek

@case()
def seek_positions(d):
    with opened(d / "file", os.O_RDWR | os.O_CREAT) as fd:
        os.write(fd, b"0123456789")
        equal([os.lseek(fd, 3, os.SEEK_SET), os.lseek(fd, 4, os.SEEK_CUR),
               os.lseek(fd, -2, os.SEEK_END), os.lseek(fd, 5, os.SEEK_END)],
              [3, 7, 8, 15], "positions")
        refused(errno.EINVAL, os.lseek, fd, -1, os.SEEK_SET)
        refused(errno.EINVAL, os.lseek, fd, -11, os.SEEK_END)
        equal(os.read(fd, 1), b"", "read past the end")


@case()
def seek_end_after_a_write_by_another(d):
    (d / "file").write_bytes(b"x")
    with opened(d / "file", os.O_RDONLY) as fd:
        equal(elsewhere(os.truncate, d / "file", 777), 0, "truncated")
        equal(os.lseek(fd, 0, os.SEEK_END), 777, "the end")


@case()
def seek_of_holes_and_data(d):
    """SEEK_HOLE and SEEK_DATA may be coarse, they may not lie: all that
    they call a hole is zeros, and data are never skipped."""
    model = bytearray(3 * MIB)
    with opened(d / "file", os.O_RDWR | os.O_CREAT) as fd:
        for at in (300_000, MIB, 2 * MIB + 5):
            os.pwrite(fd, b"d" * 5000, at)
            model[at:at + 5000] = b"d" * 5000
        os.ftruncate(fd, len(model))
        os.fsync(fd)
        at = 0
        while at < len(model):
            try:
                data = os.lseek(fd, at, os.SEEK_DATA)
            except OSError as err:
                equal(err.errno, errno.ENXIO, "error")
                data = len(model)
            equal(model[at:data].count(0), data - at, f"hole at {at}")
            if data == len(model):
                break
            at = os.lseek(fd, data, os.SEEK_HOLE)
            equal(data < at <= len(model), True, f"end of data: {at}")


@case()
def seek_of_holes_at_the_end(d):
    with opened(d / "file", os.O_RDWR | os.O_CREAT) as fd:
        os.write(fd, b"x" * 5000)
        os.fsync(fd)
        equal(os.lseek(fd, 0, os.SEEK_HOLE), 5000, "the hole at the end")
        equal(os.lseek(fd, 4999, os.SEEK_DATA), 4999, "the last byte")
        for how in (os.SEEK_DATA, os.SEEK_HOLE):
            refused(errno.ENXIO, os.lseek, fd, 5000, how)
            refused(errno.ENXIO, os.lseek, fd, 6000, how)


# --- holes made on purpose

KEEP_SIZE, PUNCH = 1, 2


def fallocate(fd, mode, offset, length):
    check(libc.fallocate(fd, mode, ctypes.c_int64(offset),
                         ctypes.c_int64(length)))


@case()
def punch_holes(d):
    """Zeros where there is such a call, no change where there is none."""
    model = bytearray(os.urandom(2 * MIB))
    with opened(d / "file", os.O_RDWR | os.O_CREAT) as fd:
        write_at(fd, model, 0)
        for at, size in ((0, 10), (PAGE, PAGE), (5000, 100_000),
                         (MIB - 1, 2), (2 * MIB - 100, 500),
                         (3 * MIB, 1000)):
            try:
                fallocate(fd, PUNCH | KEEP_SIZE, at, size)
                end = min(at + size, len(model))
                model[at:end] = bytes(max(0, end - at))
            except OSError as err:
                equal(err.errno, errno.EOPNOTSUPP, "error")
            equal(fresh(fd).size, len(model), "size")
            equal(os.pread(fd, len(model), 0), model, f"after {at}, {size}")
    equal(cold(d / "file"), model, "from the server")


@case()
def reserve_space(d):
    """Reserved or refused; if reserved, the size grows and data stay."""
    with opened(d / "file", os.O_RDWR | os.O_CREAT) as fd:
        os.write(fd, b"data")
        try:
            fallocate(fd, 0, 0, 10_000)
            wanted = 10_000
        except OSError as err:
            equal(err.errno, errno.EOPNOTSUPP, "error")
            wanted = 4
        equal(fresh(fd).size, wanted, "size")
        os.posix_fallocate(fd, 0, 20_000)       # by the C library at last
        equal(fresh(fd).size, 20_000, "size after posix_fallocate")
    equal(cold(d / "file"), b"data" + bytes(19_996), "content")


# --- mapped memory

def mapping(fd, length, **how):
    return mmap.mmap(fd, length, **how)


@case()
def mapped_write_is_read(d):
    with opened(d / "file", os.O_RDWR | os.O_CREAT) as fd:
        os.ftruncate(fd, 5 * PAGE)
        with mapping(fd, 5 * PAGE) as memory:
            memory[PAGE - 5:PAGE + 5] = b"0123456789"
            equal(os.pread(fd, 10, PAGE - 5), b"0123456789", "by read")
            os.pwrite(fd, b"abc", 3 * PAGE)
            equal(memory[3 * PAGE:3 * PAGE + 3], b"abc", "by the map")
            memory.flush()
            equal(cold(d / "file")[PAGE - 5:PAGE + 5], b"0123456789",
                  "from the server")


@case()
def mapped_writes_of_two_processes(d):
    with opened(d / "file", os.O_RDWR | os.O_CREAT) as fd:
        os.ftruncate(fd, 8 * PAGE)

        def writer(part):
            def run():
                with mapping(fd, 8 * PAGE) as memory:
                    for n in range(part, 8 * PAGE, 2):
                        memory[n] = 1 + part
            return run
        with meanwhile(writer(0)):
            writer(1)()
    equal(cold(d / "file"), b"\x01\x02" * (4 * PAGE), "content")


@case()
def private_map_changes_nothing(d):
    (d / "file").write_bytes(b"original")
    with opened(d / "file", os.O_RDONLY) as fd, \
            mapping(fd, 8, access=mmap.ACCESS_COPY) as memory:
        memory[:4] = b"COPY"
        equal(memory[:], b"COPYinal", "the copy")
    equal(cold(d / "file"), b"original", "the file")


@case()
def mapped_past_the_end(d):
    """What is written behind the end in the last page is not kept."""
    with opened(d / "file", os.O_RDWR | os.O_CREAT) as fd:
        os.write(fd, b"x" * 100)
        with mapping(fd, 100) as memory:
            memory[:] = b"y" * 100
            base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
            ctypes.memmove(base + 100, b"behind", 6)
            memory_size = len(memory)
            del base
        os.fsync(fd)
        equal((memory_size, fresh(fd).size), (100, 100), "sizes")
        os.ftruncate(fd, 200)
    equal(cold(d / "file"), b"y" * 100 + bytes(100), "content")


@case()
def map_needs_the_right_descriptor(d):
    (d / "file").write_bytes(b"x" * 100)
    with opened(d / "file", os.O_RDONLY) as fd:
        refused(errno.EACCES, mapping, fd, 100)
    with opened(d / "file", os.O_WRONLY) as fd:
        refused(errno.EACCES, mapping, fd, 100, prot=mmap.PROT_READ)


@case()
def fsync_of_every_kind(d):
    with opened(d / "file", os.O_RDWR | os.O_CREAT) as fd:
        os.write(fd, b"x" * 100_000)
        os.fdatasync(fd)
        os.write(fd, b"y" * 100_000)
        os.fsync(fd)
    with opened(d / "file", os.O_RDONLY) as fd:
        os.fsync(fd)
    with opened(d, os.O_RDONLY | os.O_DIRECTORY) as fd:
        os.fsync(fd)
    equal(cold(d / "file"), b"x" * 100_000 + b"y" * 100_000, "content")
