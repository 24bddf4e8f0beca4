#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# Runs in the kernel client, twice: "write" makes the files and their
# checksums, "verify" reads them all back through a mount that never saw them.
set -euo pipefail

dir=/mnt/nfs/demo
mkdir -p $dir
cd $dir

case $1 in
write)
	grep ' /mnt/nfs ' /proc/mounts
	echo "a small file"
	echo "Hello from $(uname -sr) over NFS" > small
	echo "256 MiB of pseudo-random bytes"
	openssl enc -aes-128-ctr -pass pass:demo -nosalt -iter 1 \
		< /dev/zero 2> /dev/null | head -c 256M > big || :
	echo "a sparse file: 400 MiB long, 3 extents of 4 KiB"
	truncate -s 400M sparse
	for mib in 3 150 390; do
		head -c 4096 big | dd of=sparse bs=4096 seek=$((mib * 256)) \
			conv=notrunc status=none
	done
	sync
	sha256sum small big > sums
	;;
verify)
	[ "$(stat -c %s big)" = $((256 << 20)) ]
	[ "$(stat -c %s sparse)" = $((400 << 20)) ]
	sha256sum -c sums
	# the holes must be zeros, whatever the first mount thought of them
	{
		at=0
		for mib in 3 150 390; do
			head -c $(((mib << 20) - at)) /dev/zero
			head -c 4096 big
			at=$(((mib << 20) + 4096))
		done
		head -c $(((400 << 20) - at)) /dev/zero
	} | cmp - sparse
	echo "sparse equals its model byte for byte"
	ls -lis $dir
	df -h /mnt/nfs
	;;
*)
	echo "$0: write or verify" >&2
	exit 2
	;;
esac
