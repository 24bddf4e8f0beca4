# SPDX-License-Identifier: LGPL-3.0-or-later
"""The size of a large file after a crash of its gateway is the acknowledged
one, and others can ask for it as soon as the MDS has found it."""
import subprocess
import sys
from pathlib import Path

JOURNAL = Path(__file__).resolve().parents[1] / "crash" / "journal.py"


def test_size_of_a_large_file_after_a_crash(lab, record):
    """Sparse, 2 GiB; the program compares sizes and counts the objects that
    the MDS looked at."""
    done = subprocess.run(
        [sys.executable, "-B", JOURNAL, "probe", "--gib", "2", "--few"],
        text=True, cwd="/tmp", timeout=120, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, done.stdout
    head, _, row = done.stdout.strip().splitlines()
    record(f"after a crash: {head} {row}")
    assert row.startswith("| 2 |")
