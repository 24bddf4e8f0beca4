# SPDX-License-Identifier: LGPL-3.0-or-later
"""What was sent, what was acknowledged, and what may be there afterwards.

Content is made of cells of 16 bytes: file, block, stamp.  A block of 4 KiB
repeats one cell, so that a torn one, one of another place and one that was
never sent are all told apart.
"""
import struct
from types import SimpleNamespace

UNSTABLE = 0            # of NFSv3; this file is used in the client too
BLOCK = 4096
OBJECT = 4 << 20
CELL = struct.Struct(">IIQ")


def stamped(file, block, stamp):
    return CELL.pack(file, block, stamp) * (BLOCK // CELL.size)


def tail_bytes(file, start, end):
    """Content of a file that only grows: every block has the stamp 1."""
    first = start // BLOCK
    data = b"".join(stamped(file, block, 1)
                    for block in range(first, -(-end // BLOCK)))
    return data[start - first * BLOCK:end - first * BLOCK]


class Ledger:
    """What both kinds of file share: which writes are firm.

    Firm is a write that was answered FILE_SYNC or DATA_SYNC, or that was
    answered UNSTABLE and then covered by a COMMIT with the same verifier.
    """

    def __init__(self, file):
        self.file = file
        self.unstable = []      # answered, not yet committed
        self.firm_count = 0
        self.firm_bytes = 0
        self.verifiers = set()

    def answered(self, one, reply):
        self.verifiers.add(reply.verifier)
        one.verifier = reply.verifier
        assert reply.count == one.length, "a short WRITE"
        if reply.committed == UNSTABLE:
            self.unstable.append(one)
        else:
            self._count(one)

    def commit_sent(self):
        """Which writes a COMMIT that is sent now will cover."""
        covered, self.unstable = self.unstable, []
        return covered

    def committed(self, covered, verifier):
        """How many writes have to be sent again."""
        self.verifiers.add(verifier)
        again = [one for one in covered if one.verifier != verifier]
        for one in covered:
            if one.verifier == verifier:
                self._count(one)
        return len(again)

    def _count(self, one):
        self.firm_count += 1
        self.firm_bytes += one.length
        self.make_firm(one)


class Blocks(Ledger):
    """A file of fixed size whose blocks are overwritten."""

    def __init__(self, file, count):
        super().__init__(file)
        self.count = count
        self.firm = [0] * count     # 0: never written
        self.later = [set() for _ in range(count)]

    def sent(self, block, blocks, stamp):
        for at in range(block, block + blocks):
            self.later[at].add(stamp)
        return SimpleNamespace(block=block, blocks=blocks, stamp=stamp,
                               length=blocks * BLOCK)

    def data(self, one):
        return b"".join(stamped(self.file, at, one.stamp)
                        for at in range(one.block, one.block + one.blocks))

    def make_firm(self, one):
        for at in range(one.block, one.block + one.blocks):
            self.firm[at] = max(self.firm[at], one.stamp)
            self.later[at] = {s for s in self.later[at] if s > self.firm[at]}

    def check(self, data):
        """Complaints about what is there; it becomes what has to stay."""
        wrong = []
        for at in range(self.count):
            found = data[at * BLOCK:(at + 1) * BLOCK]
            allowed = {self.firm[at], *self.later[at]}
            for stamp in allowed:
                wanted = stamped(self.file, at, stamp) if stamp else \
                    bytes(BLOCK)[:len(found)]
                if found == wanted:
                    self.firm[at], self.later[at] = stamp, set()
                    break
            else:
                wrong.append(f"block {at}: {describe(found)}, firm is "
                             f"{self.firm[at]}, later ones "
                             f"{sorted(self.later[at])}")
        if len(data) > self.count * BLOCK:
            wrong.append(f"{len(data)} bytes, more than ever was written")
        self.unstable.clear()
        return wrong


class Tail(Ledger):
    """A file that only grows, by writes of any length."""

    def __init__(self, file):
        super().__init__(file)
        self.settled = b""          # was there after the last crash
        self.pieces = []            # writes since, in order of offset
        self.end = 0                # of all that was sent
        self.firm_end = 0

    def sent(self, length):
        one = SimpleNamespace(start=self.end, length=length, firm=False)
        self.end += length
        self.pieces.append(one)
        return one

    def data(self, one):
        return tail_bytes(self.file, one.start, one.start + one.length)

    def make_firm(self, one):
        one.firm = True
        self.firm_end = max(self.firm_end, one.start + one.length)

    def check(self, data):
        wrong = []
        if not self.firm_end <= len(data) <= self.end:
            wrong.append(f"size {len(data)}: {self.firm_end} bytes were "
                         f"acknowledged, {self.end} sent")
        if data[:len(self.settled)] != self.settled:
            wrong.append("what had survived a crash before has changed")
        for one in self.pieces:
            for start, end in at_objects(one.start, one.start + one.length):
                found = data[start:end]
                if found == tail_bytes(self.file, start, end):
                    continue
                lost = bytes(len(found)) == found
                if one.firm or not lost:
                    wrong.append(f"{start} to {end}, "
                                 f"{'' if one.firm else 'not '}acknowledged: "
                                 f"{describe(found)}")
        self.settled = data
        self.pieces.clear()
        self.unstable.clear()
        self.end = self.firm_end = len(data)
        return wrong


def at_objects(start, end):
    """A write reaches RADOS in one piece for each object."""
    while start < end:
        stop = min(end, (start // OBJECT + 1) * OBJECT)
        yield start, stop
        start = stop


def describe(found):
    if not found:
        return "nothing"
    if not any(found):
        return "zeros"
    cells = {found[at:at + CELL.size]
             for at in range(0, len(found) - CELL.size + 1, CELL.size)}
    names = [CELL.unpack(cell) for cell in sorted(cells)[:4]]
    return f"{len(found)} bytes, {len(cells)} cells: (file, block, stamp) " \
           f"{names}"
