#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# In the container where they were built: the SBOM of the packages, by Debian's
# debsbom, as SPDX 2.3 in JSON:
#
#   sbom.sh TARBALL FOLDER_OF_DEBS FOLDER
#
# It has our DEB packages with their SHA-256, and all packages that they need at
# run time, in the versions that they were built and tested with, with licenses
# and checksums.  debsbom knows no RPM: ours have the same source, compiler and
# libraries.
#
# The same packages give the same bytes.
set -eu

tarball=$1 debs=$2 out=$3
main=nfs-ganesha-ceph-async
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. /opt/image/versions.env

# debsbom keeps packages in sets, whose order would be another one each time.
export PYTHONHASHSEED=0

# Our packages, as dpkg would list them once they are installed here.
root=$work/root
mkdir -p "$work/ours" "$root/var/lib/dpkg" "$root/var/lib/apt" \
	"$root/usr/share/doc"
cp "$debs/${main}"_*.deb "$debs/$main-compat"_*.deb "$work/ours"
(cd "$work/ours" && dpkg-scanpackages --multiversion .) 2> "$work/scan" |
	sed '/^Package: /a Status: install ok installed' > "$work/listed"
[ "$(grep -c '^Package: ' "$work/listed")" = 2 ] || {
	cat "$work/scan" >&2
	exit 1
}
cat /var/lib/dpkg/status "$work/listed" > "$work/status"

# What they need is listed, not what else there is in this container.
apt-cache -o "Dir::State::status=$work/status" \
	-o "Dir::Cache::pkgcache=" -o "Dir::Cache::srcpkgcache=" depends \
	--recurse --installed --no-recommends --no-suggests --no-conflicts \
	--no-breaks --no-replaces --no-enhances "$main" "$main-compat" |
	sed -n 's/^\([a-z0-9][^ :]*\).*/\1/p' | sort -u > "$work/names"
awk -v names="$work/names" '
	BEGIN {
		while ((getline name < names) > 0)
			wanted[name] = 1
		RS = ""
		ORS = "\n\n"
		FS = "\n"
	}
	{ split($1, first, ": ") }
	first[2] in wanted && /\nStatus: [a-z]+ ok installed\n/' \
	"$work/status" > "$root/var/lib/dpkg/status"

# Those are parts of the release which somebody asks for: ours.
sed -n 's/^Package: //p' "$root/var/lib/dpkg/status" | grep -v "^$main" |
	while read -r name; do
		printf 'Package: %s\nArchitecture: %s\nAuto-Installed: 1\n\n' \
			"$name" "$(dpkg --print-architecture)"
	done > "$root/var/lib/apt/extended_states"
# Checksums, and licenses.
ln -s /var/lib/apt/lists "$root/var/lib/apt/lists"
for deb in "$work"/ours/*.deb; do
	dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$root" --wildcards \
		'./usr/share/doc/*/copyright'
done
grep -v "^$main" "$work/names" | while read -r name; do
	ln -s "/usr/share/doc/$name" "$root/usr/share/doc/$name"
done

deb=$(echo "$work/ours/${main}"_*.deb)
version=$(dpkg-deb -f "$deb" Version)
tar -x -O -f "$tarball" "$(basename "$tarball" .tar.gz)/debian/changelog" \
	> "$work/changelog"
date=$(dpkg-parsechangelog -l "$work/changelog" -S Timestamp)
# The name of the document, which another content may not have.
name=$version-$(sha256sum < "$root/var/lib/dpkg/status" | cut -c 1-16)
mkdir -p "$out"
debsbom generate --sbom-type spdx --validate --root "$root" \
	--distro-arch "$(dpkg --print-architecture)" --with-licenses \
	--timestamp "$(date -u -d "@$date" +%Y-%m-%dT%H:%M:%SZ)" \
	--spdx-namespace "$(dpkg-deb -f "$deb" Homepage)spdx/$main-$name" \
	--distro-name "$main" --distro-version "$version" \
	--distro-supplier "$(dpkg-deb -f "$deb" Maintainer | sed 's/ *<.*//')" \
	--distro-summary "$(dpkg-deb -f "$deb" Description | head -n 1)" \
	--add-meta-data "source=$(basename "$tarball")" \
	--add-meta-data "source-sha256=$(sha256sum < "$tarball" | cut -c 1-64)" \
	--add-meta-data "headers-of=nfs-ganesha $GANESHA_SOURCE" \
	--add-meta-data "compiler=$(cc --version | head -n 1)" \
	--out "$out/$main-${version%-*+*}+${version##*+}.spdx.json"
ls "$out"
