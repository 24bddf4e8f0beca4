# SPDX-License-Identifier: LGPL-3.0-or-later
"""What can be asked of a system: plain descriptions, kept in raw.json."""
from __future__ import annotations

import random
from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True)
class Files:
    """Files that are there, full, before anything is measured: each system
    has its own, written by the same program with the same content."""
    name: str
    size: int
    count: int = 1
    least: int = 0      # of a size between; 0: all have SIZE
    a_folder: int = 0   # so many in each folder of /bench/SYSTEM/NAME

    def path(self, number: int) -> str:
        if not self.a_folder:
            return f"{self.name}.{number}"
        return f"{self.name}/d{number // self.a_folder:03}/f{number:05}"

    def bytes(self, number: int) -> int:
        """As many small ones as large ones, by the logarithm."""
        if not self.least:
            return self.size
        part = random.Random(number).random()
        return int(self.least * (self.size / self.least) ** part)


@dataclass(frozen=True)
class Nfs:
    """nfsload: NFSv3 by libnfs."""
    files: Files
    mix: str = "write=100"
    block: str = "4k"
    connections: int = 4
    depth: int = 32
    stable: str = "file_sync"
    pattern: str = "random"
    probe_ms: float = 0
    warmup_s: float = 0.5
    warm: bool = False          # the file is read before
    pause_journal: bool = False     # the MDS journals nothing meanwhile


@dataclass(frozen=True)
class Fio:
    """fio on a mount, or its rbd engine."""
    files: Files
    rw: str
    bs: str
    depth: int
    direct: bool = True
    jobs: int = 1
    more: tuple[str, ...] = ()
    vers: str = "4.2"           # of NFS, where a mount is NFS
    opts: str = ""
    warm: bool = False          # the file is read into the page cache before
    served: bool = False        # the server has read it before
    once: bool = False          # all of the file, with empty caches, not a time
    engine: str = "libaio"      # libaio calls fsync for fdatasync, too
    rtt_ms: float = 0           # to all that the kernel client talks to
    mem: str = "1G"             # of the kernel client: its page cache
    apart: bool = False         # each job in its own part of the file
    pause_journal: bool = False     # the MDS journals nothing meanwhile


@dataclass(frozen=True)
class Rados:
    """rados bench."""
    what: str                   # write or rand
    block: int
    depth: int


@dataclass(frozen=True)
class Meta:
    """nfsmeta: names are made, looked at, listed, renamed, removed."""
    version: str                # 3 by libnfs, 4.1 in the kernel client
    clients: int
    files: int


@dataclass(frozen=True)
class Tree:
    """untar, git checkout and rm -rf of many small files."""
    files: int
    processes: int = 1
    version: str = "4.2"


@dataclass(frozen=True)
class Reading:
    """A program that reads a tree; client and server know nothing of it."""
    files: Files
    program: str                # of reading.py
    version: str = "4.2"


Load = Nfs | Fio | Rados | Meta | Tree | Reading
