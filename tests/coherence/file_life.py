# SPDX-License-Identifier: LGPL-3.0-or-later
"""The life of one file: quiet, read into the caches, changed, read at once.

The plugin caches a version 2 s after its last change, and does without the
cache for 5 s after somebody else has changed the file.  So each file is quiet
for longer than one of the two; then the gateways read it, twice; then some
blocks are written, and read through other ways in the moment in which the
WRITE is acknowledged.  Many files are at different points of this life.
"""
import collections
import random
import threading
import time
import traceback

import history
from history import ABSENT, BLOCK, DATA, ZEROS, History, Wrong

SETTLED_S = 2.3
BYPASS_S = 5.4
PIECE = 16              # blocks of one READ or WRITE, at most


class World:
    """What all files share."""

    def __init__(self, ways, workers):
        self.ways = ways
        self.writers = {}               # side: its ways
        for way in ways:
            self.writers.setdefault(way.side, []).append(way)
        self.workers = workers
        self.stop = threading.Event()
        self.go = threading.Event()     # cleared before an eviction
        self.go.set()
        self.complaints = []
        self.lock = threading.Lock()
        self.seen = collections.Counter()
        self.files = 0

    def count(self, **what):
        with self.lock:
            self.seen.update({name.replace("_", " "): by
                              for name, by in what.items()})

    def complain(self, what):
        with self.lock:
            self.complaints.append(what)
        self.stop.set()

    def next_file(self):
        with self.lock:
            self.files += 1
            return self.files

    def any_way(self, rng, but=None):
        side = rng.choice([one for one in self.writers if one != but])
        return rng.choice(self.writers[side])

    def maker(self, rng):
        """Who makes, removes and renames."""
        return rng.choice([way for way in self.ways
                           if hasattr(way, "create")])


class File:
    """A file of some blocks, as the ways know it."""

    def __init__(self, world, name, fileid, blocks):
        self.world, self.name, self.fileid = world, name, fileid
        self.history = History(world.next_file(), blocks)
        self.size = blocks
        self.tokens = {}
        self.lock = threading.Lock()

    def token(self, way):
        """The file may have another name by now, so all are asked before."""
        with self.lock:
            if way not in self.tokens:
                self.tokens[way] = way.find(self.name, self.fileid)
            return self.tokens[way]

    def find_all(self):
        for way in self.world.ways:
            self.token(way)

    def forget(self):
        for way, token in self.tokens.items():
            way.forget(token)

    def read(self, way, first, count):
        token = self.token(way)
        read = self.history.begin_read(way, first, count)
        data, at_end = way.read(token, first * BLOCK, count * BLOCK)
        self.history.end_read(read, data, at_end)
        foreign = sum(1 for side in read.fresh if side not in (None,
                                                               way.side))
        own = sum(1 for side in read.fresh if side == way.side)
        self.world.count(
            READs=1, blocks_read=count, just_written_by_another=foreign,
            just_written_by_the_same_client=own,
            READs_of_those=bool(foreign))

    def read_all(self, way):
        for first in range(0, len(self.history.blocks), PIECE):
            self.read(way, first, min(PIECE, len(self.history.blocks) -
                                      first))

    def write(self, way, first, count, rng):
        which = range(first, first + count)
        with _Locked(self, which):
            numbers = self.history.begin(which, DATA, way)
            way.write(self.token(way), first * BLOCK,
                      self.history.data(first, numbers), rng)
            self.history.acknowledged(which, way, "WRITE")
        self.world.count(WRITEs=1)

    def truncate(self, way, size):
        """To fewer blocks, or to more: zeros."""
        low, high = sorted((size, self.size))
        self._change(range(low, high), ABSENT if size < self.size else ZEROS,
                     way, "SIZE", lambda token: way.truncate(
                         token, size * BLOCK))
        self.size = size

    def punch(self, way, first, count):
        self._change(range(first, first + count), ZEROS, way, "PUNCH",
                     lambda token: way.punch(token, first * BLOCK,
                                             count * BLOCK))

    def _change(self, which, kind, way, what, change):
        with _Locked(self, which):
            self.history.begin(which, kind, way)
            change(self.token(way))
            self.history.acknowledged(which, way, what)


class _Locked:
    """One writer of these blocks."""

    def __init__(self, file, which):
        self.locks = [file.history.blocks[index].writing for index in which]

    def __enter__(self):
        for lock in self.locks:
            lock.acquire()

    def __exit__(self, *_):
        for lock in self.locks:
            lock.release()


class FileLife(threading.Thread):
    def __init__(self, world, number, seed):
        super().__init__(name=f"file {number}", daemon=True)
        self.world = world
        self.rng = random.Random(f"{seed} {number}")
        self.base = f"f{number}"
        self.file = None
        self.readers = [way for way in world.ways if way.side in "AB"]

    def run(self):
        try:
            self.file = self.made(self.base)
            self.world.stop.wait(self.rng.random() * BYPASS_S)
            while not self.world.stop.is_set():
                self.cycle()
        except Wrong as wrong:
            self.world.complain(str(wrong))
        except Exception as err:  # noqa: BLE001 (told at the end)
            # An error that many callers share has a long traceback.
            self.world.complain(f"{self.name}: " + "".join(
                traceback.format_exception(err, chain=False, limit=-4)))

    def made(self, name):
        """A new file, all blocks written."""
        fileid = self.world.maker(self.rng).create(name)
        file = File(self.world, name, fileid, self.rng.randrange(16, 65))
        writer = self.world.any_way(self.rng)
        for first in range(0, file.size, PIECE):
            file.write(writer, first, min(PIECE, file.size - first), self.rng)
        file.find_all()
        return file

    def cycle(self):
        """Once around."""
        for wait in (self.rng.choice((SETTLED_S, BYPASS_S, BYPASS_S)),
                     self.rng.random() / 4):
            if self.world.stop.wait(wait):
                return
        # The others are settled, and what fetches them races with a write.
        if self.rng.random() < 0.8:
            self.fill()
        self.world.go.wait()
        self.rng.choices((self.burst, self.punch, self.replace, self.resize),
                         (86, 7, 4, 3))[0]()
        for reader in self.one_of_each():
            self.file.read_all(reader)

    def one_of_each(self):
        """A reader of each gateway, in any order."""
        readers = [self.rng.choice([way for way in self.readers
                                    if way.side == side]) for side in "AB"]
        self.rng.shuffle(readers)
        return readers

    def fill(self):
        for reader in self.one_of_each() * 2:
            self.file.read_all(reader)

    # --- changes

    def burst(self):
        """Some blocks, by one or two writers at once, some READs beside."""
        writers = [self.world.any_way(self.rng)]
        if self.rng.random() < 0.3:
            writers.append(self.world.any_way(self.rng))
        size = self.file.size
        firsts = self.rng.sample(range(0, size, 4), self.rng.randrange(1, 5))
        seen = threading.Event()
        jobs = [self.world.workers.submit(
            self.race, self.rng.choice(self.readers), firsts[0], seen)
            for _ in range(self.rng.randrange(3))]
        changes = [self.world.workers.submit(
            self.write_and_read, self.rng.choice(writers), first,
            min(self.rng.randrange(1, 5), size - first), self.rng.random())
            for first in firsts]
        for change in changes:
            change.exception()
        seen.set()
        for job in changes + jobs:
            job.result()
        self.world.count(bursts=1)

    def write_and_read(self, writer, first, count, seed):
        rng = random.Random(seed)
        # The gateways' own cache first: of them, one that did not write.
        readers = [rng.choice([way for way in self.readers
                               if way.side != writer.side]),
                   self.world.any_way(rng), rng.choice(self.readers)]
        if rng.random() < 0.3:
            rng.shuffle(readers)
        self.file.write(writer, first, count, rng)
        for reader in readers:
            self.file.read(reader, first, count)

    def race(self, reader, first, end):
        """READs that overlap the WRITEs."""
        count = min(PIECE, self.file.size - first)
        while not end.is_set():
            self.file.read(reader, first, count)
            time.sleep(0.001)

    def punch(self):
        way = self.rng.choice([way for way in self.world.ways if way.punches])
        first = self.rng.randrange(self.file.size - 4)
        count = self.rng.randrange(1, 5)
        self.file.punch(way, first, count)
        for reader in self.one_of_each():
            self.file.read(reader, first, count)
        self.world.count(holes_punched=1)

    def resize(self):
        """Shorter, and as long as before, by anybody; nobody reads meanwhile
        (docs/limits.md, Truncated while read)."""
        size = self.file.size
        for new in (self.rng.randrange(1, size), size):
            self.file.truncate(self.world.any_way(self.rng), new)
            for reader in self.one_of_each():
                self.file.read_all(reader)
        self.world.count(resized=1)

    def replace(self):
        """Another file takes the name."""
        old = self.file
        if self.rng.random() < 0.5:
            new = self.made(self.base + ".new")
            self.world.maker(self.rng).rename(new.name, self.base)
            new.name = self.base
            self.world.count(renamed_over=1)
        else:
            self.world.maker(self.rng).remove(self.base)
            new = self.made(self.base)
            self.world.count(removed_and_made=1)
        old.forget()
        # By its name, from those that may remember the old one.
        new.forget()
        new.tokens = {}
        new.find_all()
        self.file = new
        for reader in self.one_of_each():
            new.read_all(reader)


assert history.CELLS * history.CELL.size == BLOCK
