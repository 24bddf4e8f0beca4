# SPDX-License-Identifier: LGPL-3.0-or-later
"""Files with a time of the past, kept open with a delegation:
delegated_times.py DIRECTORY SIGNALS NAME...

A file of each NAME is written, flushed, and gets the time WHEN.  Then "ready"
is made in SIGNALS; after "go" each must have its bytes still, and takes more.
Prints how many delegations were returned until then.
"""
import os
import sys
from pathlib import Path

from delegated_work import returned
from registry import equal, wait_for

WHEN = 1_600_000_000_123_456_789
DATA = b"as its holder left it"
MORE = b", and more"


def main():
    top, signals, *names = sys.argv[1:]
    top, signals = Path(top), Path(signals)
    top.mkdir()
    fds = {}
    for name in names:
        fds[name] = os.open(top / name, os.O_RDWR | os.O_CREAT)
        os.write(fds[name], DATA)
        os.fsync(fds[name])
        os.utime(fds[name], ns=(WHEN, WHEN))
        equal(os.stat(top / name).st_mtime_ns, WHEN, f"time of {name}")
    before = returned()
    (signals / "ready").touch()
    wait_for(signals / "go")
    print(f"{returned() - before} returned", flush=True)
    for name, fd in fds.items():
        equal(os.pread(fd, 100, 0), DATA, f"data of {name}")
        os.write(fd, MORE)
        os.close(fd)
    for name in names:
        equal((top / name).read_bytes(), DATA + MORE, f"{name} in the end")
    print("all well")


if __name__ == "__main__":
    main()
