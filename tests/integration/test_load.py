# SPDX-License-Identifier: LGPL-3.0-or-later
"""A minute of the mixed load that tests/soak runs for hours, and the arenas
that malloc makes meanwhile."""
import os

import pytest

from lab_program import in_use_kib, malloc_info
from soak.soak import GROWTH_KIB, SMALL_CACHE


def arenas(lab):
    return malloc_info(lab.stat()["ganesha"]["a"]["pid"]).count("<heap nr=")


@pytest.mark.nightly    # ci/job.sh nightly runs the job itself
def test_a_minute_of_mixed_load(lab, record):
    """No error, no bad log line, nothing left in flight, memory bounded."""
    lab.ganesha("restart", "--block", SMALL_CACHE)
    before = lab.stat()["ganesha"]["a"]
    in_use = in_use_kib(before["pid"])
    said = lab.job("soak/soak.py", "--no-up", "1", limit_s=300)
    after = lab.stat()["ganesha"]["a"]
    assert after["pid"] == before["pid"]
    more = in_use_kib(after["pid"]) - in_use
    record(f"a minute of mixed load: {more >> 10} MiB more in use, memory of "
           f"ganesha.nfsd {before['rss_kib'] >> 10} MiB before, "
           f"{after['rss_kib'] >> 10} MiB after, {arenas(lab)} arenas")
    assert more < GROWTH_KIB, said
    assert 1 < arenas(lab) <= 2 * os.cpu_count()


@pytest.mark.parametrize("name, value", (
    ("MALLOC_ARENA_MAX", "1"),
    ("GLIBC_TUNABLES", "glibc.malloc.arena_max=1")))
def test_the_administrator_s_number_of_arenas(lab, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    try:
        lab.ganesha("restart")
        assert arenas(lab) == 1
    finally:
        monkeypatch.delenv(name)
        lab.ganesha("restart")
    assert arenas(lab) > 1
