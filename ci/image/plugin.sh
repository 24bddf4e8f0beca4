#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# The plugin from the checkout, in the lab image:
#
#   plugin.sh build     compiled in /build/plugin: the plugin, beside it the one
#                       with faults, the load generators and the unit tests.  It
#                       needs no file but those of ci/image.sh's list
#   plugin.sh install   installed, and `lab` on the PATH; needs the whole tree
set -eu

src=/src/fsal-ceph-async

case $1 in
build)
	echo "plugin: configure"
	cmake -S "$src" -B /build/plugin -G Ninja \
		-DCMAKE_BUILD_TYPE=RelWithDebInfo
	echo "plugin: build"
	cmake --build /build/plugin
	;;
install)
	echo "plugin: install"
	cmake --build /build/plugin
	cmake --install /build/plugin
	cmake --install /build/plugin --component faults
	# The load generator is the lab's, not the product's.
	cmake --install /build/plugin --component lab
	ln -sf "$src/lab/lab" /usr/local/bin/lab
	;;
esac
