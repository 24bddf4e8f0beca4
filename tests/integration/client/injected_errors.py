# SPDX-License-Identifier: LGPL-3.0-or-later
"""Errors that are injected at known places:
injected_errors.py DIRECTORY WHAT…

WHAT is the name of a function below, and after a comma each the error numbers
that it is to see.  Every place fails once and works the second time.  The
places are those of test_faults.py, which makes the rules for them.
"""
import errno
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

from calls import BLOCK, CHUNK, OBJECT, PLACES
from registry import cold, equal, opened, refused, wait_for, write_at


def direct(path, more=0):
    return opened(path, os.O_RDWR | os.O_CREAT | os.O_DIRECT | more)


def parts(path, count):
    """One part of each chunk fails: no data, no zeros, no short read."""
    rng = random.Random(1)
    model = bytearray(int(count) * CHUNK)
    with direct(path) as fd:
        os.ftruncate(fd, len(model))
        for offset in range(0, len(model), 2 * OBJECT):
            model[offset:offset + OBJECT] = rng.randbytes(OBJECT)
            write_at(fd, model[offset:offset + OBJECT], offset)
        for offset in range(0, len(model), CHUNK):
            refused(errno.EIO, os.pread, fd, CHUNK, offset)
            equal(os.pread(fd, CHUNK, offset), model[offset:offset + CHUNK],
                  f"1 MiB at {offset}, the second time")


def writes(path, *numbers):
    """Block after block: the error, then success with other data."""
    at = PLACES["writes"]
    model = bytearray(at + len(numbers) * BLOCK)
    with direct(path) as fd:
        os.ftruncate(fd, len(model))
        for count, number in enumerate(map(int, numbers), 1):
            refused(number, os.pwrite, fd, b"refused" * 100, at)
            equal(os.pread(fd, BLOCK, at), bytes(BLOCK),
                  f"block {count}, never written")
            model[at:at + BLOCK] = bytes([count]) * BLOCK
            write_at(fd, bytes([count]) * BLOCK, at)
            at += BLOCK
    equal(cold(path), model, "the whole file")


def reads(path, *numbers):
    at = PLACES["reads"]
    with direct(path) as fd:
        for count, number in enumerate(map(int, numbers), 1):
            write_at(fd, bytes([count]) * BLOCK, at)
            refused(number, os.pread, fd, BLOCK, at)
            equal(os.pread(fd, BLOCK, at), bytes([count]) * BLOCK,
                  f"block {count}")
            at += BLOCK


def stale(path):
    """Linux gives up a file that is said to be gone, no other one."""
    at = PLACES["stale"]
    with direct(path) as fd:
        refused(errno.ESTALE, os.pwrite, fd, b"x" * BLOCK, at)
    with direct(path + "-other") as fd:
        write_at(fd, b"y" * BLOCK, at)
        equal(os.pread(fd, BLOCK, at), b"y" * BLOCK, "another file")


def buffered(path):
    """fsync tells, though the block after the bad one was written."""
    at = PLACES["buffered"]
    with opened(path, os.O_RDWR | os.O_CREAT) as fd:
        os.pwrite(fd, b"bad" * 1000, at)
        os.pwrite(fd, b"good" * 1000, at + 4 * BLOCK)
        refused(errno.ENOSPC, os.fsync, fd)
        os.pwrite(fd, b"bad?" * 1000, at)
        os.fsync(fd)
    equal(cold(path)[at:at + 4000], b"bad?" * 1000, "the second time")
    equal(cold(path)[at + 4 * BLOCK:], b"good" * 1000, "what was good")


def flush(path):
    """The first write's flush is slow; those that come meanwhile share the
    next one, which fails; then all is well."""
    outcomes = [None] * 5
    with direct(path, os.O_SYNC) as fd:
        write_at(fd, b"p" * BLOCK, 0)   # a new file is flushed for itself

    def write(at):
        try:
            outcomes[at] = os.pwrite(fd, bytes([at]) * BLOCK, at * BLOCK)
        except OSError as err:
            outcomes[at] = -err.errno
    with direct(path, os.O_SYNC) as fd:
        threads = [threading.Thread(target=write, args=(at,))
                   for at in range(5)]
        for thread in threads:
            thread.start()
            time.sleep(0.5 if thread is threads[0] else 0)
        for thread in threads:
            thread.join()
        equal(outcomes, [BLOCK] + [-errno.EIO] * 4, "results of the writes")
        write_at(fd, b"z" * BLOCK, 5 * BLOCK)


def commit(path):
    """Many unstable writes and a COMMIT whose flush fails, then again."""
    with opened(path, os.O_RDWR | os.O_CREAT) as fd:
        os.pwrite(fd, b"p", 0)
        os.fsync(fd)
        os.pwrite(fd, b"c" * (8 << 20), 0)
        refused(errno.EIO, os.fsync, fd)
        os.pwrite(fd, b"d" * (8 << 20), 0)
        os.fsync(fd)
    equal(cold(path), b"d" * (8 << 20), "content")


def slow(path):
    with direct(path) as fd:
        write_at(fd, b"q" * BLOCK, 0)
        write_at(fd, b"s" * BLOCK, BLOCK)
        write_at(fd, b"q" * BLOCK, 0)


def lost(path, signals):
    """One write never comes back; after "gone", another export is used,
    which was mounted before."""
    other = Path("/run/other")
    other.mkdir()
    subprocess.run(["mount", "-t", "nfs4", "-o", "vers=4.2", "lab:/other",
                    other], check=True)
    with direct(path) as fd:
        threading.Thread(target=os.pwrite, args=(fd, b"l" * BLOCK, 0),
                         daemon=True).start()
        wait_for(Path(signals) / "gone")
        name = other / f"served-{time.time_ns()}"
        name.write_bytes(b"as ever")
        equal(cold(name), b"as ever", "a file of the other export")
        name.unlink()
        (Path(signals) / "served").touch()
        time.sleep(100)     # the file cannot be closed


def main():
    for what in sys.argv[2:]:
        name, *numbers = what.split(",")
        {function.__name__: function for function in (
            parts, writes, reads, stale, buffered, flush, commit, slow,
            lost)}[name](f"{sys.argv[1]}/{name}", *numbers)
        print(f"{name}: all well", flush=True)


main()
