#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""What a write costs the metadata server, and what its events consist of.

    journal.py writes      events, bytes and counters per write, each mode,
                           FSAL_CEPH and ceph-fuse beside it
    journal.py anatomy     the parts of an EUpdate `cap update`, by depth of
                           the path and length of the name
    journal.py recovery    how size and times come back after a crash
    journal.py probe [--gib 0.25,4,64] [--few] [--mode MODE]
                           how long a large file is unknown after a crash,
                           and what its growth cost

Needs a running lab; `anatomy` takes its file system down for a moment, for
cephfs-journal-tool reads no journal that an MDS is writing.
"""
import argparse
import json
import mmap
import os
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from lab_program import ceph, lab
from nfs import nfs3, rpc

PORT, MOUNT_PORT, PSEUDO = 2049, 2050, "/ceph"
BLOCK = 4096
WRITES = 1000
FILE_BLOCKS = 512
# column: where in the MDS' perf dump
COUNTERS = {
    "events": ("mds_log", "evadd"),
    "bytes": ("mds_log", "wrpos"),
    "caps_dirty": ("mds", "handle_client_caps_dirty"),
    "flush_ack": ("mds", "ceph_cap_op_flush_ack"),
    "requests": ("mds_server", "handle_client_request"),
    "mds.request": ("mds", "request"),
    "mds.reply": ("mds", "reply"),
    "osd writes": ("objecter", "op_w"),
}


def tool(*args, timeout=120, check=True):
    done = subprocess.run(
        args, stdin=subprocess.DEVNULL, text=True, timeout=timeout,
        capture_output=True, check=False)
    if check and done.returncode:
        raise SystemExit(f"{' '.join(args)}: status {done.returncode}\n"
                         f"{done.stdout}{done.stderr}")
    return done.stdout


def perf():
    return json.loads(ceph("tell", "mds.0", "perf", "dump"))


def counters():
    dump = perf()
    return {name: dump[a][b] for name, (a, b) in COUNTERS.items()}


def measured(work, *args):
    """What the counters grew by while WORK ran, and how long that was."""
    time.sleep(1)
    before = counters()
    began = time.monotonic()
    work(*args)
    seconds = time.monotonic() - began
    after = counters()
    return {name: after[name] - before[name] for name in COUNTERS}, seconds


# --- writes

class Gateway:
    """A file behind the gateway."""

    def __init__(self, name):
        self.conn = rpc.Connection(PORT)
        self.root = nfs3.root_of(PSEUDO, MOUNT_PORT)
        self.name = f"{name}-{time.time_ns()}"
        self.handle = nfs3.create(self.conn, self.root, self.name)

    def stable(self, offsets, depth):
        """FILE_SYNC writes of a block, DEPTH in flight."""
        waiting = 0
        for offset in offsets:
            if waiting == depth:
                self.answer()
                waiting -= 1
            self.conn.send(nfs3.WRITE, nfs3.write_arguments(
                self.handle, offset, bytes(BLOCK), nfs3.FILE_SYNC))
            waiting += 1
        for _ in range(waiting):
            self.answer()

    def answer(self):
        reply = nfs3.written(nfs3.check(self.conn.receive()[1]))
        assert reply.count == BLOCK and reply.committed


def overwrites():
    return [n * 7 % FILE_BLOCKS * BLOCK for n in range(WRITES)]


def growths(start):
    return [start + n * BLOCK for n in range(WRITES)]


def print_row(what, seconds, row):
    cells = " | ".join(f"{row[name] / WRITES:.3f}" if name != "bytes" else
                       f"{row[name] / WRITES:.0f}" for name in COUNTERS)
    print(f"| {what} | {cells} | {WRITES / seconds:.0f} |", flush=True)


def gateway_rows(label):
    for depth in (1, 16):
        file = Gateway("journal")
        row, seconds = measured(file.stable, growths(0), depth)
        print_row(f"{label}, growth, {depth} in flight", seconds, row)
        row, seconds = measured(file.stable, overwrites(), depth)
        print_row(f"{label}, overwrite, {depth} in flight", seconds, row)


def fuse_rows():
    """ceph-fuse, the same writes by O_DIRECT with each kind of sync."""
    with tempfile.TemporaryDirectory() as top:
        tool("ceph-fuse", top)
        try:
            for name, sync in (("O_DIRECT", None),
                               ("O_DIRECT, fdatasync", os.fdatasync),
                               ("O_DIRECT, fsync", os.fsync)):
                fuse_file(top, name, sync)
        finally:
            tool("umount", top)


def fuse_file(top, name, sync):
    buffer = mmap.mmap(-1, BLOCK)
    fd = os.open(f"{top}/fuse-{time.time_ns()}",
                 os.O_RDWR | os.O_CREAT | os.O_DIRECT)

    def write(offsets):
        for offset in offsets:
            assert os.pwrite(fd, buffer, offset) == BLOCK
            if sync:
                sync(fd)
    row, seconds = measured(write, growths(0))
    print_row(f"ceph-fuse, {name}, growth", seconds, row)
    row, seconds = measured(write, overwrites())
    print_row(f"ceph-fuse, {name}, overwrite", seconds, row)
    os.close(fd)


def writes():
    print(f"| per 4 KiB write | {' | '.join(COUNTERS)} | IOPS |")
    print(f"|---|{'---|' * (len(COUNTERS) + 1)}")
    for mode in ("data", "fdatasync", "full"):
        lab("ganesha", "restart", "--fsal", "CEPH_ASYNC", "--export",
            f"Stable_Write = {mode};")
        gateway_rows(mode)
    lab("ganesha", "restart", "--fsal", "CEPH", "--export", "")
    gateway_rows("FSAL_CEPH")
    lab("ganesha", "stop")
    lab("evict", check=False)   # FSAL_CEPH's stays
    fuse_rows()
    lab("ganesha", "start", "--fsal", "CEPH_ASYNC", "--export", "")


# --- anatomy

class Decoder:
    """Ceph's encoding, as far as lengths go."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def take(self, form):
        value, = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return value

    def skip(self, count):
        self.at += count
        return count

    def string(self):
        count = self.take("I")
        self.at += count
        return self.data[self.at - count:self.at].decode()

    def framed(self):
        """Past version, compat and length: where the struct ends."""
        self.skip(2)
        count = self.take("I")
        return self.at + count


def fullbit(decoder, parts, what):
    """One dentry with its inode: EMetaBlob::fullbit."""
    begin = decoder.at
    end = decoder.framed()
    name = decoder.string()
    decoder.skip(24)            # first and last snapshot, version
    inode_begin = decoder.at
    inode = decoder.framed() - inode_begin
    parts[f"{what}: inode"] += inode
    parts[f"{what}: name"] += len(name)
    parts[f"{what}: dentry, xattrs, snapshots"] += \
        end - begin - inode - len(name)
    decoder.at = end
    return name


def anatomy_of(data):
    """The parts of one EUpdate, in bytes; and whose dentries it has."""
    decoder = Decoder(data)
    parts = Counter()
    names = []
    end = decoder.framed()
    decoder.skip(8)
    kind = decoder.string()
    blob_end = decoder.framed()
    decoder.skip(12 * decoder.take("I"))
    lumps = decoder.take("I")
    for number in range(lumps):
        what = "the file" if number == lumps - 1 else "directories above"
        decoder.skip(12)
        decoder.framed()
        fnode_end = decoder.framed()
        parts["statistics of directories (fnode)"] += \
            fnode_end - decoder.at + 6
        decoder.at = fnode_end + 4
        full, _remote, _null = (decoder.take("I") for _ in range(3))
        bits_end = decoder.take("I") + decoder.at
        if full:
            for _ in range(decoder.take("I")):
                names.append(fullbit(decoder, parts, what))
        decoder.at = bits_end
    for _ in range(decoder.take("I")):
        names.append(fullbit(decoder, parts, "root") or "/")
    assert decoder.at <= blob_end <= end == len(data), kind
    parts["frame"] = len(data) - sum(parts.values())
    return kind, lumps, names, parts


CASES = (("depth 1", "", "f"), ("depth 3", "d/d", "f"),
         ("depth 8", "/".join("d" * 7), "f"),
         ("depth 1, name of 200", "", "n" * 200),
         ("depth 8, names of 100", "/".join(["d" * 100] * 7), "n" * 100))


def anatomy():
    lab("ganesha", "restart", "--fsal", "CEPH_ASYNC", "--export",
        "Stable_Write = full;")
    conn = rpc.Connection(PORT)
    top = f"anatomy-{time.time_ns()}"
    inodes = {}
    for case, folders, name in CASES:
        folder = nfs3.root_of(PSEUDO, MOUNT_PORT)
        # depth 1 is a file in the file system's root
        for part in folders and [top + folders[:1] + str(len(inodes)),
                                 *folders.split("/")[1:]]:
            folder = nfs3.make_directory(conn, folder, part)
        name += str(len(inodes)) if folders else str(time.time_ns())
        handle = nfs3.create(conn, folder, name)
        for _ in range(20):
            nfs3.write(conn, handle, 0, bytes(BLOCK))
            time.sleep(0.1)     # some longer apart than statistics wait
        inodes[case] = name
    with tempfile.TemporaryDirectory() as where:
        dump_journal(where)
        show(where, inodes)


def dump_journal(where):
    """The events as files; the MDS is away for as long."""
    ceph("fs", "fail", "cephfs")
    try:
        print(tool("cephfs-journal-tool", "--rank=cephfs:0", "event", "get",
                   "summary"))
        tool("cephfs-journal-tool", "--rank=cephfs:0", "event", "get",
             "binary", "--path", f"{where}/events")
    finally:
        ceph("fs", "set", "cephfs", "joinable", "true")


def show(where, inodes):
    events = []
    for path in Path(f"{where}/events").glob("*_UPDATE.bin"):
        event = anatomy_of(path.read_bytes())
        if event[0] == "cap update":
            events.append((event, path.stat().st_size))
    for case, name in inodes.items():
        mine = [(e, size) for e, size in events if name in e[2]]
        sizes = Counter(size for _, size in mine)
        print(f"{case}: {len(mine)} cap updates, bytes x times: "
              f"{dict(sorted(sizes.items()))}")
        for size in (min(sizes), max(sizes)):
            (_, lumps, names, parts), _ = next(
                one for one in mine if one[1] == size)
            print(f"  {size} bytes: {lumps} directories, "
                  f"{len(names)} inodes")
            for part, count in sorted(parts.items()):
                print(f"    {count:6} {part}")


# --- recovery

def recovery():
    """Acknowledged appends in data mode, the gateway killed, and back."""
    lab("ganesha", "restart", "--fsal", "CEPH_ASYNC", "--export",
        "Stable_Write = data;")
    folder = nfs3.root_of(PSEUDO, MOUNT_PORT)
    rows = []
    for run in range(10):
        conn = rpc.Connection(PORT)
        before = perf()
        handle = nfs3.create(conn, folder, f"recovery-{time.time_ns()}")
        for number in range(50 + run):
            reply = nfs3.write(conn, handle, number * BLOCK, bytes(BLOCK))
        last = nfs3.get_attributes(conn, handle)
        assert reply.committed
        inode = inode_in_mds(conn, handle)
        lab("ganesha", "kill9")
        lab("ganesha", "start")
        now = nfs3.get_attributes(rpc.Connection(PORT), handle)
        after = perf()
        grew = {f"{a}.{b}": after[a][b] - before[a][b] for a, b in (
            ("mds_cache", "recovery_started"),
            ("mds_cache", "recovery_completed"), ("mds_log", "evadd"))}
        rows.append((now.mtime - last.mtime, now.ctime - last.ctime))
        print(f"client saw size {last.size}; MDS had size {inode['size']}, "
              f"client_ranges {inode['client_ranges']}; after the crash "
              f"size {now.size}, mtime {rows[-1][0] / 1e6:+.3f} ms, ctime "
              f"{rows[-1][1] / 1e6:+.3f} ms; {grew}", flush=True)
        assert now.size == last.size
    for what, values in zip(("mtime", "ctime"), zip(*rows)):
        print(f"{what} after recovery: {min(values) / 1e6:+.3f} to "
              f"{max(values) / 1e6:+.3f} ms")


def inode_in_mds(conn, handle):
    """What the MDS has of it, before anybody gives capabilities back."""
    number = nfs3.get_attributes(conn, handle).fileid
    return json.loads(ceph("tell", "mds.0", "dump", "inode", number))


# --- probe

GIB = 1 << 30
OBJECT = 4 << 20        # the file system's layout
PROBE_HEAD = (
    "GiB", "blocks", "growth: MDS events", "client_ranges, GiB",
    "a mount answers, s", "GETATTR answers, s", "ceph-fuse's stat, s",
    "stats of objects")


class Stat(threading.Thread):
    """A stat by another CephFS client, begun while nobody answers for the
    file: when it ended, and the size that it got."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path = path
        self.ended = self.size = None
        self.start()

    def run(self):
        self.size = os.stat(self.path).st_size
        self.ended = time.monotonic()


def places(size, few):
    """Where a block is written: at the start of each object, for a memstore
    fills what is before a block; or, FEW, of one object each time the file
    has doubled.  The last block is the end of SIZE."""
    starts = range(0, size - BLOCK, OBJECT)
    if few:
        starts = [n * OBJECT for n in (0, *(1 << k for k in range(60)))
                  if n < len(starts)]
    return [*starts, size - BLOCK]


def crash_of(size, few, top):
    """One file grown, its gateway killed and started: a row."""
    file = Gateway("probe")
    offsets = places(size, few)
    grown, _ = measured(file.stable, offsets, 16)
    conn = file.conn
    inode = inode_in_mds(conn, file.handle)
    before = perf()
    lab("ganesha", "kill9")
    began = time.monotonic()
    other = Stat(f"{top}/{file.name}")
    lab("ganesha", "start")
    mounted = time.monotonic() - began
    now = nfs3.get_attributes(rpc.Connection(PORT, timeout=900), file.handle)
    known = time.monotonic() - began
    other.join(60)
    after = perf()
    stats = after["objecter"]["osdop_stat"] - before["objecter"]["osdop_stat"]
    ranges = max(one["byte range"]["last"] for one in inode["client_ranges"])
    assert now.size == other.size == size, (now.size, other.size, size)
    assert after["mds_cache"]["recovery_completed"] > \
        before["mds_cache"]["recovery_completed"]
    # The MDS looks at each object below the range, there or not.
    assert stats >= size // OBJECT, stats
    nfs3.remove(rpc.Connection(PORT), file.root, file.name)
    return (f"{size / GIB:g}", len(offsets), grown["events"],
            f"{ranges / GIB:g}", f"{mounted:.1f}", f"{known:.1f}",
            f"{other.ended - began:.1f}", stats)


def probe(gib, few, mode):
    lab("ganesha", "restart", "--fsal", "CEPH_ASYNC", "--export",
        f"Stable_Write = {mode};")
    print(f"| {' | '.join(PROBE_HEAD)} |\n|{'---|' * len(PROBE_HEAD)}")
    with tempfile.TemporaryDirectory() as top:
        tool("ceph-fuse", top)
        try:
            for each in gib:
                row = crash_of(int(each * GIB), few, top)
                print(f"| {' | '.join(map(str, row))} |", flush=True)
        finally:
            tool("umount", top)


def main():
    parts = {"writes": writes, "anatomy": anatomy, "recovery": recovery}
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=(*parts, "probe"))
    parser.add_argument("--gib", default="0.25,4,64")
    parser.add_argument("--few", action="store_true",
                        help="a handful of blocks, the rest a hole")
    parser.add_argument("--mode", default="data",
                        choices=("data", "fdatasync", "full"))
    args = parser.parse_args()
    if args.part == "probe":
        probe([float(one) for one in args.gib.split(",")], args.few,
              args.mode)
    else:
        parts[args.part]()


if __name__ == "__main__":
    main()
