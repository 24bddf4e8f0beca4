# SPDX-License-Identifier: LGPL-3.0-or-later
"""What is measured: all scenarios, in their order.

Each of them answers a question of docs/performance.md, or a target.
"""
from __future__ import annotations

from dataclasses import replace

from peers import reading
from peers.case import (APPEND, CACHED, CLIENTS, GATEWAYS, IO, LARGER,
                        LATENCY, RATE, SERVERS, SLOW, STREAM, THOUSAND, Case,
                        Scenario, rados, rbd)
from peers.env import Env
from peers.loads import MIB, Files, Fio, Load, Meta, Nfs, Reading, Tree


def _small() -> Scenario:
    return Scenario(
        "small", "4 KiB random I/O, 128 in flight; NFSv3 by libnfs",
        (Case("stable-write", "stable write",
              (*SERVERS, "fdatasync", "full", "quiet", "rados", "rbd"),
              Nfs(IO), rados("write") + rbd("randwrite", "4k", 128),
              quick=(*GATEWAYS, "quiet", "fdatasync", "full", "rados")),
         Case("read", "read", (*SERVERS, "quiet", "rados", "rbd"),
              Nfs(IO, mix="read=100"),
              rados("rand") + rbd("randread", "4k", 128), quick=GATEWAYS)))


def _bluestore() -> Scenario:
    return Scenario(
        "bluestore", "4 KiB random I/O, 128 in flight, BlueStore",
        (Case("stable-write", "stable write", (*GATEWAYS, "rados"), Nfs(IO),
              rados("write"), quick=(*GATEWAYS, "rados")),),
        Env("bluestore"))


def _large() -> Scenario:
    return Scenario(
        "large", "1 MiB requests, 32 in flight, NFSv3 by libnfs",
        tuple(Case(way, f"{way}, 1 MiB", (*SERVERS, "rbd"),
                   Nfs(IO, mix=f"{way}=100", block="1M", connections=4,
                       depth=8), rbd(f"rand{way}", "1m", 32), STREAM,
                   quick=GATEWAYS) for way in ("write", "read")))


def _append() -> Scenario:
    who = (*SERVERS, "single")
    return Scenario(
        "append", "A database's log: stable sequential 4 KiB writes, 64 in "
        "flight on one file, one connection",
        (Case("append", "behind the end of the file", who,
              Nfs(APPEND, connections=1, depth=64, pattern="append"),
              quick=("casync", "ceph")),
         Case("overwrite", "over what is there", who,
              Nfs(IO, connections=1, depth=64, pattern="sequential"),
              quick=("casync", "ceph"))))


def _one() -> Scenario:
    load = Nfs(IO, connections=1, depth=1)
    return Scenario(
        "one", "One request at a time: latency",
        (Case("stable-write", "stable write, 4 KiB",
              (*SERVERS, "rbd", "rados"), load,
              rbd("randwrite", "4k", 1) + rados("write", 1),
              show=LATENCY, quick=("casync", "ceph")),
         Case("read", "read, 4 KiB", (*SERVERS, "rbd", "rados"),
              replace(load, mix="read=100"),
              rbd("randread", "4k", 1) + rados("rand", 1),
              show=LATENCY, quick=("casync", "ceph"))))


def _linux() -> Scenario:
    cases = []
    for rw, bs, title, show in (
            ("write", "4m", "sequential write, 4 MiB", STREAM),
            ("read", "4m", "sequential read, 4 MiB", STREAM),
            ("randwrite", "4k", "random write, 4 KiB", RATE),
            ("randread", "4k", "random read, 4 KiB", RATE)):
        cases.append(Case(
            rw, f"{title}, 64 in flight, direct",
            (*CLIENTS, "rbd", *(("kcephfsnocrc",) if bs == "4m" else ())),
            Fio(IO, rw, bs, 64), rbd(rw, bs, 64), show,
            quick=(*GATEWAYS, "kcephfs", "kcephfsnocrc") if rw == "read" else
            ("casync", "kcephfs")))
    return Scenario("linux", "A Linux client: kcephfs against NFSv4.2",
                    tuple(cases))


def _far() -> Scenario:
    """The gateway is on the OSDs' machine: OSDs and MDS are as far from
    kcephfs as the gateway is from the NFS client."""
    return Scenario(
        "far", "A Linux client some way off from all that it talks to "
        "(netem), 4 KiB, direct",
        (Case("randwrite-0.5-1", "0.5 ms, random writes, one in flight",
              ("tenth", "ceph", "kcephfs"),
              Fio(IO, "randwrite", "4k", 1, rtt_ms=0.5)),))


def _sync() -> Scenario:
    """libaio calls fsync where fdatasync is asked for: so the two that tell
    them apart are 16 threads that write one after the other."""
    who = (*CLIENTS, "full")
    psync = Fio(IO, "randwrite", "4k", 1, jobs=16, engine="psync")
    return Scenario(
        "sync", "Who asks the MDS when: 4 KiB random direct writes in a "
        "Linux client, with fsync and fdatasync after each",
        tuple(Case(name, title, who, load,
                   show=("per_s", "journal", "p99_us"))
              for name, title, load in (
                  ("direct", "O_DIRECT, libaio, 128 in flight",
                   Fio(IO, "randwrite", "4k", 128)),
                  ("fsync", "O_DIRECT, fsync after each, psync, 16 jobs",
                   replace(psync, more=("--fsync=1",))),
                  ("fdatasync", "O_DIRECT, fdatasync after each, psync, 16 "
                   "jobs", replace(psync, more=("--fdatasync=1",))))))


def _journal_paused() -> Scenario:
    kernel: Load = Fio(IO, "randwrite", "4k", 128, pause_journal=True)
    return Scenario(
        "journal-paused", "Writes while the MDS writes no journal "
        "(mds_log_pause); a second after the load it goes on",
        (Case("write", "stable random write, 4 KiB, 128 in flight",
              (*GATEWAYS, "kcephfs"), Nfs(IO, pause_journal=True),
              (("kcephfs", kernel),), ("per_s", "journal")),))


def _page_cache() -> Scenario:
    """Of the client, that asks the server before it believes it."""
    who = ("casync", "ceph", "knfsd")
    load = Fio(SLOW, "randread", "4k", 16, vers="3", opts="actimeo=0")
    apart = replace(load, files=LARGER, depth=1, direct=False, warm=True,
                    mem="256M", engine="psync")
    return Scenario(
        "page-cache", "4 KiB random reads in a Linux client, NFSv3, "
        "actimeo=0",
        (Case("buffered", "a file in the client's page cache, 16 in flight",
              who, replace(load, direct=False, warm=True)),
         Case("direct", "the same, O_DIRECT", who, load),
         Case("larger", "a file of 640 MiB, the client has 256 MiB, one at a "
              "time", who, apart)))


def _getattr() -> Scenario:
    loads = (
        ("write-4k", "4 KiB stable writes", Nfs(IO, probe_ms=5)),
        ("read-4k", "4 KiB reads", Nfs(IO, "read=100", probe_ms=5)),
        ("read-1m", "1 MiB reads",
         Nfs(IO, "read=100", block="1M", connections=4, depth=8,
             probe_ms=5)))
    return Scenario(
        "getattr", "What another client's GETATTR takes while data saturate "
        "the gateway",
        tuple(Case(name, f"beside {title}", GATEWAYS, load,
                   show=("getattr_p99_us", "getattr_p50_us",
                         "getattr_corrected_p99_us", "per_s"),
                   quick=("casync", "ceph") if name.startswith("read") else ())
              for name, title, load in loads))


def _mixed() -> Scenario:
    mix = Nfs(IO, mix="read=70,write=30")
    show = ("per_s", "read_p99_us", "write_p99_us")
    return Scenario(
        "mixed", "70 % reads, 30 % stable writes, 4 KiB, 128 in flight; and "
        "names made beside the data",
        (Case("mixed", "mixed, one file of 256 MiB", SERVERS, mix, show=show),
         Case("thousand", "mixed, 1,000 files of 64 KiB", GATEWAYS,
              replace(mix, files=THOUSAND), show=show),
         Case("names-and-data", "40 % reads, 20 % stable writes, 30 % "
              "GETATTR, 10 % CREATE, 4 KiB, 64 in flight", GATEWAYS,
              Nfs(IO, mix="read=40,write=20,getattr=30,create=10", depth=16),
              show=("per_s", "create_p99_us", "write_p99_us"))))


# fio's words for what cat, dd, tac and a scan of a column do: after each block
# of tac two back.
BUFFERED = (
    ("dd", "4 KiB after 4 KiB, as dd bs=4k", "read", "4k"),
    ("cat", "as cat, 128 KiB", "read", "128k"),
    ("dd-1m", "as dd bs=1M", "read", "1m"),
    ("tac", "8 KiB before 8 KiB, as tac", "read:-16k", "8k"),
    ("column", "4 KiB of each 64", "read:60k", "4k"))


def _buffered(name: str, rw: str, bs: str) -> Fio:
    return Fio(IO, rw, bs, 1, direct=False, once=True,
               more=(f"--io_size={IO.size // 16}",)
               if name == "column" else ())


def _reads() -> Scenario:
    """Reads that the read cache answers, and reads that it cannot answer."""
    memory = (*GATEWAYS, "oc")
    disk = ("tenth", "ceph", "cephasync")
    cached = Nfs(CACHED, "read=100", warm=True)
    missing = Nfs(IO, "read=100")
    return Scenario(
        "reads", "Reads from memory: a file of 128 MiB that was read before; "
        "and not from memory: a file of 256 MiB, 10 times the cache",
        (Case("cached-4k", "cached, random, 4 KiB, 128 in flight", memory,
              cached, quick=memory),
         Case("cached-one", "cached, random, 4 KiB, one at a time", memory,
              replace(cached, connections=1, depth=1), show=LATENCY,
              quick=memory),
         Case("cached-1m", "cached, random, 1 MiB, 16 in flight", memory,
              replace(cached, block="1M", depth=4), show=STREAM,
              quick=memory),
         Case("cached-linux-0.5", "cached, Linux client 0.5 ms away, random, "
              "4 KiB, 64 in flight", memory,
              Fio(CACHED, "randread", "4k", 64, served=True, rtt_ms=0.5)),
         Case("missing-4k", "missing, random, 4 KiB, 128 in flight", disk,
              missing, quick=disk),
         Case("missing-1m", "missing, random, 1 MiB, 16 in flight", disk,
              replace(missing, block="1M", depth=4), show=STREAM,
              quick=disk),
         *(Case(f"stream-{block}", f"missing, one stream, {block[:-1]} KiB, "
                "one at a time", disk,
                replace(missing, block=block, connections=1, depth=1,
                        pattern="sequential"), quick=disk)
           for block in ("4k", "64k")),
         *(Case(name, f"missing, Linux client, buffered, {title}",
                (*disk, "kcephfs"), _buffered(name, rw, bs), show=STREAM,
                quick=("tenth", "ceph")) for name, title, rw, bs in BUFFERED)))


def _names() -> Scenario:
    phases = ("create_per_s", "stat_per_s", "readdir_per_s",
              "rename_per_s", "unlink_per_s")
    return Scenario(
        "names", "Files made, looked at, listed, renamed and removed, a "
        "second",
        tuple(Case(f"v{version}-{clients}",
                   f"NFSv{version}, clients: {clients}" if version == "3" else
                   f"Linux client (NFSv4.1, actimeo=0, or CephFS), "
                   f"clients: {clients}",
                   SERVERS if version == "3" else CLIENTS,
                   Meta(version, clients, 1000), show=phases)
              for version in ("3", "4.1") for clients in (1, 8)))


def _files(name: str, store: str, systems: tuple[str, ...]) -> Scenario:
    steps = ("untar_per_s", "copy_per_s", "checkout_per_s", "remove_per_s")
    few = ("casync", "journal", "ceph", "kcephfs")
    return Scenario(
        name, "Many small files in a Linux client, NFSv4.2: 1,000 files of "
        f"0.1 to 16 KiB, files a second; {store}",
        (Case("tree", "untar, cp -a, git checkout, rm -rf", systems,
              Tree(1000), show=steps, quick=few if systems != few else ()),
         Case("tree-8", "the same, eight processes", few, Tree(1000, 8),
              show=steps)), Env(store))


def _trees(name: str, what: str, env: Env,
           programs: tuple[str, ...]) -> Scenario:
    small = Files("small", 11 << 10, 2000, least=2 << 10, a_folder=100)
    large = Files("large", MIB, 600, least=4 << 10, a_folder=50)
    who = ("casync", "ceph", "kcephfs")
    show = ("cold_per_s", "warm_per_s", "cold_read_ms", "warm_read_ms")
    return Scenario(
        name, "A tree is read in a Linux client, NFSv4.2, files a second: "
        f"by a cold gateway and by a warm one; {what}",
        tuple(Case(f"{files.name}-{program}",
                   f"{program}, {files.count:,} files of "
                   f"{files.least >> 10} KiB to {files.size >> 10} KiB", who,
                   Reading(files, program), show=show,
                   quick=who[:2] if program in ("tar", "shuffled") and
                   files is small else ())
              for files in (small, large) for program in programs
              if files is small or program in ("tar", "rsync")), env)


def _streams() -> Scenario:
    """An NFS client has a file for each stream.  The others have a part of
    one image or file for each: fio's jobs."""
    count, depth, size = 16, 64, 32 * MIB
    cases = []
    for way in ("write", "read"):
        parts: Load = Fio(Files("streams", size * count), way, "1m",
                          depth // count, jobs=count, apart=True)
        cases.append(Case(
            way, f"{way}, {count} streams, {depth} in flight together",
            (*CLIENTS, "rbd"),
            Nfs(Files("stream", size, count), f"{way}=100", "1M",
                connections=4, depth=depth // 4, pattern="sequential"),
            tuple((name, parts) for name in ("rbd", "kcephfs", "fuse")),
            STREAM))
    return Scenario("streams", "Sequential streams, 1 MiB requests",
                    tuple(cases))


def _slow(ms: int, *flying: tuple[int, int]) -> Scenario:
    load = Nfs(SLOW, warmup_s=min(2, 0.5 + ms / 50))
    cases = [Case(
        f"write-{connections * depth}",
        f"stable writes, 4 KiB, {connections * depth} in flight", GATEWAYS,
        replace(load, connections=connections, depth=depth, probe_ms=5),
        show=("per_s", "p99_us", "getattr_p99_us",
              "getattr_corrected_p99_us"),
        quick=("casync", "ceph") if connections * depth > 128 else ())
        for connections, depth in flying]
    cases.append(Case(
        "sequential-64", "stable sequential writes, 4 KiB, 64 in flight on "
        "one file, with and without gathering", ("casync", "single", "ceph"),
        replace(load, connections=1, depth=64, pattern="sequential")))
    return Scenario(f"slow-{ms}", f"A backend that takes 0 to {ms} ms for "
                    "each OSD operation", tuple(cases), Env(slow_ms=ms))


def _disk() -> Scenario:
    return Scenario(
        "disk", "BlueStore on a file of a disk with limits (ci/bench.sh "
        "--disk)",
        (Case("stable-write", "stable random write, 4 KiB, 128 in flight",
              GATEWAYS, Nfs(SLOW)),), Env("bluestore", disk=True))


# In this order: worlds that differ are far apart.
SCENARIOS = (
    _small(), _large(), _append(), _one(), _linux(), _far(), _sync(),
    _journal_paused(), _page_cache(), _getattr(), _mixed(), _reads(),
    _names(), _files("files", "memstore", (*CLIENTS, "journal", "delegated")),
    _streams(), _slow(2), _slow(20, (4, 32)),
    _slow(100, (4, 32), (16, 128)), _bluestore(),
    _files("files-bluestore", "bluestore",
           ("casync", "journal", "ceph", "kcephfs")),
    _trees("trees-memstore", "memstore", Env(), tuple(reading.PROGRAMS)),
    _trees("trees-slow", "a backend that takes 0 to 2 ms", Env(slow_ms=2),
           ("tar", "grep", "rsync", "shuffled")),
    _trees("trees-bluestore", "bluestore", Env("bluestore"),
           ("tar", "grep", "rsync", "shuffled")),
    _disk(),
)


def chosen(names: list[str], quick: bool) -> list[Scenario]:
    """`slow` stands for slow-2, slow-20 and so on; nothing named: all but the
    one that needs a disk with limits."""
    found = []
    for scenario in SCENARIOS:
        if not names and scenario.env.disk:
            continue            # its container is another
        if names and not any(
                scenario.name == name or scenario.name.startswith(name + "-")
                for name in names):
            continue
        if quick:
            cases = tuple(replace(case, systems=case.quick)
                          for case in scenario.cases if case.quick)
            if not cases:
                continue
            scenario = replace(scenario, cases=cases)
        found.append(scenario)
    return found
