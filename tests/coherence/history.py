# SPDX-License-Identifier: LGPL-3.0-or-later
"""What each block of a file may hold now, and the verdict on each READ.

A block has versions 0, 1, 2, … in the order in which they were written: one
writer at a time.  A version is data (stamped with its number), zeros (a hole)
or absent (behind the end of the file).  The floor of a block is the newest
version that was acknowledged or that a READ has returned.  A READ notes the
floor before it begins.  What it returns must not be older than that, and not
newer than what was begun before it ended.

Memory is bounded: the floor is one number, of versions and events only the
latest are kept.
"""
import collections
import struct
import threading
import time

BLOCK = 4096
CELL = struct.Struct(">IIQ")            # file, block, version
CELLS = BLOCK // CELL.size
DATA, ZEROS, ABSENT = "data", "zeros", "absent"
VERSIONS, EVENTS = 64, 60
FRESH_NS = 10**9


class Wrong(Exception):
    """A READ that no order of the operations explains."""


class Version:
    __slots__ = ("acked", "began", "kind", "number", "side")

    def __init__(self, number, kind, side, began, acked=None):
        self.number, self.kind, self.side = number, kind, side
        self.began, self.acked = began, acked


class Block:
    """Of a file; `writing` is the lock of its one writer."""

    def __init__(self, kind):
        now = time.monotonic_ns()
        self.writing = threading.Lock()
        self.floor = self.newest = 0
        self.versions = collections.deque(
            [Version(0, kind, None, now, now)], VERSIONS)
        self.events = collections.deque(maxlen=EVENTS)


class Read:
    """One READ of blocks [first, first + count) under way."""

    __slots__ = ("began", "count", "door", "first", "floors", "fresh")

    def __init__(self, door, first, count):
        self.door, self.first, self.count = door, first, count
        self.floors, self.fresh = [], []


class History:
    """Of all blocks of one file."""

    def __init__(self, number, blocks, kind=ABSENT):
        self.number = number
        self.lock = threading.Lock()
        self.blocks = [Block(kind) for _ in range(blocks)]

    # --- changes

    def begin(self, which, kind, door):
        """A new version of each of these blocks: their numbers."""
        now = time.monotonic_ns()
        with self.lock:
            for index in which:
                block = self.blocks[index]
                block.newest += 1
                block.versions.append(
                    Version(block.newest, kind, door.side, now))
        return [self.blocks[index].newest for index in which]

    def acknowledged(self, which, door, what):
        """The newest version of each is there for everybody."""
        now = time.monotonic_ns()
        with self.lock:
            for index in which:
                block = self.blocks[index]
                version = block.versions[-1]
                version.acked = now
                block.floor = max(block.floor, version.number)
                block.events.append((version.began, now, door.name, what,
                                     version.number))

    def data(self, first, numbers):
        return b"".join(
            CELL.pack(self.number, first + n, number) * CELLS
            for n, number in enumerate(numbers))

    # --- READs

    def begin_read(self, door, first, count):
        read = Read(door, first, count)
        with self.lock:
            now = time.monotonic_ns()
            for block in self.blocks[first:first + count]:
                read.floors.append(block.floor)
                last = block.versions[-1]
                read.fresh.append(
                    last.side if last.acked and
                    now - last.acked < FRESH_NS else None)
            read.began = now
        return read

    def end_read(self, read, data, at_end):
        """Judge what it returned.  A short READ that is not at the end of
        the file says nothing about the rest."""
        now = time.monotonic_ns()
        with self.lock:
            for n in range(read.count):
                piece = data[n * BLOCK:(n + 1) * BLOCK]
                if len(piece) < BLOCK and not at_end:
                    return
                self._judge(read, n, piece, now)

    def _judge(self, read, n, piece, now):
        index = read.first + n
        block = self.blocks[index]
        if len(piece) not in (0, BLOCK):
            self._wrong(read, index, now,
                        f"{len(piece)} bytes of it are there")
        cells = _cells(piece)
        found = [self._version(read, n, cell, now) for cell in cells]
        if len(cells) > 1 and not _overlaps(block, read.began, now):
            self._wrong(read, index, now, f"torn: versions {sorted(found)}, "
                        "and no change was under way")
        block.events.append((read.began, now, read.door.name, "READ",
                             "+".join(map(str, sorted(found)))))
        block.floor = max(block.floor, min(found))

    def _version(self, read, n, cell, now):
        """The oldest version that explains this part of a block."""
        index = read.first + n
        block, floor = self.blocks[index], read.floors[n]
        if cell is None or not any(cell):
            kind = ABSENT if cell is None else ZEROS
            fit = [version.number for version in block.versions
                   if version.kind == kind and version.number >= floor]
            if fit:
                return fit[0]
            self._wrong(read, index, now, f"{kind}, but version {floor} or "
                        f"a later one had to be there")
        number, where, version = CELL.unpack(cell)
        if (number, where) != (self.number, index):
            self._wrong(read, index, now, f"the stamp of file {number}, "
                        f"block {where}, version {version}")
        if version < floor:
            self._wrong(read, index, now, f"version {version}, but {floor} "
                        "was known before the READ began: STALE")
        if version > block.newest:
            self._wrong(read, index, now, f"version {version}, "
                        f"but {block.newest} is the newest")
        return version

    def _wrong(self, read, index, now, what):
        block = self.blocks[index]
        lines = [f"file {self.number}, block {index}, READ by "
                 f"{read.door.name}: {what}",
                 "its history, ms before the end of that READ:"]
        events = list(block.events)
        events += [(version.began, version.acked or now, version.side,
                    "not acknowledged", version.number)
                   for version in block.versions if not version.acked]
        events.append((read.began, now, read.door.name, "READ", "WRONG"))
        for began, ended, door, kind, version in sorted(
                events, key=lambda event: event[1]):
            lines.append(f"  {(began - now) / 1e6:11.3f} to "
                         f"{(ended - now) / 1e6:11.3f}  {door:9} {kind} "
                         f"{version}")
        raise Wrong("\n".join(lines))


def _cells(piece):
    """The different stamps of a block; None where there is no block."""
    if not piece:
        return [None]
    first = piece[:CELL.size]
    if piece == first * CELLS:
        return [first]
    return sorted({piece[at:at + CELL.size]
                   for at in range(0, BLOCK, CELL.size)})


def _overlaps(block, began, ended):
    return any(version.began <= ended and
               (version.acked is None or version.acked >= began)
               for version in block.versions)
