# SPDX-License-Identifier: LGPL-3.0-or-later
"""A minute of the mixed load that tests/soak runs for hours."""
import subprocess
import sys
from pathlib import Path

SOAK = Path(__file__).resolve().parents[1] / "soak" / "soak.py"


def test_a_minute_of_mixed_load(lab, record):
    """No error, no bad log line, nothing left in flight, memory bounded."""
    before = lab.stat()["ganesha"]["a"]
    done = subprocess.run(
        [sys.executable, "-B", SOAK, "--no-up", "1"], text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, timeout=300, check=False)
    after = lab.stat()["ganesha"]["a"]
    record(f"a minute of mixed load: memory of ganesha.nfsd "
           f"{before['rss_kib'] >> 10} MiB before, "
           f"{after['rss_kib'] >> 10} MiB after")
    assert done.returncode == 0, done.stdout
    assert after["pid"] == before["pid"]
    assert after["rss_kib"] - before["rss_kib"] < 256 << 10, done.stdout
