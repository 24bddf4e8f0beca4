# SPDX-License-Identifier: LGPL-3.0-or-later
"""Writes with several requests in flight, until the server is gone."""
import select
from types import SimpleNamespace

from ledger import BLOCK, Blocks, Tail, describe, stamped
from nfs import nfs3, nfs4, rpc

MOST_BLOCKS = 4
LONGEST_APPEND = 24 << 10
COMMIT_EVERY = 12       # unstable writes of a file
LOOK_EVERY = 4          # acknowledged writes between two looks at `change`
BEAR_EVERY = 25         # acknowledged writes for each new file
NEWBORN = 1 << 20       # file numbers from here on


class File:
    """One file of the run, with all that was seen of it."""

    def __init__(self, name, ledger, handle, handle4):
        self.name = name
        self.ledger = ledger
        self.handle = handle
        self.handle4 = handle4
        self.change = 0         # the greatest that was seen
        self.ctimes = set()     # all that were seen over NFSv3
        self.busy = set()
        self.stamp = 0

    def next(self, rng):
        """The next write: offset, data and the ledger's entry."""
        ledger = self.ledger
        if isinstance(ledger, Tail):
            one = ledger.sent(rng.randint(1, LONGEST_APPEND))
            return one.start, ledger.data(one), one
        while True:     # two writes of a block in flight have no order
            blocks = rng.randint(1, MOST_BLOCKS)
            block = rng.randrange(ledger.count - blocks + 1)
            span = set(range(block, block + blocks))
            if not span & self.busy:
                break
        self.busy |= span
        self.stamp += 1
        one = ledger.sent(block, blocks, self.stamp)
        return block * BLOCK, ledger.data(one), one

    def answered(self, one, reply):
        self.ledger.answered(one, reply)
        if reply.attrs:
            self.ctimes.add(reply.attrs.ctime)
        if isinstance(self.ledger, Blocks):
            self.busy -= set(range(one.block, one.block + one.blocks))

    def saw(self, change):
        """A complaint if the change attribute went backwards."""
        back = self.change - change
        self.change = max(self.change, change)
        if back > 0:
            return [f"{self.name}: change went back by {back} while the "
                    "server ran"]
        return []

    def server_died(self):
        self.busy.clear()


class Load:
    """One connection writes, another one looks at the change attribute."""

    def __init__(self, port, files, rng, depth, unstable, nursery):
        self.conn = rpc.Connection(port)
        self.looker = rpc.Connection(port)
        self.files = files
        self.rng = rng
        self.depth = depth
        self.unstable = unstable
        self.nursery = nursery  # the folder of files born under load
        self.births = 0
        self.born = []          # those with an acknowledged stable block
        self.waiting = {}       # id -> what to do with the reply
        self.looking = {}
        self.dead = False
        self.since_look = 0
        self.looks = 0
        self.complaints = []
        self.counts = dict.fromkeys(("stable", "unstable", "commits"), 0)

    def run(self, begun):
        """Until the server is gone; BEGUN is called at the first answer."""
        try:
            while True:
                while len(self.waiting) < self.depth:
                    self._send(self.rng.choice(self.files))
                self._replies()
                if begun and sum(self.counts.values()):
                    begun()
                    begun = None
        except rpc.Gone:
            self._rest()
        for file in self.files:
            file.server_died()

    def _ask(self, conn, waiting, then, *request, **version):
        """A request, and what to do with its reply."""
        if not self.dead:
            waiting[conn.send(*request, **version)] = then

    def _rest(self):
        """Answers that had arrived already count."""
        self.dead = True
        for conn, waiting in ((self.conn, self.waiting),
                              (self.looker, self.looking)):
            try:
                while waiting:
                    self._one(conn, waiting)
            except rpc.Gone:
                pass
        self.conn.close()
        self.looker.close()

    def _replies(self):
        ready, _, _ = select.select([self.conn, self.looker], [], [], 60)
        if not ready:
            raise TimeoutError("no answer for 60 s")
        for conn, waiting in ((self.looker, self.looking),
                              (self.conn, self.waiting)):
            if conn in ready:
                self._one(conn, waiting)
                while conn.pending():
                    self._one(conn, waiting)

    @staticmethod
    def _one(conn, waiting):
        xid, reader = conn.receive()
        waiting.pop(xid)(reader)

    def _send(self, file):
        offset, data, one = file.next(self.rng)
        stable = nfs3.UNSTABLE if self.unstable else \
            self.rng.choices((nfs3.FILE_SYNC, nfs3.DATA_SYNC), (4, 1))[0]
        self._ask(self.conn, self.waiting,
                  lambda reader: self._written(file, one, reader), nfs3.WRITE,
                  nfs3.write_arguments(file.handle, offset, data, stable))

    def _written(self, file, one, reader):
        reply = nfs3.written(nfs3.check(reader))
        file.answered(one, reply)
        self.counts["stable" if reply.committed else "unstable"] += 1
        if len(file.ledger.unstable) >= COMMIT_EVERY:
            covered = file.ledger.commit_sent()
            self._ask(self.conn, self.waiting,
                      lambda reader: self._committed(file, covered, reader),
                      nfs3.COMMIT, nfs3.commit_arguments(file.handle))
        if sum(self.counts.values()) % BEAR_EVERY == 0:
            self._bear()
        self.since_look += 1
        if self.since_look >= LOOK_EVERY and not self.looking:
            self.since_look = 0
            change = nfs4.change_operations(file.handle4)
            self._ask(self.looker, self.looking,
                      lambda reader: self._looked(file, change, reader),
                      nfs4.COMPOUND, nfs4.compound_arguments(change),
                      version=4)

    def _bear(self):
        """A new file and, when it is there, one stable block in it: the
        youngest will be milliseconds old when the server dies."""
        self.births += 1
        name, number = f"born-{self.births}", NEWBORN + self.births

        def created(reader):
            handle = nfs3.new_handle(nfs3.check(reader))
            self._ask(self.conn, self.waiting, written, nfs3.WRITE,
                      nfs3.write_arguments(handle, 0, stamped(number, 0, 1)))

        def written(reader):
            reply = nfs3.written(nfs3.check(reader))
            assert (reply.count, reply.committed) == (BLOCK, nfs3.FILE_SYNC)
            self.born.append((name, number))
        self._ask(self.conn, self.waiting, created, nfs3.CREATE,
                  nfs3.create_arguments(self.nursery, name))

    def _committed(self, file, covered, reader):
        again = file.ledger.committed(covered, nfs3.committed(
            nfs3.check(reader)))
        self.counts["commits"] += 1
        if again:
            self.complaints.append(
                f"{file.name}: the write verifier changed between {again} "
                "writes and their COMMIT, and the server had not died")

    def _looked(self, file, operations, reader):
        self.looks += 1
        found = nfs4.compound_results(reader, operations)[1]
        self.complaints += file.saw(found.change)


def settle_born(conn, load):
    """Every file whose block was acknowledged is there, with its block."""
    wrong = []
    for name, number in load.born:
        try:
            data = nfs3.read_all(conn, nfs3.lookup(conn, load.nursery, name))
        except rpc.Refused as err:
            wrong.append(f"{name} of {load.births}: a new file with an "
                         f"acknowledged block: {err}")
            continue
        if data != stamped(number, 0, 1):
            wrong.append(f"{name} of {load.births}: {describe(data)}")
    return wrong


def settle(conn, conn4, file):
    """What a new client finds, and what one more write changes.

    Returns complaints and figures: how far change and ctime moved.
    """
    wrong = []
    before, seen = file.change, set(file.ctimes)
    now = nfs4.get_change(conn4, file.handle4)
    attrs = nfs3.get_attributes(conn, file.handle)
    if now.change <= before:
        wrong.append(f"change is {now.change} after the crash, "
                     f"{(before - now.change) / 1e6:.3f} ms less than "
                     f"{before}, which was seen before it")
    data = nfs3.read_all(conn, file.handle)
    if len(data) != attrs.size or attrs.size != now.size:
        wrong.append(f"{len(data)} bytes were read, NFSv3 says {attrs.size},"
                     f" NFSv4 {now.size}")
    wrong += file.ledger.check(data)
    figures = SimpleNamespace(
        change_ms=(now.change - before) / 1e6 if before else None,
        ctime_ms=(attrs.ctime - max(seen)) / 1e6 if seen else None,
        mtime_ms=(attrs.mtime - max(seen)) / 1e6 if seen else None,
        same_ctime=attrs.ctime in seen)
    wrong += _one_more(conn, conn4, file, now, {*seen, attrs.ctime})
    return [f"{file.name}: {what}" for what in wrong], figures


def _one_more(conn, conn4, file, now, ctimes):
    """A stable write after the crash moves change forward and ctime away."""
    wrong = []
    offset, data, one = file.next(_First())
    reply = nfs3.write(conn, file.handle, offset, data)
    old = set(file.ledger.verifiers)
    file.answered(one, reply)
    if reply.verifier in old:
        wrong.append("the write verifier is the one from before the crash")
    file.ledger.verifiers = {reply.verifier}
    later = nfs4.get_change(conn4, file.handle4)
    if later.change <= max(now.change, file.change):
        wrong.append(f"change is {later.change} after one more write, not "
                     f"above {max(now.change, file.change)}")
    file.change = max(file.change, later.change)
    ctime = nfs3.get_attributes(conn, file.handle).ctime
    if ctime in ctimes:
        wrong.append("one more write gave a ctime that was seen before")
    file.ctimes = {ctime}
    return wrong


class _First:
    """In place of a random generator: the smallest of everything."""

    @staticmethod
    def randint(least, _most):
        return least

    @staticmethod
    def randrange(_stop):
        return 0
