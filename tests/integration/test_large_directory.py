# SPDX-License-Identifier: LGPL-3.0-or-later
"""A large directory, read a piece at a time while names come and go between
the pieces: who is there all the time is seen, and once.

CASYNC_ENTRIES=100000 for the number that stays; the default saves time.
"""
import contextlib
import os
import random
import time
from concurrent.futures import ThreadPoolExecutor

import cephfs
import pytest

from lab_program import ceph
from nfs import nfs3, nfs4, rpc

ENTRIES = int(os.environ.get("CASYNC_ENTRIES", "20000"))
GOING = 1500            # names that are removed, some in each walk
MAKERS = 8
SEED = 20260229         # any: the same names go each time
PAUSES = 40             # how often a walk is interrupted by changes
SECONDS = 60 + ENTRIES // 500


def names(kind, count):
    """Always the same: a cookie is made of the name's hash, and where two
    names have the same one depends on the names alone."""
    return [b"%s-entry-%06d" % (kind, number) for number in range(count)]


@contextlib.contextmanager
def ceph_client():
    fs = cephfs.LibCephFS(conffile="/etc/ceph/ceph.conf")
    fs.conf_set("admin_socket", "")
    fs.mount()
    try:
        yield fs
    finally:
        fs.shutdown()


class Directory:
    """What is in it, and how it changes."""

    def __init__(self, fs, name):
        self.fs, self.name = fs, name
        self.stay = set(names(b"staying", ENTRIES))
        self.going = names(b"going", GOING)
        random.Random(SEED).shuffle(self.going)
        self.new = iter(names(b"new", 100 * GOING))
        self.there = self.stay | set(self.going)
        self.connection = rpc.Concurrent(2049)
        self.handle = nfs3.lookup(self.connection, nfs3.root_of(
            "/ceph", 2050), name)

    def change(self):
        """One name goes by the gateway, one past it, and two come.  These by
        the gateway: the MDS answers nobody else about a new file before its
        journal is written, which may take 5 s (mds_tick_interval) a file."""
        for by_gateway in (True, False):
            gone, come = self.going.pop(), next(self.new)
            if by_gateway:
                nfs3.remove(self.connection, self.handle, gone)
            else:
                self.fs.unlink(b"%s/%s" % (self.name.encode(), gone))
            nfs3.create(self.connection, self.handle, come.decode())
            self.there -= {gone}
            self.there |= {come}


def make(name, entries):
    """By a client that is gone with its capabilities afterwards."""
    with ceph_client() as fs, ThreadPoolExecutor(MAKERS) as makers:
        fs.mkdir(name, 0o755)
        list(makers.map(lambda entry: fs.mknod(b"%s/%s" % (
            name.encode(), entry), 0o644), entries, chunksize=100))
    ceph("tell", "mds.0", "flush", "journal", timeout=120)


@pytest.fixture(scope="module")
def directory(cluster):
    cluster.ensure_default()
    began = time.monotonic()
    name = f"large-{time.time_ns()}"
    make(name, names(b"staying", ENTRIES) + names(b"going", GOING))
    with ceph_client() as fs:
        made = Directory(fs, name)
        made.seconds = time.monotonic() - began
        yield made
        made.connection.close()


class V3:
    plus = False

    def __init__(self, name):
        self.connection = rpc.Concurrent(2049)
        self.handle = nfs3.lookup(self.connection, nfs3.root_of(
            "/ceph", 2050), name)

    def piece(self, cookie, verifier):
        return nfs3.readdir(self.connection, self.handle, cookie, verifier,
                            plus=self.plus)

    def end(self):
        self.connection.close()


class V3Plus(V3):
    plus = True


class V4:
    minor = 2

    def __init__(self, name):
        self.client = nfs4.Client(2049, f"lister-{time.time_ns()}",
                                  minor=self.minor)
        self.handle = self.client.lookup(name)

    def piece(self, cookie, verifier):
        return self.client.readdir(self.handle, cookie, verifier)

    def end(self):
        self.client.leave()


class V41(V4):
    minor = 1


def walk(reader, cookie=0, pause=None):
    """Every entry from COOKIE on, piece by piece; PAUSE(entries) between
    them."""
    end = time.monotonic() + SECONDS
    verifier, eof = bytes(8), False
    while not eof:
        assert time.monotonic() < end, "no end of the directory"
        entries, eof, verifier = reader.piece(cookie, verifier)
        assert entries or eof, "an empty piece that is not the last"
        yield from (entry for entry in entries
                    if entry[0] not in (b".", b".."))
        if entries:
            cookie = entries[-1][1]
        if pause:
            pause()


def seen_once(entries, wanted):
    found = [name for name, _ in entries]
    assert len(found) == len(set(found)), sorted(
        name for name in set(found) if found.count(name) > 1)[:5]
    assert not wanted - set(found), \
        f"{len(wanted - set(found))} were not seen"
    return set(found)


@pytest.mark.parametrize("reader", (V3, V3Plus, V41, V4))
def test_names_come_and_go_between_the_pieces(directory, record, reader):
    reader = reader(directory.name)
    pieces = 0

    def pause():
        nonlocal pieces
        pieces += 1
        if pieces % every == 0:
            directory.change()
    every = max(1, ENTRIES // 100 // PAUSES)
    began = time.monotonic()
    before = set(directory.there)
    gone_before = len(directory.going)
    seen = seen_once(walk(reader, pause=pause), directory.stay)
    # some went before the walk came to them, and nobody else is seen
    assert seen <= before | directory.there
    record(f"{type(reader).__name__}: {len(seen)} entries in {pieces} "
           f"pieces, {2 * (gone_before - len(directory.going))} changes "
           f"between them, {time.monotonic() - began:.1f} s; the directory "
           f"was made in {directory.seconds:.1f} s")
    assert gone_before - len(directory.going) >= PAUSES // 2
    assert seen_once(walk(reader), directory.stay) == directory.there
    reader.end()


def test_what_is_removed_is_not_seen_afterwards(directory):
    """Not out of a buffer either, whoever removed it."""
    reader = V3(directory.name)
    removed = set()

    def pause():
        if len(directory.going) > GOING // 4:
            before = set(directory.there)
            directory.change()
            removed.update(before - directory.there)
    for name, _ in walk(reader, pause=pause):
        assert name not in removed
    assert removed
    reader.end()


def test_a_cookie_outlives_changes_and_the_daemon(cluster, directory):
    """It leads to the same place, for each version, whatever has changed and
    whoever serves."""
    old = list(walk(V3(directory.name)))
    cookies = dict(old)
    rng = random.Random(SEED)
    places = sorted(rng.sample(range(len(old)), 12))
    for _ in range(20):
        directory.change()
    cluster.ganesha("restart")
    directory.connection.close()
    directory.connection = rpc.Concurrent(2049)
    for reader in (V3, V3Plus, V41, V4):
        reader = reader(directory.name)
        for place in places:
            entries, _, _ = reader.piece(old[place][1], bytes(8))
            found = [entry for entry in entries if entry[0] in cookies]
            rest = [entry for entry in old[place + 1:]
                    if entry[0] in directory.there]
            assert found == rest[:len(found)]
            assert found or not rest
        reader.end()
