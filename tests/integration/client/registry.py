# SPDX-License-Identifier: LGPL-3.0-or-later
"""The cases that run inside the kernel client, and what they share.

A case is a function of one argument, an empty directory on the mount.  It
passes when it returns.  pytest imports these modules too, for the names.
"""
import functools
import os
import sys
import time
from pathlib import Path

VERSIONS = ("3", "4.0", "4.1", "4.2")
CASES = {}

MIB = 1 << 20
OBJECT = 4 * MIB        # CephFS' default object size


class Case:
    def __init__(self, run, versions, seconds, module):
        self.run = run
        self.module = module
        self.versions = versions
        self.seconds = seconds


def case(versions=VERSIONS, seconds=60):
    """Register a case for VERSIONS; SECONDS is the time it may take."""
    def register(run):
        _add(run.__name__, run, versions, seconds, run.__module__)
        return run
    return register


def each(table, versions=VERSIONS, seconds=60):
    """One case of each row {name: arguments} of TABLE: the function gets
    them after the directory."""
    def register(run):
        for name, arguments in table.items():
            _add(name, functools.partial(_with, run, arguments), versions,
                 seconds, run.__module__)
        return run
    return register


def _with(run, arguments, d):
    run(d, *arguments)


def _add(name, run, versions, seconds, module):
    if name in CASES:
        raise ValueError(f"two cases are named {name}")
    CASES[name] = Case(run, versions, seconds, module)


def equal(got, wanted, what):
    """Like assert, but it says what was found; long data are shortened."""
    if got == wanted:
        return
    if isinstance(wanted, (bytes, bytearray)):
        raise AssertionError(f"{what}: {difference(got, wanted)}")
    raise AssertionError(f"{what}: got {got!r}, wanted {wanted!r}")


def difference(got, wanted):
    """Where two byte strings differ, in words."""
    if len(got) != len(wanted):
        return f"{len(got)} bytes, wanted {len(wanted)}"
    first = next(i for i in range(len(got)) if got[i] != wanted[i])
    count = sum(a != b for a, b in zip(got, wanted))
    return (f"{count} bytes differ, first at {first}: "
            f"got {bytes(got[first:first + 8]).hex()}, "
            f"wanted {bytes(wanted[first:first + 8]).hex()}")


def refused(numbers, call, *args, **kwargs):
    """CALL must fail with that errno, or with one of those."""
    numbers = (numbers,) if isinstance(numbers, int) else numbers
    wanted = " or ".join(map(os.strerror, numbers))
    try:
        call(*args, **kwargs)
    except OSError as err:
        if err.errno in numbers:
            return
        raise AssertionError(f"{call.__name__}{args}: {err.strerror}, "
                             f"wanted {wanted}") from err
    raise AssertionError(f"{call.__name__}{args} succeeded, wanted {wanted}")


def drop_caches():
    """Whatever is read next comes from the server."""
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3\n", encoding="ascii")


def cold(path):
    """The file's bytes, from the server and past the page cache."""
    drop_caches()
    with opened(path, os.O_RDONLY | os.O_DIRECT) as fd:
        return read_all(fd)


def read_all(fd, step=MIB):
    """Everything from offset 0 by positional reads."""
    parts = []
    offset = 0
    while data := os.pread(fd, step, offset):
        parts.append(data)
        offset += len(data)
    return b"".join(parts)


def write_at(fd, data, offset):
    """All of DATA, short writes continued."""
    done = 0
    while done < len(data):
        done += os.pwrite(fd, data[done:], offset + done)


def wait_for(path, patience=100):
    """Until whoever started us has made that file."""
    end = time.monotonic() + patience
    while not path.exists():
        if time.monotonic() > end:
            raise SystemExit(f"no {path.name} within {patience} s")
        time.sleep(0.05)


class opened:
    """`with opened(path, flags) as fd`: a descriptor, closed in the end."""

    def __init__(self, path, flags, mode=0o644):
        self.fd = os.open(path, flags, mode)

    def __enter__(self):
        return self.fd

    def __exit__(self, *_):
        os.close(self.fd)


def in_child(*functions, uid=None):
    """Run each function in a process of its own, as user UID; all must
    succeed."""
    children = []
    for function in functions:
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                if uid is not None:
                    os.setgroups([])
                    os.setgid(uid)
                    os.setuid(uid)
                function()
                status = 0
            except BaseException as err:  # noqa: BLE001 (the child ends)
                print(f"child: {type(err).__name__}: {err}", file=sys.stderr,
                      flush=True)
            finally:
                os._exit(status)
        children.append(pid)
    results = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
               for pid in children]
    equal(results, [0] * len(results), "exit status of the processes "
          "(their words are on stderr)")
