#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""The configuration is read again and again while fio verifies on two exports.

    reload.py [--vers 4.2] [--no-up] RELOADS

One kernel client, two exports of one Ganesha, fio with checksums on both.
Each reload gives both exports other values of every key that may change; one
in five has a key that may not, or a wrong value, which are refused.  Each
change must be told of; the client must see no error; memory and descriptors
must stay.  Exit status 0 when every check holds; each failed one is a line on
stderr.
"""
from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from pathlib import Path

from soak import (LOG, NUMBER, SMALL_CACHE, bad_lines, close, growth,
                  logs_from_now, mount_options, quiet_in_flight,
                  second_export, stacks, stat)
from kernel_program import KernelProgram
from lab_program import Log, has_reread, lab

LOAD = Path(__file__).with_name("reload.sh")
PSEUDO = "/other"
PATIENCE_S = 60
PAUSE_S = 0.5           # in which the new values are worked with
WARM_UP = 2             # reloads before what counts
GROWTH_KIB = 24 * 1024  # from the second to the last quarter
GROWTH_FDS = 10

# Each key's values in turn; all differ from the one before.
TURNS = {
    "Stable_Write": ("full", "data", "fdatasync"),
    "Promote_Unstable": ("false", "true"),
    "Max_Inflight": ("4", "8192", "64", "1"),
    "Max_Inflight_Bytes": ("4194304", "1073741824"),
    "Max_Read": ("1048576", "2097152"),
    "Max_Write": ("1048576", "2097152", "4194304"),
    "Gather_Bytes": ("0", "65536", "8192"),
    "Object_Size": ("1048576", "4194304"),
    "Stripe_Unit": ("1048576", "524288"),
    "Stripe_Count": ("1", "2", "3"),
    "Reconnect": ("false", "true"),
    "Reconnect_Timeout": ("600", "0"),
    "Drain_Timeout": ("31", "32"),
    "Slow_Op_Warn": ("20000", "30000"),
    "Stats_Interval": ("5", "0"),
}

# What every fifth reload has besides, and what is said then.
WRONG = (
    ('Filesystem = "nowhere";', r"reload refused.*Filesystem"),
    ("Max_Inflight = 0;", r"Max_Inflight = 0 is refused"),
    ("Session_Timeout = 99;", r"reload refused.*Session_Timeout"),
    ('User_Id = "nobody";', r"reload refused.*User_Id"),
)

# What a refusal makes Ganesha say.
TOLD = re.compile(r"reload refused|is refused: |Failed to call update_export|"
                  r"Could not update export|reread_config :CONFIG :CRIT|"
                  r"config_errs_to_log")


class Complaint(Exception):
    """A check that failed."""


def keys(turn: int) -> dict[str, str]:
    return {key: values[turn % len(values)]
            for key, values in TURNS.items()}


def written(values: dict[str, str], more: str = "") -> str:
    text = {**values}
    if more.startswith("Max_Inflight "):
        del text["Max_Inflight"]
    return " ".join(f"{key} = {value};" for key, value in text.items()) + more


def export_block(text: str) -> str:
    return second_export(PSEUDO, f"Name = CEPH_ASYNC; {text}")


def reload_with(text: str, load: KernelProgram) -> str:
    """What Ganesha logged of it."""
    log = Log(LOG)
    lab("ganesha", "reload", "--export", text, "--append", export_block(text))
    end = time.monotonic() + PATIENCE_S
    while not has_reread(log):
        if load.has_ended():
            raise Complaint("the load ended")
        if time.monotonic() > end:
            stacks()
            raise Complaint(f"no end of a reload within {PATIENCE_S} s")
        time.sleep(0.05)
    return log.text()


def changes(log: str) -> list[str]:
    """Of both exports, as they were told of."""
    return sorted(re.findall(r":EVENT :(export (?:1|77): \w+ = .*)", log))


def check_change(log: str, before: dict[str, str], after: dict[str, str]
                 ) -> None:
    wanted = sorted(
        f"export {number}: {key} = {after[key]} (was {before[key]})"
        for number in (1, NUMBER) for key in after
        if after[key] != before[key])
    if changes(log) != wanted:
        raise Complaint(f"told of {changes(log)}, wanted {wanted}")


def check_refusal(log: str, pattern: str) -> None:
    said = re.findall(pattern, log)
    if len(said) != 2 or changes(log):
        raise Complaint(f"wanted {pattern} twice and no change:\n{log}")


def run(reloads: int, load: KernelProgram) -> list[dict]:
    samples = []
    at = 0
    now = keys(at)
    begin = time.monotonic()
    for number in range(1, reloads + 1):
        if number % 5:
            at += 1
            after = keys(at)
            check_change(reload_with(written(after), load), now, after)
            now = after
        else:
            more, pattern = WRONG[number // 5 % len(WRONG)]
            check_refusal(reload_with(written(keys(at + 1), " " + more),
                                      load), pattern)
        time.sleep(PAUSE_S)
        samples.append(stat())
        if number % 20 == 0 or number == reloads:
            print(f"reload: after {number}: rss "
                  f"{samples[-1]['rss_kib'] / 1024:.0f} MiB, fds "
                  f"{samples[-1]['fds']}, threads {samples[-1]['threads']}, "
                  f"{time.monotonic() - begin:.0f} s",
                  flush=True)
    return samples


def judge(first: dict, samples: list[dict]) -> list[str]:
    complaints = []
    if stat()["pid"] != first["pid"]:
        complaints.append("ganesha.nfsd is another one now")
    for key, most in (("rss_kib", GROWTH_KIB), ("fds", GROWTH_FDS)):
        early, late = growth(samples[WARM_UP:], key)
        if late - early > most:
            complaints.append(f"{key} grew from {early:.0f} to {late:.0f}")
    left = quiet_in_flight()
    if left:
        complaints.append(f"still in flight: {left}")
    return complaints


def await_load(load: KernelProgram) -> None:
    end = time.monotonic() + PATIENCE_S
    while not (load.signals / "running").exists():
        if load.has_ended() or time.monotonic() > end:
            raise Complaint("the load does not begin")
        time.sleep(0.1)


def end_load(load: KernelProgram) -> None:
    load.stop()
    status = load.wait(240, stacks)
    if status != 0:
        raise Complaint("the load does not end" if status is None else
                        f"the load ended with status {status}")


def under_load(args: argparse.Namespace) -> list[str]:
    signals = Path(tempfile.mkdtemp(prefix="reload-"))
    logs = logs_from_now()
    first = stat()
    load = KernelProgram(signals, "bash", LOAD, signals,
                         mount_options(args.vers), PSEUDO, vers=args.vers,
                         timeout=7200)
    try:
        await_load(load)
        samples = run(args.reloads, load)
        end_load(load)
        complaints = judge(first, samples)
    except Complaint as err:
        complaints = [str(err)]
    finally:
        load.end()
        print(load.words(), end="", flush=True)
    return complaints + [f"log: {line}" for line in bad_lines(logs)
                         if not TOLD.search(line)][:20]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vers", default="4.2")
    parser.add_argument("--no-up", action="store_true",
                        help="use the lab that runs")
    parser.add_argument("reloads", type=int)
    args = parser.parse_args()
    if not args.no_up:
        lab("up", "--fsal", "CEPH_ASYNC", loud=True)
    lab("client", "--", "mkdir", "-p", f"/mnt/nfs{PSEUDO}", cwd="/")
    text = written(keys(0))
    lab("ganesha", "restart", "--fsal", "CEPH_ASYNC", "--block", SMALL_CACHE,
        "--export", text, "--append", export_block(text), loud=True)
    return close("reload", f"{args.reloads} reloads, NFSv{args.vers}",
                 under_load(args))


if __name__ == "__main__":
    sys.exit(main())
