# SPDX-License-Identifier: LGPL-3.0-or-later
"""What is measured: all scenarios, in their order."""
from __future__ import annotations

from dataclasses import replace

from peers import seeds
from peers.case import (APPEND, AS_DATA, CACHED, CLIENTS, EVERY_GATEWAY,
                        GATEWAYS, HOT, IO, LATENCY, NO_FILES, NO_SERVER,
                        ONE_MODE, OTHERS, SLOW, STREAM, THOUSAND,
                        Case, Scenario, rados, rbd)
from peers.env import Env
from peers.loads import MIB, Files, Fio, Meta, Nfs, Tree


def _slow(ms: int) -> Scenario:
    shapes = ((4, 8), (4, 32), (16, 32), (16, 128), (32, 128))
    cases = []
    for connections, depth in shapes:
        flying = connections * depth
        cases.append(Case(
            f"write-{flying}", f"stable writes, 4 KiB, {flying} in flight",
            GATEWAYS,
            Nfs(SLOW, connections=connections, depth=depth, probe_ms=5,
                warmup_s=min(2, 0.5 + ms / 50)),
            show=("per_s", "p99_us", "getattr_p99_us",
                  "getattr_corrected_p99_us"),
            quick=("casync", "ceph") if (ms, flying) == (100, 2048) else ()))
    if ms:
        cases.append(Case(
            "sequential-64", "stable sequential writes, 4 KiB, 64 in flight "
            "on one file, with and without gathering",
            ("casync", "single", "ceph"),
            Nfs(SLOW, connections=1, depth=64, pattern="sequential",
                warmup_s=min(2, 0.5 + ms / 50))))
    title = f"A backend that takes 0 to {ms} ms for each OSD operation" \
        if ms else "The same backend without a delay"
    return Scenario(f"slow-{ms}", title, tuple(cases), Env(slow_ms=ms),
                    overview=("per_s", "getattr_p99_us"),
                    absent=(ONE_MODE, NO_SERVER, NO_FILES,
                            (("oc", "knfsd"), "in S2; with a slow backend "
                             "the number of requests in flight decides")))


def _large() -> Scenario:
    who = ("casync", *OTHERS, "quiet", "rbd", "rados")
    return Scenario(
        "large", "1 MiB requests, 32 in flight, NFSv3 by libnfs",
        tuple(Case(way, f"{way}, 1 MiB", who,
                   Nfs(IO, mix=f"{way}=100", block="1M", connections=4,
                       depth=8),
                   rbd(f"rand{way}", "1m", 32) + rados(raw, 32, MIB), STREAM,
                   quick=GATEWAYS)
              for way, raw in (("write", "write"), ("read", "rand"))),
        absent=(ONE_MODE, NO_SERVER))


def _log() -> Scenario:
    who = (*EVERY_GATEWAY, "single", "knfsd")
    return Scenario(
        "append", "A database's log: stable sequential 4 KiB writes, 64 in "
        "flight on one file, one connection",
        (Case("append", "behind the end of the file", who,
              Nfs(APPEND, connections=1, depth=64, pattern="append"),
              quick=("casync", "ceph")),
         Case("overwrite", "over what is there", who,
              Nfs(IO, connections=1, depth=64, pattern="sequential"),
              quick=("casync", "ceph"))),
        absent=(NO_SERVER, NO_FILES))


def _one() -> Scenario:
    who = (*EVERY_GATEWAY, "knfsd", "rbd", "rados")
    return Scenario(
        "one", "One request at a time: latency",
        (Case("stable-write", "stable write, 4 KiB", who,
              Nfs(IO, connections=1, depth=1),
              rbd("randwrite", "4k", 1) + rados("write", 1),
              show=LATENCY, quick=("casync", "ceph")),
         Case("read", "read, 4 KiB", who,
              Nfs(IO, "read=100", connections=1, depth=1),
              rbd("randread", "4k", 1) + rados("rand", 1),
              show=LATENCY, quick=("casync", "ceph"))),
        absent=(NO_SERVER,))


def _mixed() -> Scenario:
    mix = Nfs(IO, mix="read=70,write=30")
    show = ("per_s", "read_p99_us", "write_p99_us")
    return Scenario(
        "mixed", "70 % reads, 30 % stable writes, 4 KiB, 128 in flight; one "
        "hot file against a thousand; and names made beside the data",
        (Case("mixed", "mixed, one file of 256 MiB",
              ("casync", *OTHERS, "quiet"),
              mix, show=show),
         Case("hot", "mixed, one file of 64 MiB", GATEWAYS,
              replace(mix, files=HOT), show=show),
         Case("thousand", "mixed, 1,000 files of 64 KiB", GATEWAYS,
              replace(mix, files=THOUSAND), show=show),
         # Fewer in flight too: latencies compare at like rates only.
         *(Case(name, "40 % reads, 20 % stable writes, 30 % GETATTR, 10 % "
                f"CREATE, 4 KiB, {4 * depth} in flight", GATEWAYS,
                Nfs(IO, mix="read=40,write=20,getattr=30,create=10",
                    depth=depth),
                show=("per_s", "create_p99_us", "write_p99_us"))
           for name, depth in (("names-and-data", 16),
                               ("names-and-data-40", 10),
                               ("names-and-data-24", 6)))),
        absent=(ONE_MODE, NO_SERVER, NO_FILES))


def _reads() -> Scenario:
    """Reads that the read cache answers, and reads that it cannot answer."""
    memory = ("casync", "ceph", "cephasync", "oc")
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
         *(Case(f"cached-kernel-{rtt:g}", "cached, kernel client, random, "
                f"4 KiB, 64 in flight, {rtt:g} ms away", memory,
                Fio(CACHED, "randread", "4k", 64, served=True, rtt_ms=rtt))
           for rtt in (0, 0.5, 2)),
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
         *(Case(name, f"missing, kernel client, buffered, {title}",
                (*disk, "kcephfs"),
                Fio(IO, rw, bs, 1, direct=False, once=True), show=STREAM,
                quick=("tenth", "ceph"))
           for name, title, rw, bs in (
               ("dd", "4 KiB after 4 KiB, as dd bs=4k", "read", "4k"),
               ("dd-64k", "as dd bs=64k", "read", "64k"),
               ("cat", "as cat, 128 KiB", "read", "128k"),
               ("dd-1m", "as dd bs=1M", "read", "1m"),
               # After each block two back.
               ("tac", "8 KiB before 8 KiB, as tac", "read:-16k", "8k"))),
         Case("column", "missing, kernel client, buffered, 4 KiB of each 64",
              (*disk, "kcephfs"),
              Fio(IO, "read:60k", "4k", 1, direct=False, once=True,
                  more=(f"--io_size={IO.size // 16}",)),
              quick=("tenth", "ceph")),
         # What they wait for when the server waits for nothing.
         *(Case(f"{name}-cached", f"cached, kernel client, buffered, as {name}",
                memory, Fio(CACHED, rw, bs, 1, direct=False, once=True,
                            served=True), show=STREAM, quick=("casync",))
           for name, rw, bs in (("cat", "read", "128k"),
                                ("tac", "read:-16k", "8k")))),
        absent=(AS_DATA, (("knfsd",), "it reads from its own kernel's page "
                          "cache: in S2"),
                (("fuse", "rbd", "rados"), "in S0")))


def _names() -> Scenario:
    phases = ("create_per_s", "stat_per_s", "readdir_per_s",
              "rename_per_s", "unlink_per_s")
    return Scenario(
        "metadata", "Files made, looked at, listed, renamed and removed, a "
        "second",
        tuple(Case(f"v{version}-{clients}",
                   f"NFSv{version}, clients: {clients}" if version == "3" else
                   f"kernel client (NFSv4.1, actimeo=0, or CephFS), "
                   f"clients: {clients}",
                   ("casync", *OTHERS) if version == "3" else
                   ("casync", *CLIENTS),
                   Meta(version, clients, 1000), show=phases)
              for version in ("3", "4.1") for clients in (1, 8)),
        overview=phases, absent=(AS_DATA, NO_FILES))


def _small_files() -> Scenario:
    steps = ("untar_per_s", "checkout_per_s", "copy_per_s", "remove_per_s",
             "build_per_s")
    return Scenario(
        "files", "Many small files in the kernel client: 1,000 files of 0.1 "
        "to 16 KiB, files a second",
        (Case("tree", "untar, git checkout, cp -a, rm -rf, make; NFSv4.2",
              ("casync", "sent", "names", "delegated", *CLIENTS), Tree(1000),
              show=steps, quick=("casync", "sent", "names", "delegated",
                                 "ceph", "kcephfs")),
         Case("tree-8", "the same, eight processes",
              ("casync", "sent", "names", *CLIENTS), Tree(1000, 8),
              show=steps, quick=("casync", "sent", "names", "ceph",
                                 "kcephfs")),
         *(Case(f"tree-v{version}", f"the same, one process, NFSv{version}",
                ("casync", "sent", "ceph"), Tree(1000, 1, version),
                show=steps) for version in ("3", "4.1"))),
        absent=(ONE_MODE, NO_FILES))


def _disk() -> Scenario:
    """Streams in objects of two sizes, and small writes.  One disk: with one
    seek and one bandwidth for all, the number of streams decides."""
    cases = [
        Case(f"{way}-{count}-objects-{object_mib}M",
             f"{way}, streams of 1 MiB: {count}, objects of {object_mib} MiB",
             GATEWAYS,
             Nfs(Files("stream", 16 * MIB, count, object_mib * MIB),
                 f"{way}=100", "1M", connections=min(count, 4),
                 depth=8 // min(count, 4), pattern="sequential"),
             show=STREAM)
        for way in ("write", "read") for count in (1, 8)
        for object_mib in (4, 32)]
    cases.append(Case("stable-write", "stable random write, 4 KiB, 128 in "
                      "flight", GATEWAYS, Nfs(SLOW)))
    return Scenario(
        "disk", "BlueStore on a file of a disk with limits (ci/bench.sh "
        "--disk)", tuple(cases), Env("bluestore", disk=True),
        overview=("mib_s", "per_s"),
        absent=(ONE_MODE, NO_SERVER, (("oc", "knfsd", "rbd", "rados"),
                                      "the size of objects is the question")))


# In this order: worlds that differ are far apart.
SCENARIOS = (
    seeds.small_writes("S2", Env(), "memstore"), _large(), _log(), _one(),
    seeds.kernel_clients(), seeds.round_trips(), seeds.large_writes(),
    seeds.sync_table(), seeds.journal_paused(), seeds.buffered(),
    seeds.hit_rates(), seeds.getattr_beside(), _mixed(), _reads(), _names(),
    _small_files(), seeds.readers_and_writers(),
    seeds.streams(1), seeds.streams(4), seeds.streams(32),
    _slow(0), _slow(2), seeds.slow_large_writes(), _slow(20), _slow(100),
    seeds.small_writes("bluestore", Env("bluestore"), "BlueStore"),
    _disk(),
)


def chosen(names: list[str], quick: bool) -> list[Scenario]:
    """S3 stands for S3-1M, S3-4M and so on; nothing named: all but those
    that need a disk with limits."""
    found = []
    for scenario in SCENARIOS:
        if not names and scenario.env.disk:
            continue            # its container is another
        if names and not any(
                scenario.name.lower() == name.lower() or
                scenario.name.lower().startswith(name.lower() + "-")
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
