# SPDX-License-Identifier: LGPL-3.0-or-later
"""What is measured: each scenario, its cases, and who takes part."""
from __future__ import annotations

from dataclasses import dataclass, field, replace

from peers.env import Env
from peers.loads import MIB, Files, Fio, Load, Meta, Nfs, Rados, Tree

GATEWAYS = ("casync", "ceph", "cephasync")
MODES = ("casync", "fdatasync", "full")
CLIENTS = ("casync", "ceph", "cephasync", "knfsd", "kcephfs", "fuse")
EVERY_GATEWAY = (*MODES, "ceph", "cephasync", "quiet", "quietasync")

IO = Files("io", 256 * MIB)
SLOW = Files("slow", 64 * MIB)
APPEND = Files("append", 0)
HOT = Files("hot", 64 * MIB)
CACHED = Files("cached", 128 * MIB)
THOUSAND = Files("many", 64 << 10, count=1000)

# What is shown of a case, the first is what is compared.
RATE = ("per_s", "mean_us", "p99_us")
STREAM = ("mib_s", "mean_us", "p99_us")
LATENCY = ("mean_us", "p50_us", "p99_us")


@dataclass(frozen=True)
class Case:
    """One load; each of the systems gets it in turn, in every round."""
    name: str
    title: str
    systems: tuple[str, ...]
    load: Load                          # of all that have none of their own
    own: tuple[tuple[str, Load], ...] = ()
    show: tuple[str, ...] = RATE
    quick: tuple[str, ...] = ()         # who takes part with --quick

    def load_of(self, system: str) -> Load:
        return dict(self.own).get(system, self.load)


@dataclass(frozen=True)
class Scenario:
    name: str
    title: str
    cases: tuple[Case, ...]
    env: Env = field(default_factory=Env)
    overview: tuple[str, ...] = ()      # figures with a table of all cases


def _rados(what: str, depth: int = 64,
           block: int = 4096) -> tuple[tuple[str, Load], ...]:
    return (("rados", Rados(what, block, depth)),)


def _rbd(rw: str, bs: str, depth: int) -> tuple[tuple[str, Load], ...]:
    return (("rbd", Fio(IO, rw, bs, depth)),)


def _kernel_clients() -> Scenario:
    cases = []
    for rw, bs, title, show in (
            ("write", "4m", "sequential write, 4 MiB", STREAM),
            ("read", "4m", "sequential read, 4 MiB", STREAM),
            ("randwrite", "4k", "random write, 4 KiB", RATE),
            ("randread", "4k", "random read, 4 KiB", RATE)):
        cases.append(Case(
            rw, f"{title}, 64 in flight, direct", (*CLIENTS, "quiet"),
            Fio(IO, rw, bs, 64), show=show,
            quick=(*GATEWAYS, "kcephfs") if rw == "read" else
            ("casync", "kcephfs")))
    return Scenario("S0", "kcephfs against an NFS gateway, in the kernel "
                    "client (Linux, NFSv4.2)", tuple(cases))


def _large_writes() -> Scenario:
    return Scenario(
        "S1", "Large direct writes: in which pieces they reach the OSD",
        tuple(Case(f"write-{bs}-depth-{depth}",
                   f"sequential write, {bs[:-1]} MiB, {depth} in flight, "
                   "direct", CLIENTS, Fio(IO, "write", bs, depth),
                   show=("mib_s", "bytes_per_osd_w", "mean_us"))
              for bs in ("1m", "4m") for depth in (1, 4)),
        overview=("mib_s", "bytes_per_osd_w"))


def _small_writes(name: str, env: Env, store: str) -> Scenario:
    every = (*EVERY_GATEWAY, "knfsd", "rados", "rbd") \
        if env.store == "memstore" else (*MODES, "ceph", "cephasync",
                                         "rados", "rbd")
    quick = (*GATEWAYS, "quiet", "fdatasync", "full", "rados") \
        if env.store == "memstore" else (*GATEWAYS, "rados")
    return Scenario(
        name, f"4 KiB random I/O, 128 in flight, {store}; NFSv3 by libnfs",
        (Case("stable-write", "stable random write, 4 KiB", every, Nfs(IO),
              _rados("write") + _rbd("randwrite", "4k", 128), quick=quick),
         Case("unstable-write", "unstable random write, 4 KiB",
              EVERY_GATEWAY if env.store == "memstore" else GATEWAYS,
              Nfs(IO, stable="unstable")),
         Case("stable-write-64k", "stable random write, 64 KiB",
              (*GATEWAYS, "quiet") if env.store == "memstore" else GATEWAYS,
              Nfs(IO, block="64k")),
         Case("read", "random read, 4 KiB",
              ("casync", "ceph", "cephasync", "quiet", "knfsd", "rados",
               "rbd") if env.store == "memstore" else
              ("casync", "ceph", "cephasync", "rados", "rbd"),
              Nfs(IO, mix="read=100"),
              _rados("rand") + _rbd("randread", "4k", 128),
              quick=GATEWAYS if env.store == "memstore" else ())), env)


def _sync_table() -> Scenario:
    who = (*MODES, "ceph", "cephasync", "kcephfs", "fuse")
    return Scenario(
        "S2-sync", "Who asks the MDS when: 4 KiB random direct writes in "
        "the kernel client, with fsync and fdatasync after each",
        tuple(Case(name, title, who,
                   Fio(IO, "randwrite", "4k", 128, more=more),
                   show=("per_s", "journal", "p99_us"))
              for name, title, more in (
                  ("direct", "--direct=1", ()),
                  ("fsync", "--direct=1 --fsync=1", ("--fsync=1",)),
                  ("fdatasync", "--direct=1 --fdatasync=1",
                   ("--fdatasync=1",)))),
        overview=("per_s", "journal"))


def _streams_word(count: int) -> str:
    return "1 stream" if count == 1 else f"{count} streams"


def _streams(object_mib: int) -> Scenario:
    cases = []
    for way in ("write", "read"):
        for streams in (1, 4, 16):
            for depth in (8, 64):
                connections = min(streams, 4)
                load = Nfs(Files("stream", 32 * MIB, streams,
                                 object_mib * MIB),
                           mix=f"{way}=100", block="1M",
                           connections=connections,
                           depth=depth // connections, pattern="sequential",
                           stages=True)
                cases.append(Case(
                    f"{way}-{streams}-{depth}",
                    f"{way}, {_streams_word(streams)}, {depth} in flight "
                    "together",
                    GATEWAYS, load,
                    show=("mib_s", "mean_us", "stage_queued_us",
                          "stage_libcephfs_us", "stage_handover_us",
                          "stage_finish_us")))
    return Scenario(
        f"S3-{object_mib}M", "Sequential streams, 1 MiB requests, objects "
        f"of {object_mib} MiB, with the stages of their latency",
        tuple(cases), Env(metrics=True), overview=("mib_s",))


def _buffered() -> Scenario:
    cases = []
    for direct in (False, True):
        for actimeo in (0, 60):
            for jobs in (1, 2, 4, 8):
                kind = "direct" if direct else "buffered"
                cases.append(Case(
                    f"{kind}-actimeo-{actimeo}-jobs-{jobs}",
                    f"{kind}, actimeo={actimeo}, jobs: {jobs}",
                    ("casync", "ceph"),
                    Fio(SLOW, "randread", "4k", 16, direct=direct, jobs=jobs,
                        vers="3", opts=f"actimeo={actimeo}",
                        warm=not direct)))
    return Scenario("S4", "4 KiB random reads over NFSv3 of a file in the "
                    "client's cache, 16 in flight a job", tuple(cases),
                    overview=("per_s",))


def _getattr() -> Scenario:
    loads = (
        ("write-4k", "4 KiB stable writes", Nfs(IO, probe_ms=5)),
        ("read-4k", "4 KiB reads", Nfs(IO, "read=100", probe_ms=5)),
        ("write-1m", "1 MiB stable writes",
         Nfs(IO, block="1M", connections=4, depth=8, probe_ms=5)),
        ("read-1m", "1 MiB reads",
         Nfs(IO, "read=100", block="1M", connections=4, depth=8,
             probe_ms=5)))
    return Scenario(
        "S4-getattr", "What another client's GETATTR takes while data "
        "saturate the gateway",
        tuple(Case(name, f"beside {title}", GATEWAYS, load,
                   show=("getattr_p99_us", "getattr_p50_us",
                         "getattr_corrected_p99_us", "per_s"),
                   quick=("casync", "ceph") if name.startswith("read") else ())
              for name, title, load in loads),
        overview=("getattr_p99_us",))


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
    title = f"A backend that takes 0 to {ms} ms for each OSD operation" \
        if ms else "The same backend without a delay"
    return Scenario(f"slow-{ms}", title, tuple(cases), Env(slow_ms=ms),
                    overview=("per_s", "getattr_p99_us"))


def _large() -> Scenario:
    who = (*GATEWAYS, "quiet")
    return Scenario(
        "large", "1 MiB requests, 32 in flight, NFSv3 by libnfs",
        tuple(Case(way, f"{way}, 1 MiB", who,
                   Nfs(IO, mix=f"{way}=100", block="1M", connections=4,
                       depth=8), show=STREAM, quick=GATEWAYS)
              for way in ("write", "read")))


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
              quick=("casync", "ceph"))))


def _one() -> Scenario:
    who = (*EVERY_GATEWAY, "knfsd", "rados")
    return Scenario(
        "one", "One request at a time: latency",
        (Case("stable-write", "stable write, 4 KiB", who,
              Nfs(IO, connections=1, depth=1), _rados("write", 1),
              show=LATENCY, quick=("casync", "ceph")),
         Case("read", "read, 4 KiB", who,
              Nfs(IO, "read=100", connections=1, depth=1), _rados("rand", 1),
              show=LATENCY, quick=("casync", "ceph"))))


def _mixed() -> Scenario:
    mix = Nfs(IO, mix="read=70,write=30")
    show = ("per_s", "read_p99_us", "write_p99_us")
    return Scenario(
        "mixed", "70 % reads, 30 % stable writes, 4 KiB, 128 in flight; one "
        "hot file against a thousand; and names made beside the data",
        (Case("mixed", "mixed, one file of 256 MiB", (*GATEWAYS, "quiet"),
              mix, show=show),
         Case("hot", "mixed, one file of 64 MiB", GATEWAYS,
              replace(mix, files=HOT), show=show),
         Case("thousand", "mixed, 1,000 files of 64 KiB", GATEWAYS,
              replace(mix, files=THOUSAND), show=show),
         Case("names-and-data", "40 % reads, 20 % stable writes, 30 % "
              "GETATTR, 10 % CREATE, 4 KiB, 64 in flight", GATEWAYS,
              Nfs(IO, mix="read=40,write=20,getattr=30,create=10", depth=16),
              show=("per_s", "create_p99_us", "write_p99_us"))))


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
               # After each block two back.
               ("tac", "8 KiB before 8 KiB, as tac", "read:-16k", "8k")))))


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
                   GATEWAYS if version == "3" else
                   (*GATEWAYS, "kcephfs", "fuse"),
                   Meta(version, clients, 1000), show=phases)
              for version in ("3", "4.1") for clients in (1, 8)),
        overview=phases)


def _small_files() -> Scenario:
    return Scenario(
        "files", "Many small files in the kernel client: 1,000 files of 0.1 "
        "to 16 KiB, files a second",
        (Case("tree", "untar, git checkout, rm -rf",
              (*GATEWAYS, "kcephfs", "fuse"), Tree(1000),
              show=("untar_per_s", "checkout_per_s", "remove_per_s")),))


# In this order: worlds that differ are far apart.
SCENARIOS = (
    _small_writes("S2", Env(), "memstore"), _large(), _log(), _one(),
    _kernel_clients(), _large_writes(), _sync_table(), _buffered(),
    _getattr(), _mixed(), _reads(), _names(), _small_files(),
    _streams(1), _streams(4), _streams(32),
    _slow(0), _slow(2), _slow(20), _slow(100),
    _small_writes("bluestore", Env("bluestore"), "BlueStore"),
)


def chosen(names: list[str], quick: bool) -> list[Scenario]:
    """S3 stands for S3-1M, S3-4M and so on; nothing named: all."""
    found = []
    for scenario in SCENARIOS:
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
