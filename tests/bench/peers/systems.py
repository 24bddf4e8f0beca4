# SPDX-License-Identifier: LGPL-3.0-or-later
"""Who is compared, and how each is configured."""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class System:
    """One way to the same CephFS (or, as a limit, to RADOS beneath it)."""
    name: str
    label: str
    kind: str           # ganesha, kcephfs, fuse, knfsd, rados or rbd
    fsal: str = ""
    export: tuple[str, ...] = ()
    block: tuple[str, ...] = ()
    options: tuple[str, ...] = ()       # of ceph-fuse, librbd, `lab client`
    nfsv4: tuple[str, ...] = ()
    export_block: tuple[str, ...] = ()


_ALL = (
    System("casync", "CEPH_ASYNC (Stable_Write = data, the default)",
           "ganesha", "CEPH_ASYNC"),
    System("fdatasync", "CEPH_ASYNC, Stable_Write = fdatasync", "ganesha",
           "CEPH_ASYNC", ("Stable_Write = fdatasync;",)),
    System("full", "CEPH_ASYNC, Stable_Write = full", "ganesha",
           "CEPH_ASYNC", ("Stable_Write = full;",)),
    System("single", "CEPH_ASYNC, Gather_Bytes = 0: adjacent writes apart",
           "ganesha", "CEPH_ASYNC", ("Gather_Bytes = 0;",)),
    System("tenth", "CEPH_ASYNC with a read cache of 25 MiB", "ganesha",
           "CEPH_ASYNC", block=("Cache_Bytes = 26214400;",)),
    System("ceph", "FSAL_CEPH, blocking (its default)", "ganesha", "CEPH"),
    System("oc", "FSAL_CEPH, blocking, Client_OC = true", "ganesha", "CEPH",
           block=("Client_OC = true;",)),
    System("cephasync", "FSAL_CEPH, async = true", "ganesha", "CEPH",
           block=("async = true;",)),
    # The plugin turns off Ceph's debug messages in memory (debug_client
    # 0/5 -> 0/0) on its own mounts; this says how much of a lead is that.
    System("quiet", "FSAL_CEPH, blocking, debug_client = 0/0", "ganesha",
           "CEPH", ('User_Id = "quiet";',)),
    System("kcephfs", "kcephfs, the kernel's CephFS client", "kcephfs"),
    System("kcephfsnocrc", "kcephfs, nocrc: without checksums, which this "
           "client has no instruction for", "kcephfs",
           options=("--opts", "nocrc")),
    System("fuse", "ceph-fuse, on the host", "fuse"),
    System("knfsd", "knfsd re-exporting kcephfs", "knfsd"),
    System("rados", "raw RADOS", "rados"),
    System("rbd", "RBD (librbd)", "rbd"),
    System("journal", "CEPH_ASYNC, Stable_Metadata = journal", "ganesha",
           "CEPH_ASYNC", ("Stable_Metadata = journal;",)),
    System("delegated", "CEPH_ASYNC with delegations", "ganesha",
           "CEPH_ASYNC", nfsv4=("Delegations = true;",
                                "Lease_Lifetime = 20;"),
           export_block=("Delegations = rw;",)),
)
SYSTEMS = {one.name: one for one in _ALL}
GANESHAS = tuple(one.name for one in _ALL if one.kind == "ganesha")


def port_of(system: System) -> int:
    """NFS and four ports behind it, away from the lab's own instances."""
    return 21049 + 10 * GANESHAS.index(system.name)


def pseudo_of(system: System) -> str:
    return f"/peer-{system.name}"
