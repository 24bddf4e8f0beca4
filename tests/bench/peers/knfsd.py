# SPDX-License-Identifier: LGPL-3.0-or-later
"""The kernel's NFS server on the kernel's CephFS client."""
from __future__ import annotations

from typing import Any

from peers.kernel_client import KernelClient

# fsid: the file system has no device to name it by; 0 makes it NFSv4's root,
# since the kernel's own root cannot be exported.  nfsdcld keeps the names of
# NFSv4 clients: it says that none will come back, so there is no grace period.
START = """
set -e
modprobe nfsd
mount -t nfsd nfsd /proc/fs/nfsd
mount -t tmpfs tmpfs /var/lib/nfs
mkdir -p /var/lib/nfs/sm /var/lib/nfs/v4recovery /var/lib/nfs/nfsdcld \
	/var/lib/nfs/rpc_pipefs
mount -t rpc_pipefs rpc_pipefs /var/lib/nfs/rpc_pipefs
touch /var/lib/nfs/etab /var/lib/nfs/rmtab
rpcbind -w
nfsdcld -s /var/lib/nfs/nfsdcld -p /var/lib/nfs/rpc_pipefs
exportfs -i -o rw,no_root_squash,insecure,no_subtree_check,fsid=0 \
	'*:/mnt/ceph'
echo 1048576 > /proc/fs/nfsd/max_block_size
rpc.nfsd 64
rpc.mountd -p 20048
ip -4 -o addr show vec0 | awk '{ print $4 }' | cut -d/ -f1
"""


class Knfsd:
    """Two kernels: this one serves, another one is its client."""

    def __init__(self) -> None:
        self.kernel = KernelClient(["--fs", "ceph"])
        self.host = self.kernel.run(START, 60).split()[-1]

    def address(self) -> dict[str, Any]:
        return {"server": self.host, "port": 2049, "mount_port": 20048,
                "export": "/mnt/ceph"}

    def close(self) -> None:
        self.kernel.ask("exportfs -ua; rpc.nfsd 0; umount /mnt/ceph", 60)
        self.kernel.close()
