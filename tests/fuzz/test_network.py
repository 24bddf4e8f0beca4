# SPDX-License-Identifier: LGPL-3.0-or-later
"""Handles that nobody was given, sent to a running ganesha.nfsd."""
import random
import re
import time
from pathlib import Path

from handles import Fuzz, World

ROUND_S = 60
# AddressSanitizer keeps 256 MiB of what was freed.
GROWTH_KIB = 384 << 10
END_S = 60


def memory_kib(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"^VmRSS:\s+(\d+)", status, re.M)[1])


def test_handles(daemon, request, say):
    option = request.config.getoption
    seed = option("--seed")
    if seed is None:
        seed = random.randrange(2**32)
    pid, before = daemon.pid(), None
    end = time.monotonic() + option("--minutes") * 60
    rounds = 0
    while time.monotonic() < end:
        world = World(2049, "/ceph", f"fuzz-{seed}-{rounds}")
        fuzz = Fuzz(world, seed + rounds)
        fuzz.run(min(ROUND_S, end - time.monotonic()))
        say(f"seed {seed + rounds}: {fuzz.summary()}")
        assert not fuzz.wrong, "\n".join(fuzz.wrong)
        world.check()
        assert daemon.pid() == pid
        before = before or memory_kib(pid)
        rounds += 1
    say(f"memory: {before >> 10} MiB after the first round, "
        f"{memory_kib(pid) >> 10} MiB after the last")
    assert memory_kib(pid) < before + GROWTH_KIB
    daemon.stop(END_S)
    found = daemon.reports()
    assert not found.counting, "\n".join(found.counting)[:20000]
