#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# In the container where they were built: what is in the packages of FOLDER,
# what lintian and rpmlint think, and whether debug symbols tell lines.
#
#   check.sh deb|rpm FOLDER RPMLINT.TOML
set -eu

kind=$1 folder=$2 rules=$3
cd "$folder"

list_deb()
{
	for package in *.deb; do
		echo "--- $package"
		dpkg-deb -f "$package" Version Depends Recommends
		dpkg-deb -c "$package" | awk '{ print $1, $3, $6, $7, $8 }'
	done
}

list_rpm()
{
	for package in *.rpm; do
		echo "--- $package"
		command rpm -qp --requires "$package"
		command rpm -qplv "$package" | awk '{ print $1, $5, $9, $10, $11 }'
	done
}

lint_deb()
{
	lintian --allow-root --info --display-info --fail-on info,warning,error \
		./*.changes
}

lint_rpm()
{
	rpmlint --strict -c "$rules" ./*.rpm
}

unpack_deb()
{
	dpkg-deb -x "$1" "$2"
}

unpack_rpm()
{
	rpm2cpio "$1" | (cd "$2" && cpio -idm --quiet)
}


# Both libraries, by the symbols that the packages bring.
debug()
{
	root=$(mktemp -d)
	for package in *async*.deb *async*.rpm; do
		case $package in
		*.src.rpm | '*async*'*) ;;
		*) "unpack_$kind" "$package" "$root" ;;
		esac
	done
	find "$root/usr" -name 'libfsal*.so' > "$root/libraries"
	while read -r library; do
		gdb -nx -batch -ex "set debug-file-directory $root/usr/lib/debug" \
			-ex "file $library" -ex 'info line casync_module_init' \
			< /dev/null | tee "$root/said"
		grep -q 'Line [0-9]* of ".*module.c"' "$root/said"
	done < "$root/libraries"
	rm -rf "$root"
}

"list_$kind"
echo "--- lint"
"lint_$kind"
echo "--- debug symbols"
debug
