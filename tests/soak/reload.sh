#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# Runs in the kernel client:  reload.sh SIGNALS MOUNT-OPTIONS PSEUDO.  fio
# writes and verifies on the mount of the lab and on one of PSEUDO, round by
# round, until there is a file "stop" in the folder SIGNALS; files are made
# and removed beside it.  Any error ends it with status 1.
set -u

signals=$1
export TMPDIR=/run
mkdir -p /mnt/other
mount -t nfs -o "$2" "lab:$3" /mnt/other || exit 1

running()
{
	[ ! -e "$signals/stop" ] && [ ! -e /run/failed ]
}

failed()
{
	echo "reload: $*" >&2
	touch /run/failed
	exit 1
}

verified()
{
	dir=$1
	log=/run/fio-$2.log
	rounds=0
	rm -rf "$dir"
	mkdir "$dir" || failed "mkdir $dir"
	while running; do
		for mode in "--direct=1 --bs=4k" "--direct=1 --bs=1m" \
			"--direct=0 --bs=16k --fsync=64"; do
			running || break
			# shellcheck disable=SC2086 # $mode is a list of options
			fio --name=verify --filename="$dir/fio" --size=8m \
				--rw=randwrite --ioengine=libaio --iodepth=16 \
				--verify=crc32c --verify_fatal=1 --do_verify=1 \
				--randrepeat=0 --refill_buffers $mode \
				> "$log" 2>&1 ||
				{ cat "$log" >&2; failed "fio $mode on $dir"; }
			rounds=$((rounds + 1))
			: > "$dir/new-$rounds" || failed "create in $dir"
			rm "$dir/new-$rounds" || failed "rm in $dir"
			rm "$dir/fio" || failed "rm of the data in $dir"
			touch "$signals/running"
		done
	done
	echo "reload: fio on $dir: $rounds verified rounds"
	rm -rf "$dir" || failed "rm -rf $dir"
}

verified /mnt/nfs/reload a & one=$!
verified /mnt/other/reload b & two=$!
wait $one; a=$?
wait $two; b=$?
umount /mnt/other || exit 1
exit $((a || b))
