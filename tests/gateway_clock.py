# SPDX-License-Identifier: LGPL-3.0-or-later
"""The wall clock of one ganesha.nfsd, which tests can step.

libfaketime reads the offset from a file; CLOCK_MONOTONIC stays as it is.
Ganesha opens its FSALs with RTLD_DEEPBIND, by which the plugin and libcephfs
would still see the true clock: preload.c takes that away.
"""
import subprocess
from pathlib import Path

STEP_S = 60
SEEN_S = 1.5            # a busy process has seen a step by then
DEEPBIND = Path(__file__).resolve().parent / "sanitize" / "preload.c"
PRELOAD = Path("/tmp/casync-no-deepbind.so")
OPTIONS = (
    "DONT_FAKE_MONOTONIC=1",
    # Debian builds with the other value.  With it a wait by CLOCK_MONOTONIC
    # ends at once, and the plugin's start fails.
    "FAKETIME_FORCE_MONOTONIC_FIX=0",
    "FAKETIME_CACHE_DURATION=1", "FAKETIME_DISABLE_SHM=1", "NO_FAKE_STAT=1")


class GatewayClock:
    """What its file says is read again after FAKETIME_CACHE_DURATION."""

    def __init__(self, name):
        self.file = Path(f"/tmp/casync-clock-{name}")
        self.offset_s = 0
        self.set(0)

    def set(self, offset_s):
        """libfaketime ends the process when it finds an empty file."""
        new = self.file.with_suffix(".new")
        new.write_text(f"{offset_s:+d}\n", encoding="ascii")
        new.replace(self.file)
        self.offset_s = offset_s

    def wrapper(self):
        """For `lab ganesha start --wrapper`."""
        library, = Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")
        if not PRELOAD.exists():
            subprocess.run(["cc", "-shared", "-fPIC", "-o", PRELOAD, DEEPBIND],
                           check=True, timeout=60, stdin=subprocess.DEVNULL)
        return " ".join(("env", f"LD_PRELOAD={PRELOAD}:{library}",
                         f"FAKETIME_TIMESTAMP_FILE={self.file}", *OPTIONS))
