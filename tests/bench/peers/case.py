# SPDX-License-Identifier: LGPL-3.0-or-later
"""A case and a scenario, and what many of them share."""
from __future__ import annotations

from dataclasses import dataclass, field

from peers.env import Env
from peers.loads import MIB, Files, Fio, Load, Rados

GATEWAYS = ("casync", "ceph", "cephasync")
SERVERS = (*GATEWAYS, "knfsd")
CLIENTS = (*SERVERS, "kcephfs", "fuse")

IO = Files("io", 256 * MIB)
SLOW = Files("slow", 64 * MIB)
APPEND = Files("append", 0)
CACHED = Files("cached", 128 * MIB)
LARGER = Files("larger", 640 * MIB)
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


def rados(what: str, depth: int = 64,
          block: int = 4096) -> tuple[tuple[str, Load], ...]:
    return (("rados", Rados(what, block, depth)),)


def rbd(rw: str, bs: str, depth: int) -> tuple[tuple[str, Load], ...]:
    return (("rbd", Fio(IO, rw, bs, depth)),)
