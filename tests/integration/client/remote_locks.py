# SPDX-License-Identifier: LGPL-3.0-or-later
"""Locks by order of a test outside:  remote_locks.py FILE ORDERS

ORDERS is a folder: the test puts there 1, 2, …; each holds one line, "lock
KIND OFFSET LENGTH" and the like, and is answered in 1.done, 2.done, ….
"""
import fcntl
import os
import struct
import sys
from pathlib import Path

from registry import wait_for

FLOCK = "hhqqi4x"
KINDS = {"r": fcntl.F_RDLCK, "w": fcntl.F_WRLCK, "u": fcntl.F_UNLCK}


def call(fd, command, kind, offset, length):
    got = fcntl.fcntl(fd, command, struct.pack(
        FLOCK, KINDS[kind], os.SEEK_SET, int(offset), int(length), 0))
    return struct.unpack(FLOCK, got)


def obey(fd, order, kind="u", offset="0", length="0"):
    if order == "test":
        found, _, start, length, _ = call(fd, fcntl.F_GETLK, kind, offset,
                                          length)
        if found == fcntl.F_UNLCK:
            return "free"
        return f"{'r' if found == fcntl.F_RDLCK else 'w'} {start} {length}"
    command = fcntl.F_SETLKW if order == "wait" else fcntl.F_SETLK
    try:
        call(fd, command, kind, offset, length)
    except (BlockingIOError, PermissionError):
        return "refused"
    return "done"


def main():
    path, orders = map(Path, sys.argv[1:])
    fd = os.open(path, os.O_RDWR)
    number = 0
    while True:
        number += 1
        order = orders / str(number)
        wait_for(order)
        words = order.read_text(encoding="ascii").split()
        if words[0] == "end":
            break
        answer = obey(fd, *words)
        part = orders / f"{number}.part"
        part.write_text(answer, encoding="ascii")
        part.rename(orders / f"{number}.done")
    os.close(fd)


main()
