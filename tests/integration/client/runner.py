# SPDX-License-Identifier: LGPL-3.0-or-later
"""Runs cases inside the kernel client:  runner.py DIRECTORY CASE…

Each begin and each end is one JSON line on standard output, at once, so
that whoever watches knows which case hangs.
"""
import json
import sys
import time
import traceback
from pathlib import Path

import all_cases
from registry import CASES


def say(**event):
    print(json.dumps(event), flush=True)


def run(name, top):
    say(begin=name)
    directory = top / name
    started = time.monotonic()
    error = None
    try:
        directory.mkdir()
        CASES[name].run(directory)
    except Exception:  # noqa: BLE001 (the case failed, the next one runs)
        error = traceback.format_exc()
    say(end=name, error=error, seconds=round(time.monotonic() - started, 2))


def main():
    assert all_cases
    top = Path(sys.argv[1])
    top.mkdir(exist_ok=True)
    for name in sys.argv[2:]:
        run(name, top)


if __name__ == "__main__":
    main()
