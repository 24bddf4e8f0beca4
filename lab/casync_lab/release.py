# SPDX-License-Identifier: LGPL-3.0-or-later
"""Which Ganesha the lab has, and what an old one wants of the lab."""
from __future__ import annotations

import functools
import re
from typing import Any

from .util import LabError, run

# Keys of the lab that Ganesha has since 9; before, each is a WARN at start.
SINCE_9 = ("allow_set_io_flusher_fail", "Blocking_Locks", "Monitoring_Port")


@functools.cache
def of_ganesha() -> tuple[int, ...]:
    """(9, 14), as ganesha.nfsd says."""
    done = run(["ganesha.nfsd", "-v"])
    match = re.search(r"V(\d+(?:\.\d+)+)", done.stdout + done.stderr)
    if not match:
        raise LabError("ganesha.nfsd -v says no version: "
                       f"{(done.stdout + done.stderr).strip()}")
    return tuple(int(part) for part in match[1].split("."))


def known(keys: dict[str, Any]) -> dict[str, Any]:
    """Those of KEYS that this Ganesha has."""
    return {key: value for key, value in keys.items()
            if of_ganesha() >= (9,) or key not in SINCE_9}


def keeps_listings() -> bool:
    """Does MDCACHE list directories itself unless Dir_Chunk is 0?"""
    return of_ganesha() < (9,)


def has_registry() -> bool:
    """Does it show metrics at an endpoint?"""
    return of_ganesha() >= (9,)


def kernel_options() -> list[str]:
    """What Linux's client needs.  Ganesha before 9 answers GET_DIR_DELEGATION
    with OP_ILLEGAL; Linux 6.19 and later then fail with EREMOTEIO."""
    if of_ganesha() >= (9,):
        return []
    return ["nfsv4.directory_delegations=N"]
