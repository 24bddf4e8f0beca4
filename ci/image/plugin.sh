#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# Last layer: the plugin from the checkout, built in /build/plugin and installed,
# beside it the one with faults and the load generators; and `lab` on the PATH.
# The unit tests, more than half of a build, are built by those who run them.
set -eu

src=/src/fsal-ceph-async

echo "plugin: configure"
cmake -S "$src" -B /build/plugin -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo
echo "plugin: build"
cmake --build /build/plugin --target FSAL_CEPH_ASYNC/all check/all tests/faults/all \
	ceiling client_lock disks tests/bench/load/nfsload/all \
	tests/bench/load/nfsmeta/all
echo "plugin: install"
cmake --install /build/plugin
cmake --install /build/plugin --component faults
# The load generator is the lab's, not the product's.
cmake --install /build/plugin --component lab

ln -sf "$src/lab/lab" /usr/local/bin/lab
