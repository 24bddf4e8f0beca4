# SPDX-License-Identifier: LGPL-3.0-or-later
"""The scenarios of the five field reports, S0 to S4."""
from __future__ import annotations

from dataclasses import replace

from peers.case import (AS_DATA, CLIENTS, EVERY_GATEWAY, GATEWAYS, IO, MODES,
                        NO_FILES, NO_OBJECT, NO_SERVER, ONE_MODE, OTHERS,
                        RATE, SLOW, STREAM, Case, Scenario, rados, rbd)
from peers.env import Env
from peers.loads import MIB, Both, Files, Fio, Load, Nfs
from peers.systems import SECOND_POOL


# S0

def kernel_clients() -> Scenario:
    cases = []
    for rw, bs, title, show in (
            ("write", "4m", "sequential write, 4 MiB", STREAM),
            ("read", "4m", "sequential read, 4 MiB", STREAM),
            ("randwrite", "4k", "random write, 4 KiB", RATE),
            ("randread", "4k", "random read, 4 KiB", RATE)):
        modes = MODES if "write" in rw else MODES[:1]
        block = 4 * MIB if bs == "4m" else 4096
        cases.append(Case(
            rw, f"{title}, 64 in flight, direct",
            (*modes, *CLIENTS, "quiet", "rbd", "rados",
             *(("kcephfsnocrc",) if bs == "4m" else ())),
            Fio(IO, rw, bs, 64),
            rbd(rw, bs, 64) +
            rados("write" if "write" in rw else "rand", 64, block), show,
            quick=(*GATEWAYS, "kcephfs", "kcephfsnocrc") if rw == "read" else
            ("casync", "kcephfs")))
    return Scenario("S0", "kcephfs against an NFS gateway, in the kernel "
                    "client (Linux, NFSv4.2)", tuple(cases))


def round_trips() -> Scenario:
    """A delay between the client and all that it talks to: OSDs and MDS are
    as near to kcephfs as the gateway is to the NFS client.  The gateway is on
    the OSDs' machine; where it is as far from them as the client is from it,
    a request is twice as far away: so 3 and 4 ms are there, too."""
    cases = []
    for rtt in (0, 0.5, 1.5, 2, 3, 4):
        for rw, title in (("randread", "reads"), ("randwrite", "writes")):
            for depth in (1, 16, 64):
                load = Fio(IO, rw, "4k", depth, rtt_ms=rtt)
                where = f"{rtt:g} ms, 4 KiB random {title}, {depth} in flight"
                cases.append(Case(
                    f"{rw}-{rtt:g}-{depth}", where,
                    ("tenth", "ceph") if rtt > 2 else
                    ("tenth", "ceph", "kcephfs"), load))
                if depth == 64 and rtt <= 2:
                    cases.append(Case(
                        f"{rw}-{rtt:g}-{depth}-conn-4",
                        f"{where}, nconnect=4", ("tenth", "ceph"),
                        replace(load, opts="nconnect=4")))
    return Scenario(
        "S0-rtt", "A delay between the client and everything else (netem), "
        "direct", tuple(cases), overview=("per_s", "client_cpus"),
        absent=((("casync", "fdatasync", "full", "cephasync", "oc"),
                 "in S0. `tenth` is CEPH_ASYNC whose cache the file does not "
                 "fit in, as in the report"),
                (("knfsd", "fuse", "rbd", "rados"), "they have no network "
                 "that could be delayed here: one machine, no netem in it; "
                 "knfsd's server is a second kernel client")))


# S1

def large_writes() -> Scenario:
    who = (*MODES[:1], *CLIENTS, "kcephfsnocrc", "fuse128", "rbd")
    show = ("mib_s", "bytes_per_osd_w", "mean_us")
    cases = [Case(f"write-{bs}-depth-{depth}",
                  f"sequential write, {bs[:-1]} MiB, {depth} in flight, "
                  "direct",
                  (*who, *MODES[1:]) if (bs, depth) == ("4m", 4) else who,
                  Fio(IO, "write", bs, depth), rbd("write", bs, depth), show)
             for bs in ("1m", "4m") for depth in (1, 4)]
    cases.append(Case(
        "write-64m-depth-1", "sequential write, 64 MiB, 1 in flight, direct",
        who, Fio(IO, "write", "64m", 1), rbd("write", "64m", 1), show))
    cases.append(Case(
        "buffered-1m-jobs-4", "buffered sequential write, 1 MiB, four jobs, "
        "written back at the end",
        tuple(name for name in who if name != "rbd"),
        Fio(IO, "write", "1m", 1, direct=False, jobs=4, apart=True,
            more=("--end_fsync=1",)), show=show))
    return Scenario(
        "S1", "Large writes: in which pieces they reach the OSD",
        tuple(cases), overview=("mib_s", "bytes_per_osd_w"),
        absent=(NO_OBJECT,))


def slow_large_writes() -> Scenario:
    return Scenario(
        "S1-slow", "Large direct writes while each OSD operation takes 0 to "
        "20 ms: ceph-fuse held to 128 KiB is the field report's control",
        tuple(Case(f"write-4m-depth-{depth}",
                   f"sequential write, 4 MiB, {depth} in flight, direct",
                   (*GATEWAYS, "kcephfs", "fuse", "fuse128"),
                   Fio(IO, "write", "4m", depth),
                   show=("mib_s", "bytes_per_osd_w", "mean_us"))
              for depth in (1, 4)), Env(slow_ms=20),
        overview=("mib_s", "bytes_per_osd_w"),
        absent=((("fdatasync", "full", "oc", "knfsd", "rbd", "rados"),
                 "in S1; here the size of the pieces is the question"),))


# S2

def small_writes(name: str, env: Env, store: str) -> Scenario:
    memory = env.store == "memstore"
    every = (*EVERY_GATEWAY, "knfsd", "rados", "rbd") if memory else \
        (*MODES, "ceph", "cephasync", "rados", "rbd")
    quick = (*GATEWAYS, "quiet", "fdatasync", "full", "rados") if memory \
        else (*GATEWAYS, "rados")
    return Scenario(
        name, f"4 KiB random I/O, 128 in flight, {store}; NFSv3 by libnfs",
        (Case("stable-write", "stable random write, 4 KiB", every, Nfs(IO),
              rados("write") + rbd("randwrite", "4k", 128), quick=quick),
         Case("unstable-write", "unstable random write, 4 KiB",
              EVERY_GATEWAY if memory else GATEWAYS,
              Nfs(IO, stable="unstable")),
         Case("stable-write-64k", "stable random write, 64 KiB",
              (*GATEWAYS, "quiet") if memory else GATEWAYS,
              Nfs(IO, block="64k")),
         Case("read", "random read, 4 KiB",
              ("casync", *OTHERS, "quiet", "rados", "rbd") if memory else
              ("casync", "ceph", "cephasync", "rados", "rbd"),
              Nfs(IO, mix="read=100"),
              rados("rand") + rbd("randread", "4k", 128),
              quick=GATEWAYS if memory else ())), env,
        absent=(NO_SERVER,) if memory else
        (NO_SERVER, (("oc", "knfsd"), "in S2")))


def sync_table() -> Scenario:
    """libaio calls fsync where fdatasync is asked for: so the two that tell
    them apart are 16 threads that write one after the other."""
    who = (*MODES, *CLIENTS)
    psync = Fio(IO, "randwrite", "4k", 1, jobs=16, engine="psync")
    return Scenario(
        "S2-sync", "Who asks the MDS when: 4 KiB random direct writes in "
        "the kernel client, with fsync and fdatasync after each",
        tuple(Case(name, title, who, load, show=("per_s", "journal",
                                                 "p99_us"))
              for name, title, load in (
                  ("direct", "--direct=1, libaio, 128 in flight",
                   Fio(IO, "randwrite", "4k", 128)),
                  ("fsync", "--direct=1 --fsync=1, psync, 16 jobs",
                   replace(psync, more=("--fsync=1",))),
                  ("fdatasync", "--direct=1 --fdatasync=1, psync, 16 jobs",
                   replace(psync, more=("--fdatasync=1",))))),
        overview=("per_s", "journal"), absent=(NO_FILES,))


def journal_paused() -> Scenario:
    load = Nfs(IO, pause_journal=True)
    kernel: Load = Fio(IO, "randwrite", "4k", 128, pause_journal=True)
    who = (*MODES, *CLIENTS)
    return Scenario(
        "S2-pause", "Writes while the MDS writes no journal "
        "(mds_log_pause); a second after the load it goes on",
        (Case("write", "stable random write, 4 KiB, 128 in flight",
              who, load, (("kcephfs", kernel), ("fuse", kernel)),
              ("per_s", "journal")),), absent=(NO_FILES,))


# S3

def _streams_word(count: int) -> str:
    return "1 stream" if count == 1 else f"{count} streams"


def _stream_case(way: str, streams: int, depth: int, object_mib: int,
                 who: tuple[str, ...]) -> Case:
    """An NFS client has a file for each stream.  The others have a part of
    one image or file for each: fio's jobs."""
    connections = min(streams, 4)
    size = object_mib * MIB
    load = Nfs(Files("stream", 32 * MIB, streams, size), mix=f"{way}=100",
               block="1M", connections=connections,
               depth=depth // connections, pattern="sequential", stages=True)
    parts: Load = Fio(Files("streams", 32 * MIB * streams, 1, size), way,
                      "1m", max(1, depth // streams), jobs=streams,
                      apart=True)
    own = tuple((name, parts) for name in
                ("rbd", "rbdnocache", "kcephfs", "fuse") if name in who)
    return Case(f"{way}-{streams}-{depth}",
                f"{way}, {_streams_word(streams)}, {depth} in flight together",
                who, load, own,
                ("mib_s", "mean_us", "stage_queued_us", "stage_libcephfs_us",
                 "stage_handover_us", "stage_finish_us"))


def streams(object_mib: int) -> Scenario:
    who: tuple[str, ...] = GATEWAYS
    if object_mib == 4:
        who = (*GATEWAYS, "oc", "knfsd", "kcephfs", "fuse")
    if object_mib > 1:
        who = (*who, "rbd", "rbdnocache")
    elsewhere = () if object_mib == 4 else (
        (("oc", "knfsd", "kcephfs", "fuse"), "in S3-4M"),)
    return Scenario(
        f"S3-{object_mib}M", "Sequential streams, 1 MiB requests, objects "
        f"of {object_mib} MiB, with the stages of their latency",
        tuple(_stream_case(way, count, depth, object_mib, who)
              for way in ("write", "read")
              for count, depth in ((1, 8), (1, 64), (4, 64), (16, 64))),
        Env(metrics=True), overview=("mib_s",),
        absent=(ONE_MODE, NO_OBJECT, *elsewhere,
                *(((("rbd",), "in S3-4M and S3-32M"),)
                  if object_mib == 1 else ())))


def readers_and_writers() -> Scenario:
    reads = Nfs(Files("reader", 8 * MIB, 20, 4 * MIB), "read=100", "1M",
                depth=5, pattern="sequential")
    writes = replace(reads, files=Files("writer", 8 * MIB, 20, 4 * MIB),
                     mix="write=100")
    second = replace(writes, files=replace(writes.files, pool=SECOND_POOL))
    capped = Fio(Files("capped", 160 * MIB), "read", "1m", 1, jobs=20,
                 apart=True, more=("--rate=4m",))
    return Scenario(
        "S3-both", "Readers beside writers, and streams that are held to a "
        "rate, 1 MiB requests",
        (Case("both", "20 streams read, 20 others write, all by libnfs",
              (*MODES[:1], "pools", *OTHERS), Both(writes, reads, "read"),
              (("pools", Both(second, reads, "read")),),
              ("both_mib_s", "mib_s", "read_mib_s", "mean_us", "p99_us")),
         *(Case(f"capped-{way}", f"20 streams {way} 4 MiB/s each, kernel "
                "client", (*MODES[:1], *CLIENTS), replace(capped, rw=way),
                show=STREAM) for way in ("read", "write"))),
        absent=(ONE_MODE, NO_FILES))


# S4

def buffered() -> Scenario:
    cases = []
    for direct in (False, True):
        for actimeo in (0, 60):
            for jobs in (1, 4, 16):
                kind = "direct" if direct else "buffered"
                cases.append(Case(
                    f"{kind}-actimeo-{actimeo}-jobs-{jobs}",
                    f"{kind}, actimeo={actimeo}, jobs: {jobs}",
                    ("casync", *OTHERS) if actimeo == 0 else
                    ("casync", *CLIENTS, "local"),
                    Fio(SLOW, "randread", "4k", 16, direct=direct, jobs=jobs,
                        vers="3", opts=f"actimeo={actimeo}",
                        warm=not direct)))
    return Scenario(
        "S4", "4 KiB random reads over NFSv3 of a file in the client's "
        "cache, 16 in flight a job; what is no NFS has no actimeo and its "
        "line at 60", tuple(cases), overview=("per_s",),
        absent=(AS_DATA, NO_FILES))


def hit_rates() -> Scenario:
    cases = []
    for size in (80, 160, 320, 640):
        for jobs in (1, 16):
            cases.append(Case(
                f"size-{size}-jobs-{jobs}",
                f"a file of {size} MiB, jobs: {jobs}",
                ("casync", "ceph", "knfsd", "kcephfs", "local"),
                Fio(Files("working", size * MIB), "randread", "4k", 1,
                    direct=False, jobs=jobs, vers="3", opts="actimeo=0",
                    warm=True, mem="256M", engine="psync"),
                show=("per_s", "mean_us", "p99_us", "hit_rate")))
    return Scenario(
        "S4-hits", "4 KiB random buffered reads of files that fit in the "
        "client's memory (256 MiB), and of larger ones; actimeo=0",
        tuple(cases), overview=("per_s", "hit_rate", "p99_us"),
        absent=(AS_DATA, NO_FILES,
                (("cephasync", "oc"), "the client's cache is the question"),
                (("fuse",), "its page cache is the host's, which is not "
                 "small")))


def getattr_beside() -> Scenario:
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
        tuple(Case(name, f"beside {title}", ("casync", *OTHERS), load,
                   show=("getattr_p99_us", "getattr_p50_us",
                         "getattr_corrected_p99_us", "per_s"),
                   quick=("casync", "ceph") if name.startswith("read") else ())
              for name, title, load in loads),
        overview=("getattr_p99_us",),
        absent=(ONE_MODE, NO_SERVER, NO_FILES))
