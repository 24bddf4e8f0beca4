#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# Runs in the kernel client:  load.sh SECONDS [FILE].  Three loops side by side,
# each until the time is over, FILE is there or something of it fails; one
# failure ends all.
set -u

seconds=$1
ends=${2-/nonexistent}
dir=/mnt/nfs/soak
end=$((SECONDS + seconds))
export TMPDIR=/run

rm -rf $dir
mkdir -p $dir || exit 1

running()
{
	[ "$SECONDS" -lt "$end" ] && [ ! -e "$ends" ] && [ ! -e /run/failed ]
}

failed()
{
	echo "load: $*" >&2
	touch /run/failed
	exit 1
}

# Random writes of several sizes, direct and through the cache, all verified.
verified()
{
	rounds=0
	while running; do
		for mode in "--direct=1 --bs=4k" "--direct=1 --bssplit=4k/50:64k/50" \
			"--direct=0 --bs=16k --fsync=64"; do
			running || break
			# shellcheck disable=SC2086 # $mode is a list of options
			fio --name=verify --filename=$dir/fio --size=48m \
				--rw=randwrite --ioengine=libaio --iodepth=32 \
				--verify=crc32c --verify_fatal=1 --do_verify=1 \
				--randrepeat=0 --refill_buffers $mode \
				> /run/fio.log 2>&1 ||
				{ cat /run/fio.log >&2; failed "fio $mode"; }
			rounds=$((rounds + 1))
		done
	done
	echo "load: fio: $rounds verified rounds"
}

# A program of many small files, built by make and run.
built()
{
	builds=0
	while running; do
		rm -rf $dir/build || failed "rm -rf build"
		mkdir $dir/build || failed "mkdir build"
		cd $dir/build || failed "cd build"
		: > all.h
		{ echo "int main(void) { long s = 0;"
		for n in $(seq 20); do
			echo "long f$n(long);" >> all.h
			printf '#include <stdio.h>\n#include "all.h"\nlong f%d(long x) { return x + %d; }\n' \
				"$n" "$n" > "f$n.c"
			echo "s = f$n(s);"
		done
		echo 'return s == 210 ? 0 : 1; }'; } > body
		{ echo '#include "all.h"'; cat body; } > main.c
		printf 'main: %s main.o\n\tcc -o $@ $^\n%%.o: %%.c all.h\n\tcc -O1 -c -o $@ $<\n' \
			"$(seq -f 'f%g.o' -s ' ' 20)" > Makefile
		make -s -j4 > /run/make.log 2>&1 ||
			{ cat /run/make.log >&2; failed "make"; }
		./main || failed "the program that was built"
		cd / || exit 1
		builds=$((builds + 1))
	done
	echo "load: $builds builds"
}

# Trees made, renamed and removed.
trees()
{
	trees=0
	while running; do
		mkdir $dir/tree || failed "mkdir tree"
		for d in $(seq 8); do
			mkdir "$dir/tree/$d" || failed "mkdir"
			for f in $(seq 25); do
				echo "$d $f" > "$dir/tree/$d/$f" || failed "create"
			done
			ln -s "$d/1" "$dir/tree/link$d" || failed "symlink"
		done
		mv $dir/tree $dir/moved || failed "rename"
		[ "$(find $dir/moved -type f | wc -l)" = 200 ] ||
			failed "find does not see 200 files"
		[ "$(cat $dir/moved/link3)" = "3 1" ] || failed "a file's content"
		rm -rf $dir/moved || failed "rm -rf"
		[ ! -e $dir/moved ] || failed "rm -rf left something"
		trees=$((trees + 1))
	done
	echo "load: $trees trees made and removed"
}

verified & one=$!
built & two=$!
trees & three=$!
wait $one; a=$?
wait $two; b=$?
wait $three; c=$?
rm -rf $dir || failed "rm -rf at the end"
exit $((a || b || c))
