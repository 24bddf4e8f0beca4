# SPDX-License-Identifier: LGPL-3.0-or-later
"""One load on one system: what came out, and what it cost."""
from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

from bench import PHASES, nfsload
from lab_program import ceph
from peers import reading, tree
from peers.counters import Counters
from peers.files import folder_of
from peers.loads import MIB, Fio, Load, Meta, Nfs, Rados, Reading, Tree
from peers.systems import System
from peers.world import POOL, World, fuse_of

# The last requests of a load that waits for the journal begin at its end.
PAUSED_LONGER_S = 1.5
BEFORE_PAUSE_S = 0.5
# What rados bench reads: as large as the other systems' file.  Without a bound
# objects of 1 MiB filled a third of the cluster.
READ_BYTES = 256 * MIB


def run(world: World, system: System, load: Load, seconds: float,
        seed: int) -> dict[str, float]:
    """Every figure of one measurement, costs included."""
    prepare(world, system, load)
    if getattr(load, "pause_journal", False):
        # The first write of a file waits for the MDS, in any mode.
        RUN[type(load)](world, system, load, BEFORE_PAUSE_S, seed)
    counters = Counters(world.pid(system), _client(world, system, load))
    with journal_paused(seconds) if getattr(load, "pause_journal", False) \
            else contextlib.nullcontext():
        figures, requests = RUN[type(load)](world, system, load, seconds,
                                            seed)
    found = {**figures, **counters.costs(max(1, requests))}
    if isinstance(load, Rados) and load.what == "write":
        _local(["rados", "-p", POOL, "cleanup"])
    return found


def _client(world: World, system: System, load: Load) -> int | None:
    """The kernel client's process, where the load is in one."""
    inside = isinstance(load, Fio | Tree | Reading) or (
        isinstance(load, Meta) and load.version != "3")
    return world.client_pid(system) if inside else None


@contextlib.contextmanager
def journal_paused(seconds: float) -> Iterator[None]:
    """The MDS writes no journal, from now until a second after a load of
    so many seconds: what waits for it ends then."""
    def pause(yes: bool) -> None:
        ceph("tell", "mds.a", "config", "set", "mds_log_pause",
             str(yes).lower())
    pause(True)
    timer = threading.Timer(seconds + PAUSED_LONGER_S, pause, (False,))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        pause(False)


def prepare(world: World, system: System, load: Load) -> None:
    """What shall not be measured: a mount, a warm page cache."""
    if isinstance(load, Fio) and system.kind == "rbd":
        world.image()
    elif isinstance(load, Fio) and system.kind != "fuse":
        client, where = world.client(system, load.vers, load.opts, load.mem)
        path = (f"{where}{folder_of(system.name)}/"
                f"{load.files.name}.0")
        if load.served:
            # Twice, as in _read_before().
            client.set_rtt(0)
            for _ in range(2):
                client.run(f"dd if={path} of=/dev/null bs=1M iflag=direct "
                           "status=none")
        client.set_rtt(load.rtt_ms)
        if load.warm:
            client.run(f"head -c {load.files.size} {path} >/dev/null")
        if load.once:
            client.run("echo 3 >/proc/sys/vm/drop_caches")
    elif isinstance(load, Nfs):
        if load.warm:
            _read_before(world, system, load)
    elif isinstance(load, Meta) and load.version != "3":
        if system.kind != "fuse":
            world.client(system, load.version, "actimeo=0")
    elif isinstance(load, Tree):
        tree.make_sources(load.files)
        if system.kind != "fuse":
            world.client(system, "4.2", "")
    elif isinstance(load, Reading):
        world.make_cold(system)
        world.client(system, load.version, "")
    elif isinstance(load, Rados) and load.what == "rand":
        _rados_objects(load)


# nfsload

def _read_before(world: World, system: System, load: Nfs) -> None:
    """Twice: a cache that is full of another file gives way at the second
    time only."""
    at = world.nfs(system)
    nfsload("--server", at["server"], "--port", at["port"], "--mount-port",
            at["mount_port"], "--export",
            at["export"] + folder_of(system.name),
            "--name", load.files.name, "--file-size", load.files.size,
            "--mix", "read=100", "--block-size", "1M", "--connections", 1,
            "--depth", 4, "--pattern", "sequential", "--warmup", 0,
            "--count", 2 * load.files.size // MIB, "--seconds", 60)


def _nfs(world: World, system: System, load: Nfs, seconds: float,
         seed: int) -> tuple[dict[str, float], int]:
    at = world.nfs(system)
    append = load.pattern == "append"
    result = nfsload(
        "--server", at["server"], "--port", at["port"], "--mount-port",
        at["mount_port"], "--export",
        at["export"] + folder_of(system.name),
        "--name", load.files.name, "--files", load.files.count,
        "--file-size", 0 if append else load.files.size,
        "--mix", load.mix, "--block-size", load.block, "--connections",
        load.connections, "--depth", load.depth, "--stable", load.stable,
        "--pattern", load.pattern, "--seed", seed, "--seconds", seconds,
        "--warmup", load.warmup_s, "--drain", 120,
        *(("--probe", load.probe_ms) if load.probe_ms else ()))
    return of_nfsload(result), result["sent"]


def of_nfsload(result: dict[str, Any]) -> dict[str, float]:
    """Its report in our names; of a mix, all operations together."""
    ops = result["ops"]
    figures = {"per_s": sum(op["per_s"] for op in ops.values()),
               "mib_s": sum(op["mib_per_s"] for op in ops.values())}
    for name, op in ops.items():
        prefix = "" if len(ops) == 1 else f"{name}_"
        if len(ops) > 1:
            figures[f"{name}_per_s"] = op["per_s"]
        figures.update(_latency(prefix, op["latency_us"]))
    if "probe" in result and result["probe"]["latency_us"]:
        figures["getattrs"] = result["probe"]["answered"]
        figures.update(_latency("getattr_", result["probe"]["latency_us"]))
        figures["getattr_corrected_p99_us"] = \
            result["probe"]["corrected_latency_us"]["p99"]
    return figures


def _latency(prefix: str,
             found: dict[str, float] | None) -> dict[str, float]:
    """Nothing, where nothing was answered."""
    return {f"{prefix}{key}_us": found[key]
            for key in ("mean", "p50", "p99", "max") if found and key in found}


# fio

def _fio_words(load: Fio, seconds: float, seed: int) -> list[str]:
    words = ["fio", "--name=job", f"--rw={load.rw}", f"--bs={load.bs}",
             f"--iodepth={load.depth}", f"--randseed={seed}",
             "--norandommap", "--group_reporting", f"--numjobs={load.jobs}",
             *load.more, "--output-format=json"]
    if not load.once:
        words += ["--time_based", f"--runtime={seconds:g}"]
    size = load.files.size
    if load.apart:
        size //= load.jobs
        words += [f"--offset_increment={size}"]
    return [*words, f"--size={size}"]


def _fio(world: World, system: System, load: Fio, seconds: float,
         seed: int) -> tuple[dict[str, float], int]:
    words = _fio_words(load, seconds, seed)
    if system.kind == "rbd":
        image = world.image()
        return of_fio(_local(
            [*words, "--ioengine=rbd", "--clientname=admin",
             f"--pool={POOL}", f"--rbdname={image}"],
            {"CEPH_ARGS": " ".join(system.options)}))
    words += ["--thread", f"--ioengine={load.engine}", "--fallocate=none",
              "--invalidate=0", f"--direct={load.direct:d}"]
    path = f"{folder_of(system.name)}/{load.files.name}.0"
    if system.kind == "fuse":
        return of_fio(_local([*words,
                              f"--filename={fuse_of(system)}{path}"]))
    client, where = world.client(system, load.vers, load.opts, load.mem)
    return of_fio(client.run(" ".join(
        [*words, f"--filename={where}{path}"]), seconds + 120))


def _local(words: list[str], env: dict[str, str] | None = None) -> str:
    done = subprocess.run(words, check=False, text=True, timeout=600,
                          stdin=subprocess.DEVNULL, capture_output=True,
                          env={**os.environ, **(env or {})})
    if done.returncode:
        raise SystemExit(f"bench: {' '.join(words)}: status "
                         f"{done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def of_fio(text: str) -> tuple[dict[str, float], int]:
    """fio's JSON, which may have lines of a library before it."""
    begin = re.search(r"^\{$", text, re.M)
    if not begin:
        raise SystemExit(f"bench: fio gave no JSON:\n{text}")
    job = json.loads(text[begin.start():])["jobs"][0]
    if job["error"]:
        raise SystemExit(f"bench: fio ended with error {job['error']}")
    ways = [job[way] for way in ("read", "write") if job[way]["total_ios"]]
    requests = sum(way["total_ios"] for way in ways)
    seconds = max(way["runtime"] for way in ways) / 1000
    figures = {"per_s": requests / seconds,
               "mib_s": sum(way["io_bytes"] for way in ways) / seconds / MIB}
    if len(ways) == 1:
        took = ways[0]["clat_ns"]
        figures["mean_us"] = took["mean"] / 1000
        for key, name in (("50.000000", "p50_us"), ("99.000000", "p99_us")):
            figures[name] = took["percentile"][key] / 1000
    return figures, requests


# rados bench

def _rados_objects(load: Rados) -> None:
    """Something to read, once for each size of block."""
    apart = _namespace(load)
    seen = _local(["rados", "-p", POOL, "ls", "-N", apart])
    if not seen.strip():
        _local(["rados", "bench", "-p", POOL, "-N", apart, "2", "write",
                "-b", str(load.block), "-t", "16", "--no-cleanup",
                "--max-objects", str(READ_BYTES // load.block)])


def _namespace(load: Rados) -> str:
    return f"peers-{load.block}"


def _rados(_world: World, _system: System, load: Rados, seconds: float,
           _seed: int) -> tuple[dict[str, float], int]:
    words = ["rados", "bench", "-p", POOL, "-t", str(load.depth)]
    if load.what == "write":
        words += ["-b", str(load.block), "--no-cleanup"]
    else:
        words += ["-N", _namespace(load)]
    text = _local([*words, str(max(1, round(seconds))), load.what])
    return of_rados(text, load.block)


def of_rados(text: str, block: int) -> tuple[dict[str, float], int]:
    def value(name: str) -> float:
        match = re.search(rf"^{name}:\s+([\d.]+)", text, re.M)
        if not match:
            raise SystemExit(f"bench: rados bench said no '{name}':\n{text}")
        return float(match[1])
    made = int(value(r"Total (?:writes|reads) made"))
    per_s = made / value("Total time run")
    return {"per_s": per_s, "mib_s": per_s * block / MIB,
            "mean_us": value(r"Average Latency\(s\)") * 1e6,
            "max_us": value(r"Max latency\(s\)") * 1e6}, made


# names

def _meta(world: World, system: System, load: Meta, _seconds: float,
          seed: int) -> tuple[dict[str, float], int]:
    name = f"meta-{system.name}-{load.version}-{load.clients}-{seed}"
    words = [name, str(load.clients), str(load.files)]
    if load.version == "3":
        at = world.nfs(system)
        out = _local(["nfsmeta", f"nfs://{at['server']}{at['export']}"
                      f"?version=3&nfsport={at['port']}"
                      f"&mountport={at['mount_port']}", *words])
    elif system.kind == "fuse":
        out = _local(["nfsmeta", str(fuse_of(system)), *words])
    else:
        client, where = world.client(system, load.version, "actimeo=0")
        out = client.run(f"nfsmeta {where} {' '.join(words)}", 600)
    line = next(line for line in out.splitlines() if line.startswith("{"))
    per_s = json.loads(line)["per_s"]
    return ({f"{phase}_per_s": per_s[phase] for phase in PHASES},
            load.files)


def _tree(world: World, system: System, load: Tree, _seconds: float,
          seed: int) -> tuple[dict[str, float], int]:
    name = f"tree-{system.name}-{seed}"
    if system.kind == "fuse":
        out = _local(["bash", "-c", tree.script(f"{fuse_of(system)}/{name}",
                                                load.processes)])
    else:
        client, where = world.client(system, load.version, "")
        out = client.run(
            tree.script(f"{where}/{name}", load.processes), 600)
    return tree.rates(out, load.files), load.files


def _reading(world: World, system: System, load: Reading, _seconds: float,
             _seed: int) -> tuple[dict[str, float], int]:
    client, where = world.client(system, load.version, "")
    out = client.run(reading.script(
        f"{where}{folder_of(system.name)}/{load.files.name}", load.program))
    return tree.rates(out, load.files.count), 2 * load.files.count


RUN: dict[type, Any] = {Nfs: _nfs, Fio: _fio, Rados: _rados, Meta: _meta,
                        Tree: _tree, Reading: _reading}
