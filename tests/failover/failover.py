#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""How long clients stand still when their gateway fails or is moved.

    failover.py [--json FILE] [--only KIND] [--vers VERS ...]
                [--patience FACTOR] [--fsal NAME] [--once]
                [--thief [--ceph-thief]]
                [--ipv6] [--ingress [--nfsv4 KEYS] [--config TEXT]] ROUNDS

Two hosts, one gateway with one address, Linux clients over NFSv3, 4.1 and 4.2
that read, write, open and lock (probe.py).  In each round the gateway is
killed, stopped, cut off, its host is reset, and it is moved by hand; each
fault but the last is of host 1, and the last leads back there.  keepalived
finds out and moves the address (hosts.py).  --ingress: `ceph nfs` with a proxy
instead; rank 0 is started at the other host, and the proxy sends there
(ingress.py).  --ipv6: Ceph and the hosts speak IPv6 with each other.

The table has, for each kind of failure, protocol and request: the longest
pause of a client, and how much of it was left when the address had moved;
median and worst of all rounds.  A bound holds for the second one, times
FACTOR on a machine that does other work, too.  Meanwhile a thief at another
gateway tries to lock what the clients have locked, every few ms, and must
never succeed.  In the end every acknowledged byte and name is there.

--thief asks for locks alone, no bound of time holds: sessions are evicted by
hand, too, and the MDS dies in the middle of a move.  --ceph-thief: a CephFS
client wants the locks as well.  After an eviction, and by this client, a lock
may be taken; its holder must write nothing meanwhile.  Whether it is told is
counted (docs/limits.md, thief.py).
"""
from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

from kernel_program import KernelProgram
from lab_program import LOGS, json_lines, lab, say, until
from nfs import rpc
from hosts import ADDRESS, FSAL, IPV6, PORT, Bound, Pair
from ingress import Ingress
from thief import TWICE, CephThief, NfsThief, Thief, judged

PROBE = Path(__file__).resolve().parent / "probe.py"
PLANNED = "moved by hand"
REQUESTS = ("read", "write", "open", "lock")
SERVED_S = 90           # else it hangs
QUIET_S = 3             # between one thing and the next
POLL_S = 0.05
FOLDER = "failover"


class Client:
    """A Linux client with the probe."""

    def __init__(self, vers: str, signals: Path, pair: Pair, *words: str):
        self.vers, self.name = vers, f"v{vers.replace('.', '')}"
        self.held = f"{self.name}-lock-held"
        self.signals = signals
        self.program = KernelProgram(
            signals, "python3", "-B", PROBE, f"{pair.mounted}/{FOLDER}",
            signals, self.name, *words, output=f"{self.name}.out", vers=vers,
            timeout=86400, options=(
                "--name", pair.hosts[0].ganesha, "--server", ADDRESS, "--mem",
                "256M", "--opts", "nolock" if vers == "3" else ""))

    def said(self) -> dict[str, Any]:
        assert not self.program.has_ended(), \
            f"NFSv{self.vers} ended: {self.program.words()}"
        try:
            return json.loads((self.signals / f"{self.name}.json").read_text())
        except FileNotFoundError:
            return {kind: {"count": 0, "pauses": []} for kind in REQUESTS}

    def counts(self) -> dict[str, int]:
        return {kind: each["count"] for kind, each in self.said().items()}

    def moved_on(self, before: dict[str, int]) -> bool:
        """Each kind of request has been answered twice since."""
        now = self.counts()
        return all(now[kind] >= before[kind] + 2 for kind in REQUESTS)

    def pauses(self, since: float) -> dict[str, tuple[float, float]]:
        """The longest pause of each kind: (begin, end)."""
        return {kind: max(
            ((begin, end) for begin, end in each["pauses"] if end > since),
            key=lambda pause: pause[1] - pause[0], default=(since, since))
            for kind, each in self.said().items()}

    def end(self) -> str:
        """What was wrong, or nothing."""
        status = self.program.wait(150)
        return "" if status == 0 else \
            f"NFSv{self.vers}: status {status}: {self.program.words()}"


class Failures:
    """Makes them one after the other, and measures."""

    def __init__(self, pair: Pair, clients: list[Client],
                 thieves: list[Thief]):
        self.pair, self.clients, self.thieves = pair, clients, thieves
        # A loss is one thief's, and another one's chance.
        self.may_lose = len(thieves) > 1
        self.meant: dict[str, Counter[str]] = {
            thief.where: Counter() for thief in thieves}
        self.found: list[dict[str, Any]] = []
        self.stolen: dict[str, int] = {}
        self.events = 0

    def one(self, number: int, kind: str) -> None:
        self.events += 1
        host = self.pair.holder()
        assert host, "nobody has the address"
        target = self.pair.other(host)
        time.sleep(QUIET_S)
        began = time.time()
        self.pair.fail(kind, host)
        if kind in self.pair.stays:
            time.sleep(QUIET_S)
            until(self.pair.holder, "a host has the address", 40, POLL_S)
            target = self.pair.holder() or host
        until(target.has_address, self.pair.moves, 40, POLL_S)
        moved = time.time()
        until(self.null_answers, "the new Ganesha", 60, POLL_S)
        serving = time.time()
        before = [client.counts() for client in self.clients]
        for client, count in zip(self.clients, before):
            until(lambda client=client, count=count: client.moved_on(count),
                  f"NFSv{client.vers} goes on after '{kind}'", SERVED_S,
                  POLL_S)
        for client in self.clients:
            for request, (begin, end) in client.pauses(began).items():
                self.found.append({
                    "event": self.events, "round": number, "kind": kind,
                    "vers": client.vers,
                    "request": request, "pause_s": end - begin,
                    "after_move_s": max(0.0, end - moved),
                    "detected_s": moved - began,
                    "started_s": serving - moved})
        self.tell(number, kind, moved - began, serving - moved)
        healing = time.time()
        if target is not host:
            self.pair.heal(kind, host)
        later = max(end - begin for client in self.clients
                    for begin, end in client.pauses(healing).values())
        if later > 1:
            say(f"round {number}  {kind:<13} a pause of {later:.1f} s while "
                "the host came back")
        for thief in self.thieves:
            for granted, name in thief.taken():
                self.judge(number, kind, thief, granted, name)

    def judge(self, number: int, kind: str, thief: Thief, granted: float,
              name: str) -> None:
        holder, = (one for one in self.clients if one.held == name)
        meant = judged(granted, lambda: holder.said()["lock"])
        self.meant[thief.where][meant] += 1
        when = time.strftime("%T", time.localtime(granted))
        say(f"round {number}  {kind:<13} {when}: NFSv{holder.vers}'s lock was "
            f"granted {thief.where}: {meant}")
        wrong = meant == TWICE or not (self.may_lose or kind == "evicted")
        self.stolen[kind] = self.stolen.get(kind, 0) + wrong

    def tell(self, number: int, kind: str, detected: float,
             started: float) -> None:
        of_round = [one for one in self.found if one["event"] == self.events]
        pauses = "  ".join(
            f"{vers}: " + " ".join(
                f"{one['pause_s']:.1f}" for one in of_round
                if one["vers"] == vers)
            for vers in dict.fromkeys(one["vers"] for one in of_round))
        say(f"round {number}  {kind:<13} address after {detected:.1f} s, "
            f"Ganesha {started:.1f} s later; pauses of "
            f"{', '.join(REQUESTS)}: {pauses}")

    @staticmethod
    def null_answers() -> bool:
        """Ganesha answers at the address."""
        try:
            connection = rpc.Connection(PORT, timeout=1, host=ADDRESS)
        except OSError:
            return False
        try:
            connection.call(0, b"", version=4)
        except (OSError, rpc.Refused):
            return False
        finally:
            connection.close()
        return True


def table(found: list[dict[str, Any]], bound: Bound,
          patience: float) -> list[dict[str, Any]]:
    rows = []
    for key in dict.fromkeys((one["kind"], one["vers"], one["request"])
                             for one in found):
        these = [one for one in found
                 if (one["kind"], one["vers"], one["request"]) == key]
        pauses = [one["pause_s"] for one in these]
        bound_s = bound.planned_s if key[0] == PLANNED else \
            bound.io_s if key[2] in ("read", "write") else bound.state_s
        after = [one["after_move_s"] for one in these]
        rows.append({
            "kind": key[0], "vers": key[1], "request": key[2],
            "runs": len(these), "pause_median_s": statistics.median(pauses),
            "pause_worst_s": max(pauses),
            "after_median_s": statistics.median(after),
            "after_worst_s": max(after), "bound_s": bound_s,
            "holds": max(after) <= patience * bound_s})
    return rows


def show(found: list[dict[str, Any]], rows: list[dict[str, Any]]) -> None:
    print(f"\n{'failure':<14}{'NFS':<5}{'request':<8}{'runs':>5}"
          f"{'pause s: median':>17}{'worst':>7}"
          f"{'after the move: median':>24}{'worst':>7}{'bound':>7}")
    for row in rows:
        print(f"{row['kind']:<14}{row['vers']:<5}{row['request']:<8}"
              f"{row['runs']:>5}{row['pause_median_s']:>17.1f}"
              f"{row['pause_worst_s']:>7.1f}{row['after_median_s']:>24.1f}"
              f"{row['after_worst_s']:>7.1f}{row['bound_s']:>7}"
              f"{'' if row['holds'] else '  MISSED'}")
    print("\nfailure         the address moves after: median, worst s; "
          "Ganesha answers later by: median, worst s")
    for kind in dict.fromkeys(one["kind"] for one in found):
        for_kind = {one["event"]: one for one in found
                    if one["kind"] == kind}.values()
        detected = [one["detected_s"] for one in for_kind]
        started = [one["started_s"] for one in for_kind]
        print(f"{kind:<16}{statistics.median(detected):.1f} "
              f"{max(detected):.1f}; {statistics.median(started):.1f} "
              f"{max(started):.1f}")


def measure(args: argparse.Namespace, pair: Pair, signals: Path) -> list[str]:
    """What was wrong."""
    versions = args.vers or pair.versions
    words = ["may-lose"] * args.thief
    clients = [Client(vers, signals, pair, *words) for vers in versions]
    for client in clients:
        until(lambda client=client: min(client.counts().values()) > 20,
              f"NFSv{client.vers} works", 120)
    say(f"clients over NFSv{', '.join(versions)} work")
    # NFSv3 has no locks here.
    names = [client.held for client in clients if client.vers != "3"]
    thieves: list[Thief] = [NfsThief(FOLDER, names)]
    if args.ceph_thief:
        thieves.append(CephThief(FOLDER, names))
    for thief in thieves:
        thief.start()
    failures = Failures(pair, clients, thieves)
    kinds = [kind for kind in (*pair.kinds, *pair.thief_kinds * args.thief)
             if args.only in (None, kind)]
    try:
        for number in range(1, args.rounds + 1):
            for kind in kinds:
                failures.one(number, kind)
                if not args.once:
                    failures.one(number, PLANNED)
    except BaseException:
        for name in (*(host.ganesha for host in pair.hosts), pair.second):
            lab("ganesha", "stacks", "--name", name, check=False)
        raise
    finally:
        # Clients that end let go of their locks.
        for thief in thieves:
            thief.end()
        (signals / "stop").touch()
    wrong = [text for client in clients if (text := client.end())]
    wrong += [f"{kind}: {count} locks were held twice, or lost in silence"
              for kind, count in failures.stolen.items()
              if count]
    wrong += [thief.wrong for thief in thieves if thief.wrong]
    rows = table(failures.found, pair.bound,
                 float("inf") if args.thief else args.patience)
    show(failures.found, rows)
    print()
    for thief in thieves:
        print(thief.summary(failures.meant[thief.where]))
    wrong += [f"{row['kind']}, NFSv{row['vers']}, {row['request']}: "
              f"{row['after_worst_s']:.1f} s after the address had moved, "
              f"wanted {row['bound_s']}" for row in rows if not row["holds"]]
    if args.json:
        args.json.write_text(json_lines(
            {"rounds": args.rounds, "table": rows, "stolen": failures.stolen,
             "granted": failures.meant, "runs": failures.found,
             "wrong": wrong}), encoding="utf-8")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rounds", type=int, nargs="?", default=10)
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--only", choices=Pair.kinds + Pair.thief_kinds)
    parser.add_argument("--vers", nargs="+", choices=Pair.versions)
    parser.add_argument("--patience", type=float, default=1, metavar="FACTOR")
    parser.add_argument("--fsal", choices=("CEPH", "CEPH_ASYNC"))
    parser.add_argument("--once", action="store_true",
                        help="no move back: for one failure only")
    parser.add_argument("--thief", action="store_true")
    parser.add_argument("--ceph-thief", action="store_true")
    parser.add_argument("--ipv6", action="store_true")
    parser.add_argument("--ingress", action="store_true")
    parser.add_argument("--nfsv4", default="", metavar="KEYS")
    parser.add_argument("--config", metavar="TEXT")
    args = parser.parse_args()
    if args.fsal:
        os.environ[FSAL] = args.fsal
    if args.ipv6:
        os.environ[IPV6] = "1"
    signals = Path(tempfile.mkdtemp(prefix="failover-"))
    say("a cluster, two hosts, two gateways")
    pair = Ingress(args.nfsv4, args.config) if args.ingress else Pair()
    try:
        wrong = measure(args, pair, signals)
    finally:
        pair.end()
    for each in wrong:
        print(f"WRONG: {each}")
    print(f"logs are in {LOGS}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
