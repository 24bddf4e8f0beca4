#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Random operations, one after the other, against a model in memory.

    model.py [--seeds N] [--first N] [--running PORT:PSEUDO]
             MINUTES

Two exports that share a CephFS client, and another CephFS client, read, write,
shorten, lengthen and punch three files of up to 9 MiB; OPEN with truncation,
GETATTR, and pauses that let the read cache take a file.  Offsets lie near the
beginning, the end, and the borders of objects.  Each answer has to be what the
model says: data, size, end of file.  A READ may be short.

MINUTES are shared by N seeds (20), from --first (1) on.  --running: Ganesha
runs, with that export and /model.  The other CephFS client has no object
cache: with one, libcephfs keeps holes that others have filled (docs/limits.md).

Ends at the first difference, with the last operations and status 1.
"""
import argparse
import os
import random
import sys
import time
from collections import Counter, deque
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from access_paths import until_answered
from lab_program import lab
from nfs import nfs4
from nfs.xdr import number, wide

SECOND = """EXPORT {
    Export_Id = 41; Path = /; Pseudo = /model; Protocols = 3, 4;
    Access_Type = RW; Squash = none; SecType = sys; Transports = TCP;
    Attr_Expiration_Time = 0;
    FSAL { Name = CEPH_ASYNC; Cmount_Path = "/"; }
}"""
FILES = 3
MOST = 9 << 20
OBJECT = 4 << 20
LAST = 25               # operations that are shown
WEIGHTS = {"read": 60, "write": 16, "cut": 6, "punch": 6, "empty": 1.5,
           "pause": 1.5, "size": 5}


class Export:
    """NFSv4, by anonymous stateids."""

    def __init__(self, port, pseudo, names):
        self.name = pseudo
        self.names = names
        self.client = nfs4.Client(port, f"model-{os.getpid()}{pseudo}",
                                  pseudo=pseudo)
        for name in names:
            self.client.open(name, create=nfs4.UNCHECKED).close()
        self.handles = [self.client.lookup(name) for name in names]

    def read(self, file, offset, count):
        """Data, and is it the end."""
        return until_answered(lambda: self.client.compound(
            nfs4.put(self.handles[file]),
            (25, nfs4.ANONYMOUS + wide(offset) + number(count),
             lambda reply: (bool(reply.number()), reply.opaque())))[-1][::-1])

    def write(self, file, offset, data):
        done = 0
        while done < len(data):
            done += until_answered(lambda at=done: self.client.write(
                self.handles[file], offset + at, data[at:]))

    def cut(self, file, size):
        until_answered(lambda: self.client.set(self.handles[file], size=size))

    def punch(self, file, offset, count):
        until_answered(lambda: self.client.deallocate(
            self.handles[file], offset, count))

    def empty(self, file):
        until_answered(lambda: self.client.open(
            self.names[file], create=nfs4.UNCHECKED, size=0)).close()

    def size(self, file):
        return until_answered(lambda: self.client.change_and_size(
            self.handles[file]))[1]

    def end(self):
        self.client.leave()


class Ceph:
    """The referee."""
    name = "ceph"

    def __init__(self, names):
        import cephfs       # only there
        self.names = names
        self.ceph = cephfs.LibCephFS(conffile="/etc/ceph/ceph.conf")
        self.ceph.conf_set("client_oc", "false")
        self.ceph.mount()
        self.fds = [self.ceph.open(f"/{name}", os.O_RDWR, 0o644)
                    for name in names]

    def read(self, file, offset, count):
        return self.ceph.read(self.fds[file], offset, count), None

    def write(self, file, offset, data):
        assert self.ceph.write(self.fds[file], data, offset) == len(data)

    def cut(self, file, size):
        self.ceph.ftruncate(self.fds[file], size)

    def size(self, file):
        return self.ceph.stat(f"/{self.names[file]}").st_size

    def end(self):
        for fd in self.fds:
            self.ceph.close(fd)
        for name in self.names:
            self.ceph.unlink(f"/{name}")
        self.ceph.shutdown()


class Differs(Exception):
    pass


class Run:
    """One seed."""

    def __init__(self, seed, at):
        names = [f"model-{seed}-{time.time_ns()}-{i}" for i in range(FILES)]
        self.rng = random.Random(seed)
        port, first = at.split(":")
        self.exports = [Export(int(port), pseudo, names)
                        for pseudo in (first, "/model")]
        self.ceph = Ceph(names)
        self.files = [bytearray() for _ in names]
        self.count = Counter()
        self.last = deque(maxlen=LAST)

    def run(self, end):
        while time.monotonic() < end:
            self.step()
        for way in (*self.exports, self.ceph):
            way.end()

    def step(self):
        rng = self.rng
        file = rng.randrange(FILES)
        size = len(self.files[file])
        near = rng.choice((0, size, size // 2, OBJECT, 2 * OBJECT,
                           rng.randrange(MOST)))
        offset = max(0, min(MOST - 1, near + rng.choice(
            (0, 0, -1, 1, -4096, 4096, rng.randrange(-70000, 70000)))))
        count = rng.choice((1, 7, 4096, 4096, 65536, 131072, 1 << 20,
                            rng.randrange(1, 300000)))
        what, = rng.choices(list(WEIGHTS), list(WEIGHTS.values()))
        ways = self.exports * 2
        if what not in ("punch", "empty"):
            ways.append(self.ceph)
        way = rng.choice(ways)
        self.last.append(f"{way.name} {what} file {file} offset {offset} "
                         f"count {count} size {size}")
        self.count[what] += 1
        getattr(self, what)(way, file, offset, count)

    def read(self, way, file, offset, count):
        for _ in range(self.rng.choice((1, 1, 3))):
            data, end = way.read(file, offset, count)
            self.judge(file, offset, count, data, end)

    def judge(self, file, offset, count, data, end):
        model = self.files[file]
        want = bytes(model[offset:offset + count])
        if data != want[:len(data)]:
            at = next(i for i, byte in enumerate(data)
                      if i >= len(want) or byte != want[i])
            raise Differs(f"byte {at} of {len(data)}: "
                          f"{data[at:at + 16].hex()}, "
                          f"not {want[at:at + 16].hex()}")
        if end and offset + len(data) < len(model):
            raise Differs(f"the end, after {len(data)} bytes")
        if not data and end is False and offset < len(model):
            raise Differs("nothing, and not the end")
        if end is None and len(data) < len(want):
            raise Differs(f"{len(data)} bytes")

    def write(self, way, file, offset, count):
        model = self.files[file]
        data = bytes([self.rng.randrange(1, 256)]) * count
        way.write(file, offset, data)
        model.extend(bytes(max(0, offset - len(model))))
        model[offset:offset + count] = data

    def cut(self, way, file, offset, _count):
        model = self.files[file]
        way.cut(file, offset)
        del model[offset:]
        model.extend(bytes(offset - len(model)))

    def punch(self, way, file, offset, count):
        model = self.files[file]
        way.punch(file, offset, count)
        end = min(offset + count, len(model))
        if offset < end:
            model[offset:end] = bytes(end - offset)

    def empty(self, way, file, _offset, _count):
        way.empty(file)
        self.files[file].clear()

    def size(self, way, file, _offset, _count):
        size = way.size(file)
        if size != len(self.files[file]):
            raise Differs(f"a size of {size}")

    def pause(self, _way, _file, _offset, _count):
        time.sleep(self.rng.choice((0.05, 0.5, 2.3)))


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--running", metavar="PORT:PSEUDO")
    parser.add_argument("minutes", type=float)
    return parser.parse_args()


def main():
    args = options()
    if not args.running:
        lab("up", "--fsal", "CEPH_ASYNC", "--block", "", "--core", "",
            "--export", 'Cmount_Path = "/";', "--append", SECOND)
    total = Counter()
    for seed in range(args.first, args.first + args.seeds):
        run = Run(seed, args.running or "2049:/ceph")
        try:
            run.run(time.monotonic() + args.minutes * 60 / args.seeds)
        except Differs as err:
            print("\n".join(run.last), f"seed {seed}: {err}", sep="\n",
                  flush=True)
            return 1
        total += run.count
        print(f"{time.strftime('%T')} seed {seed}: {run.count.total()} "
              "operations", flush=True)
    print(f"model: {args.seeds} seeds, {total.total()} operations, "
          f"{total['read']} reads: no difference")
    return 0


if __name__ == "__main__":
    sys.exit(main())
