# SPDX-License-Identifier: LGPL-3.0-or-later
"""Files that grow by stable WRITEs and lose holes by DEALLOCATE, until the
server is gone.

With `Stable_Write = data` the MDS finds a file's size by its objects after a
crash.  A hole takes objects away: at the tail those that say the size.
"""
import random
import threading
import time

from ledger import BLOCK, OBJECT, describe, stamped
from nfs import nfs3, nfs4, rpc

PIECES = (1, 16, 256)           # blocks of a WRITE
IN_OBJECT = OBJECT // BLOCK     # it stays in one object
NUMBERS = range(1 << 21, 3 << 20, 1 << 18)  # of the clients' first files
CHANGES = (1, 8)                # of a file before the next one


class File:
    """Its blocks: True has data, False is a hole.  One request is in flight
    at a time: `next` is what it makes of the blocks."""

    def __init__(self, number):
        self.number = number
        self.name = f"holes-{number}"
        self.now = self.next = []

    def settle(self):
        self.now = self.next

    def punched(self, first, last):
        return (self.now[:first] + [False] * (last - first) +
                self.now[last:])

    def check(self, data):
        wrong = []
        sizes = {len(blocks) * BLOCK for blocks in (self.now, self.next)}
        if len(data) not in sizes:
            wrong.append(f"size {len(data)}, should be of {sorted(sizes)}")
        for at in range(len(data) // BLOCK):
            found = data[at * BLOCK:(at + 1) * BLOCK]
            if not any(found == self._block(blocks, at)
                       for blocks in (self.now, self.next)):
                wrong.append(f"block {at}: {describe(found)}")
        return [f"{self.name}: {what}" for what in wrong]

    def _block(self, blocks, at):
        if at < len(blocks) and blocks[at]:
            return stamped(self.number, at, 1)
        return bytes(BLOCK)


class Puncher(threading.Thread):
    """One client of NFSv4.2."""

    def __init__(self, port, folder, first, seed):
        super().__init__(daemon=True)
        self.client = nfs4.Client(port, f"puncher-{time.time_ns()}")
        self.folder = folder        # its handle
        self.first = first          # the number of its first file
        self.rng = random.Random(seed)
        self.files = []
        self.punched = 0
        self.complaints = []

    def run(self):
        try:
            while True:
                self._live(File(self.first + len(self.files)))
        except nfs4.Failed as err:
            self.complaints.append(f"DEALLOCATE and WRITE: {err}")
        except OSError:             # the server is gone
            pass
        self.client.die()

    def _live(self, file):
        opened = self.client.open(file.name, create=nfs4.UNCHECKED,
                                  directory=self.folder)
        self.files.append(file)
        self._grow(file, opened)
        for _ in range(self.rng.randint(*CHANGES)):
            self.rng.choice((self._grow, self._punch))(file, opened)
        opened.close()

    def _grow(self, file, opened):
        first = len(file.now)
        count = min(self.rng.choice(PIECES), IN_OBJECT - first % IN_OBJECT)
        file.next = file.now + [True] * count
        opened.write(first * BLOCK, b"".join(
            stamped(file.number, at, 1) for at in range(first, first + count)))
        file.settle()

    def _punch(self, file, opened):
        """A tail, all of it, or a hole in the middle."""
        blocks = len(file.now)
        first = self.rng.choice((0, self.rng.randrange(blocks)))
        last = self.rng.choice((blocks, blocks,
                                self.rng.randint(first + 1, blocks)))
        file.next = file.punched(first, last)
        self.client.deallocate(opened.handle, first * BLOCK,
                               (last - first) * BLOCK, opened.stateid)
        file.settle()
        self.punched += 1


def punchers(port, folder, rng):
    """As many clients as NUMBERS, at work."""
    clients = [Puncher(port, folder, first, rng.random()) for first in NUMBERS]
    for client in clients:
        client.start()
    return clients


def settle_holes(conn, folder, clients):
    """Each file that had an acknowledged WRITE has its size and content."""
    wrong = [what for client in clients for what in client.complaints]
    for file in (file for client in clients for file in client.files):
        if not file.now:
            continue
        try:
            data = nfs3.read_all(conn, nfs3.lookup(conn, folder, file.name))
        except rpc.Refused as err:
            wrong.append(f"{file.name}: {err}")
            continue
        wrong += file.check(data)
    return wrong
