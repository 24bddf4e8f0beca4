# SPDX-License-Identifier: LGPL-3.0-or-later
"""NFSv3 requests whose status is what a test looks at."""
import time

from nfs import nfs3, rpc
from nfs.xdr import opaque

OK, NOENT, IO, NOSPC, JUKEBOX = 0, 2, 5, 28, 10008
BLOCK = 4096
SERVES = r"a new CephFS client serves after"


def content(number):
    return b"%016d" % number * (BLOCK // 16)


class Asker:
    """A connection to an export, and how long each answer took."""

    def __init__(self, pseudo="/ceph", port=2049):
        self.connection = rpc.Concurrent(port)
        self.root = nfs3.root_of(pseudo, port + 1)
        self.name = f"asked-{time.time_ns()}"
        self.longest = 0

    def ask(self, procedure, arguments, seconds=30):
        """The status."""
        began = time.monotonic()
        reply = self.connection.call(procedure, arguments, seconds=seconds)
        self.longest = max(self.longest, time.monotonic() - began)
        return reply.number()

    def new_file(self, name="", blocks=1):
        """The handle of a file that is written."""
        handle = nfs3.create(self.connection, self.root, self.name + name)
        for number in range(blocks):
            nfs3.write(self.connection, handle, number * BLOCK,
                       content(number))
        return handle

    def write(self, handle, number=0, **seconds):
        return self.ask(nfs3.WRITE, nfs3.write_arguments(
            handle, number * BLOCK, content(number)), **seconds)

    def read(self, handle, number=0, **seconds):
        return self.ask(nfs3.READ, nfs3.read_arguments(
            handle, number * BLOCK, BLOCK), **seconds)

    def look(self, handle, **seconds):
        return self.ask(nfs3.GETATTR, opaque(handle), **seconds)

    def create(self, name, **seconds):
        return self.ask(nfs3.CREATE, nfs3.create_arguments(
            self.root, self.name + name), **seconds)

    def content_is(self, handle, number=0):
        return nfs3.read(self.connection, handle, number * BLOCK,
                         BLOCK) == content(number)

    def served_after(self, status, seconds, pause=0.1):
        """Until STATUS() is OK; the seconds that this took, and the other
        answers on the way."""
        began = time.monotonic()
        others = set()
        while (found := status()) != OK:
            others.add(found)
            assert time.monotonic() - began < seconds, \
                f"status {found} after {seconds} s"
            time.sleep(pause)
        return time.monotonic() - began, others

    def close(self):
        self.connection.close()
