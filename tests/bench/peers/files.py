# SPDX-License-Identifier: LGPL-3.0-or-later
"""The files under load, written by libcephfs itself: /bench/SYSTEM/NAME.N.

The same program writes them for every system, whole and with the same
content, and its session ends before anything is measured.
"""
from __future__ import annotations

import contextlib
import os
import random
import time
from collections.abc import Iterable, Iterator
from typing import Any

from peers.loads import MIB, Files

CONTENT = random.Random(1).randbytes(4 * MIB)
# A version is cached 2 s after its last change (io/read_cache.h).  A load that
# is of old files must not begin before.
SETTLED_S = 2.2
# A file of a tree is read ahead so long after (io/next_files.h).
OLD_S = 31


@contextlib.contextmanager
def mounted() -> Iterator[Any]:
    import cephfs           # not where figures are only looked at
    fs = cephfs.LibCephFS(conffile="/etc/ceph/ceph.conf", auth_id="admin")
    fs.mount()
    try:
        yield fs
    finally:
        fs.shutdown()


def folder_of(system: str) -> str:
    return f"/bench/{system}"


def make(wanted: Iterable[tuple[str, Files]]) -> None:
    """Of these systems, those that are missing or too short."""
    filled = [0, 0]
    with mounted() as fs:
        for system, files in wanted:
            folder = folder_of(system)
            fs.mkdirs(folder, 0o755)
            filled[bool(files.a_folder)] += sum(
                _fill(fs, f"{folder}/{files.path(number)}",
                      files.bytes(number)) for number in range(files.count))
        fs.sync_fs()
    if any(filled):
        time.sleep(OLD_S if filled[True] else SETTLED_S)


@contextlib.contextmanager
def _may_be_missing() -> Iterator[None]:
    import cephfs
    with contextlib.suppress(cephfs.ObjectNotFound):
        yield


def _fill(fs: Any, path: str, size: int) -> bool:
    with _may_be_missing():
        if fs.stat(path).st_size >= size:
            return False
    fs.mkdirs(os.path.dirname(path), 0o755)
    handle = fs.open(path, "w", 0o644)
    try:
        for at in range(0, size, len(CONTENT)):
            fs.write(handle, CONTENT[:size - at], at)
    finally:
        fs.close(handle)
    return True


def remove(wanted: Iterable[tuple[str, Files]]) -> None:
    with mounted() as fs:
        for system, files in wanted:
            for number in range(files.count):
                path = f"{folder_of(system)}/{files.path(number)}"
                with _may_be_missing():
                    # A file that a gateway still holds keeps its data.
                    fs.truncate(path, 0)
                    fs.unlink(path)
