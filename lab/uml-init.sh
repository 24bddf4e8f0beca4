#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# Init of the user-mode kernel that `lab client` boots.  The container's
# whole file system is its root; $casync_job (from the kernel's command line)
# is a folder with the job: `env` (shell assignments), `cmd` (a script),
# `stdin`, and afterwards `status`.
#
# Serial lines: ttyS0 carries the command's stdout, ttyS1 its stderr, ttyS2
# this script's own complaints; the kernel's chatter goes to the console.
: "${casync_job:?}"
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# Each program that starts costs 30 ms here: as few as can be.
mount -a -T "${0%/*}/uml-fstab"
mkdir -p /run/lock
ln -sf /proc/self/fd /dev/fd
ln -s "/usr/lib/uml/modules/$(uname -r)" "/lib/modules/$(uname -r)"

job=$casync_job
for tty in 0 1 2; do
	stty -F /dev/ttyS$tty raw -echo -opost
done

say()
{
	echo "lab client: $*" > /dev/ttyS2
}

finish()
{
	# A dead mount or a full page cache must not keep us from ending.
	echo "$1" > "$job/status"
	timeout 20 sync "$job/status"
	cd /
	timeout 60 umount -a -t nfs,nfs4,ceph || say "umount failed or was slow"
	timeout 20 sync -f /
	for tty in 0 1 2; do
		timeout 20 stty -F /dev/ttyS$tty raw
	done
	echo o > /proc/sysrq-trigger
	sleep 60
}

# shellcheck source=/dev/null
. "$job/net"
: "${client_number:?}" "${client_addr:?}" "${host_addr:?}"
echo "uml-$client_number" > /proc/sys/kernel/hostname

# No name server is in reach, and waiting for one costs the id mapper 20 s.
# Ganesha's default domain is "localdomain".
echo "127.0.0.1 localhost uml-$client_number" > /run/hosts
echo "$host_addr lab" >> /run/hosts
: > /run/resolv.conf
printf '[General]\nDomain = localdomain\n' > /run/idmapd.conf
for file in hosts resolv.conf idmapd.conf; do
	[ -e /etc/$file ] && mount --bind /run/$file /etc/$file
done

ip link set lo up
ip addr add "$client_addr/24" dev vec0
ip link set vec0 up
ip route add default via "$host_addr"

# shellcheck source=/dev/null
. "$job/mount" 2> /run/mount.err || {
	say "mount failed:"
	cat /run/mount.err > /dev/ttyS2
	finish mount-failed
}

mkfifo /run/out /run/err
cat /run/out > /dev/ttyS0 &
out=$!
cat /run/err > /dev/ttyS1 &
err=$!
exec 8> /run/out 9> /run/err
bash "$job/cmd" < "$job/stdin" >&8 2>&9 8>&- 9>&-
status=$?
exec 8>&- 9>&-

# Children that it left behind may hold the pipes: they get two seconds.
for _ in $(seq 40); do
	kill -0 $out 2>/dev/null || kill -0 $err 2>/dev/null || break
	sleep 0.05
done
finish $status
