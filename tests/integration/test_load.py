# SPDX-License-Identifier: LGPL-3.0-or-later
"""A minute of the mixed load that tests/soak runs for hours."""
from soak.soak import SMALL_CACHE


def test_a_minute_of_mixed_load(lab, record):
    """No error, no bad log line, nothing left in flight, memory bounded."""
    lab.ganesha("restart", "--block", SMALL_CACHE)
    before = lab.stat()["ganesha"]["a"]
    said = lab.job("soak/soak.py", "--no-up", "1", limit_s=300)
    after = lab.stat()["ganesha"]["a"]
    record(f"a minute of mixed load: memory of ganesha.nfsd "
           f"{before['rss_kib'] >> 10} MiB before, "
           f"{after['rss_kib'] >> 10} MiB after")
    assert after["pid"] == before["pid"]
    assert after["rss_kib"] - before["rss_kib"] < 256 << 10, said
