# SPDX-License-Identifier: LGPL-3.0-or-later
"""The extended attributes of a file are listed while another client adds and
removes some: a list may have become longer than it was when the gateway
asked how long it is.
"""
import threading
import time

import pytest

from nfs import nfs3, nfs4, rpc

pytestmark = pytest.mark.measures

LISTERS = 4
ROUNDS = 5
SECONDS = 30
FIXED = b"always there"
# So that a list, once it is too long for somebody, stays so for a round.
COMING = [b"number %02d " % n + b"n" * (n * 5 % 200) for n in range(40)]
OTHERS_MS = 2000


class Again(threading.Thread):
    """Asks the same again and again, until it is told to stop."""

    def __init__(self, ask):
        super().__init__(daemon=True)
        self.ask = ask
        self.stopped = threading.Event()
        self.answers = 0
        self.seen = set()
        self.slowest_ms = 0
        self.began = time.monotonic()   # the latest
        self.error = None

    def run(self):
        try:
            while not self.stopped.is_set():
                self.began = time.monotonic()
                self.seen.add(self.ask())
                self.answers += 1
                self.slowest_ms = max(self.slowest_ms,
                                      (time.monotonic() - self.began) * 1000)
        except (AssertionError, OSError) as err:
            self.error = err


def lister(client, handle):
    def names():
        found, _, eof = client.list_xattrs(handle)
        assert eof and len(found) == len(set(found))
        return frozenset(found)
    return Again(names)


@pytest.fixture
def other(lab):
    """Somebody who has nothing to do with that file."""
    root = nfs3.root_of("/ceph", 2050)
    connection = rpc.Concurrent(2049)

    def attributes():
        time.sleep(0.02)
        return nfs3.get_attributes(connection, root).mode
    again = Again(attributes)
    yield again
    again.stopped.set()
    again.join(SECONDS)
    connection.close()


@pytest.fixture
def file(lab):
    """An open file and those who list its attributes; no worker that lists
    for ever is left behind."""
    clients = [nfs4.Client(2049, f"listing-{number}-{time.time_ns()}")
               for number in range(1 + LISTERS)]
    opened = clients[0].open(f"listed-{time.time_ns()}",
                             create=nfs4.UNCHECKED)
    clients[0].set_xattr(opened.handle, FIXED, b"v")
    listers = [lister(client, opened.handle) for client in clients[1:]]
    yield opened, listers
    for each in listers:
        each.stopped.set()
    for each in listers:
        each.join(2)
    if not any(each.is_alive() or each.error for each in listers):
        opened.close()
        for client in clients:
            client.leave()
    else:
        lab.ganesha("kill9")
        lab.ganesha("start")


def answered(listers, before, seconds):
    """Has each of them had two more answers, one of them asked for since?"""
    end = time.monotonic() + seconds
    while any(each.answers < count + 2 and each.is_alive()
              for each, count in zip(listers, before)):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def test_lists_end_while_attributes_come_and_go(file, other, record):
    opened, listers = file
    began = time.monotonic()
    for thread in (other, *listers):
        thread.start()
    rounds = 0
    for _ in range(ROUNDS):
        for name in COMING:
            opened.client.set_xattr(opened.handle, name, b"v")
        left = began + SECONDS - time.monotonic()
        if not answered(listers, [each.answers for each in listers], left):
            break
        for name in COMING:
            opened.client.remove_xattr(opened.handle, name)
        rounds += 1
    seconds = time.monotonic() - began
    stuck = sum(time.monotonic() - each.began > SECONDS / 2
                for each in listers)

    record(f"{sum(each.answers for each in listers)} LISTXATTRS by {LISTERS} "
           f"clients in {seconds:.1f} s, {rounds} of {ROUNDS} rounds of "
           f"{len(COMING)} attributes set and removed; {stuck} clients "
           f"without an answer, the slowest one took "
           f"{max(each.slowest_ms for each in listers):.0f} ms, GETATTR of "
           f"others {other.slowest_ms:.0f} ms")
    assert rounds == ROUNDS, f"a list had no end within {SECONDS} s"
    for each in (other, *listers):
        assert each.error is None, each.error
    lists = frozenset().union(*(each.seen for each in listers))
    assert len(lists) > 1, "nothing changed"
    for names in lists:
        assert FIXED in names and names <= {FIXED, *COMING}
    assert other.slowest_ms < OTHERS_MS
