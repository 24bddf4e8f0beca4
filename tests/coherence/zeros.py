#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Does a READ beside a truncation and a WRITE give zeros that nobody wrote?

One writer truncates a file to 0 and writes 64 bytes of one letter, again and
again.  READERS processes read the file: each READ finds it empty, or all 64
bytes.  With --grow nobody truncates: the writer appends lines of 64 bytes, and
the readers read at the end, as `tail -f` does.

    zeros.py [--seconds N] [--readers N] [--vers 3|4] [--at PORT:PSEUDO]
             [--writer PORT:PSEUDO|ceph] [--grow]

--writer: another gateway or export, or a CephFS client of its own.  In the lab,
with a Ganesha that runs.  The last line has the figures; exit status 1: a READ
gave bytes that no version had.
"""
import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from access_paths import until_answered
from nfs import nfs3, nfs4, rpc

LINE = 64


class OverV4:
    """A way to one file."""

    def __init__(self, port, pseudo, name):
        self.client = nfs4.Client(port, f"{name}-{os.getpid()}",
                                  pseudo=pseudo)
        self.file = until_answered(
            lambda: self.client.open(name, create=nfs4.UNCHECKED))

    def read(self, offset, count):
        return until_answered(lambda: self.file.read(offset, count))

    def write(self, offset, data):
        until_answered(lambda: self.file.write(offset, data))

    def empty(self):
        until_answered(lambda: self.client.set(
            self.file.handle, self.file.stateid, size=0))


class OverV3:
    def __init__(self, port, pseudo, name):
        self.connection = rpc.Connection(port)
        root = nfs3.root_of(pseudo, port + 1)
        self.handle = until_answered(lambda: self._file(root, name))

    def _file(self, root, name):
        try:
            return nfs3.lookup(self.connection, root, name)
        except nfs3.Refused as err:
            if err.status != nfs4.NOENT:
                raise
        return nfs3.create(self.connection, root, name)

    def read(self, offset, count):
        return until_answered(lambda: nfs3.read(
            self.connection, self.handle, offset, count))

    def write(self, offset, data):
        until_answered(lambda: nfs3.write(
            self.connection, self.handle, offset, data))

    def empty(self):
        until_answered(lambda: nfs3.call(
            self.connection, nfs3.SETATTR, nfs3.truncation(self.handle)))


class OverCephfs:
    """Without the object cache, which would answer with zeros of its own."""

    def __init__(self, name):
        import cephfs       # only there
        self.ceph = cephfs.LibCephFS(conffile="/etc/ceph/ceph.conf")
        self.ceph.conf_set("client_oc", "false")
        self.ceph.mount()
        self.fd = self.ceph.open(f"/{name}", os.O_RDWR | os.O_CREAT, 0o666)

    def write(self, offset, data):
        self.ceph.write(self.fd, data, offset)

    def empty(self):
        self.ceph.ftruncate(self.fd, 0)


def way_to(place, vers, name):
    if place == "ceph":
        return OverCephfs(name)
    port, pseudo = place.split(":")
    return {"3": OverV3, "4": OverV4}[vers](int(port), pseudo, name)


def kind_of(data):
    """What a READ has shown."""
    lines = {data[at:at + LINE] for at in range(0, len(data), LINE)}
    if not data:
        return "empty"
    if all(line == line[:1] * len(line) and line[0] for line in lines):
        return "data" if len(data) % LINE == 0 else "part"
    return "ZEROS" if b"\0" in data else "OTHER"


def read(options, name, end, results):
    way = way_to(options.at, options.vers, name)
    seen, at = Counter(), 0
    while time.time() < end:
        data = way.read(at, LINE)
        kind = kind_of(data)
        seen[kind] += 1
        if options.grow and kind == "data":
            at += LINE
        elif kind in ("ZEROS", "OTHER", "part"):
            print(f"{time.time():.3f} at {at}: {data.hex()}", flush=True)
    results.send(seen)


def change(options, name, end):
    """How many WRITEs."""
    way = way_to(options.writer or options.at, options.vers, name)
    count = 0
    while time.time() < end:
        line = bytes([65 + count % 26]) * LINE
        if options.grow:
            way.write(count * LINE, line)
        else:
            way.empty()
            way.write(0, line)
        count += 1
    return count


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--readers", type=int, default=3)
    parser.add_argument("--vers", choices=("3", "4"), default="4")
    parser.add_argument("--at", default="2049:/ceph")
    parser.add_argument("--writer")
    parser.add_argument("--grow", action="store_true")
    return parser.parse_args()


def main():
    options = parse()
    name = f"zeros-{time.time_ns()}"
    results, ends = multiprocessing.Pipe(duplex=False)
    end = time.time() + options.seconds
    writer = way_to(options.at, options.vers, name)     # It is there.
    readers = [multiprocessing.Process(
        target=read, args=(options, name, end, ends))
        for _ in range(options.readers)]
    for reader in readers:
        reader.start()
    del writer
    count = change(options, name, end)
    seen = sum((results.recv() for _ in readers), Counter())
    wrong = seen["ZEROS"] + seen["OTHER"] + seen["part"]
    print(f"{count} writes, {sum(seen.values())} READs: {seen['empty']} empty, "
          f"{seen['data']} data, {seen['ZEROS']} with zeros, "
          f"{seen['OTHER'] + seen['part']} torn", flush=True)
    os._exit(wrong > 0)


if __name__ == "__main__":
    main()
