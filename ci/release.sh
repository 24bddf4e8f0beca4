#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# A release, from the commit that is checked out:
#
#   ci/release.sh
#
# The source tarball, the packages (DEB, RPM) for each Ganesha, an SBOM for each
# Ganesha (SPDX) and SHA256SUMS, in build/release/VERSION.  Nothing is there
# before everything is made.  VERSION is CMakeLists.txt's.
#
# The same commit and images give the same bytes: a second run says whether they
# are.  IMAGE_READY=1: the lab images are there and fit.  CPU_SHARES=64: other
# containers come first.
set -eu

# Each of them is chosen here.
unset GANESHA IMAGE PACKAGE_RELEASE

top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=ci/lib/lib.sh
. "$top/ci/lib/lib.sh"

case ${1-} in
'') ;;
-h | --help)
	sed -n '4,/^set -eu/s/^# \{0,1\}//p' "$0"
	exit 0
	;;
*) die "'$1': no arguments, or --help" ;;
esac

name=nfs-ganesha-ceph-async
commit=
all=$top/build/release

# A commit alone says what is in a release.
clean()
{
	head=$(git -C "$top" rev-parse --verify --quiet HEAD) ||
		die "$top has no commit to release: git clone it"
	commit=${commit:-$head}
	[ "$head" = "$commit" ] || die "another commit was checked out while" \
		"$(short) was built: check that out, and run this again"
	changes=$(git -C "$top" status --porcelain)
	[ -z "$changes" ] || {
		echo "$changes" | head -n 20 >&2
		die "these files are not as in commit $(short): commit them," \
			"or put them aside with 'git stash --include-untracked'"
	}
}

short()
{
	echo "$commit" | cut -c 1-12
}

# shellcheck disable=SC2317,SC2329 # called by trap
finish()
{
	result=$?
	trap - EXIT
	rm -rf "$making"
	[ "$result" = 0 ] ||
		say "no release was made (status $result); $all is as before"
	exit "$result"
}

# Packages for Ganesha $1, to the files of the release.
packages_for()
{
	say "packages for Ganesha $1"
	packages=$making/packages-$1
	GANESHA=$1 PACKAGES=$packages "$top/ci/package.sh" release
	# Left out: what tells when and where it was made (.buildinfo, .changes,
	# .src.rpm).  The tarball makes both kinds of packages.
	find "$packages/deb/this/out" "$packages/rpm/this/out" \
		"$packages/sbom" \( -name '*.deb' -o -name '*.spdx.json' -o \
		-name '*.rpm' ! -name '*.src.rpm' \) \
		-exec mv -t "$files" {} +
	tarball=$packages/source-1/$name-$version.tar.gz
	[ ! -e "$files/$name-$version.tar.gz" ] ||
		cmp "$tarball" "$files/$name-$version.tar.gz" ||
		die "two source tarballs of one commit are different"
	mv "$tarball" "$files"
	rm -rf "$packages"
}

# What has to be there for Ganesha $1.
all_there()
{
	for kind in "${name}_*+ganesha$1_*.deb" "$name-compat_*+ganesha$1_*.deb" \
			"$name-$version-*.ganesha$1.*.rpm" \
			"$name-compat-$version-*.ganesha$1.*.rpm" \
			"$name-$version+ganesha$1.spdx.json"; do
		[ "$(find "$files" -name "$kind" | wc -l)" = 1 ] ||
			die "not one $kind among the files of the release"
	done
}

# With the former release of this version, when it is of this commit.
compare()
{
	[ "$(cat "$all/.$version.commit" 2> /dev/null)" = "$commit" ] &&
		[ -e "$all/$version/SHA256SUMS" ] || return 0
	if cmp -s "$all/$version/SHA256SUMS" "$files/SHA256SUMS"; then
		say "the same bytes as in the run before"
	else
		say "not the bytes of the run before (<), from the same commit:"
		diff "$all/$version/SHA256SUMS" "$files/SHA256SUMS" || :
	fi
}

clean
version=$(project_version)
SOURCE_DATE_EPOCH=$(git -C "$top" log -1 --format=%ct)
export SOURCE_DATE_EPOCH
say "release $version of commit $(short)"
grep -m 1 '^## ' "$top/CHANGELOG.md" | grep -q "^## $version " ||
	say "note: CHANGELOG.md does not begin with $version, but with:" \
		"$(grep -m 1 '^## ' "$top/CHANGELOG.md")"

# On the same file system as the release, so that it comes at once.
mkdir -p "$all"
making=$(mktemp -d "$all/.making.XXXXXX")
trap finish EXIT
trap 'exit 130' INT TERM
files=$making/$version
mkdir "$files"

ganeshas=$GANESHA_VERSION
for other in "$top"/ci/ganesha/*.env; do
	ganeshas="$ganeshas $(basename "$other" .env)"
done
for ganesha in $ganeshas; do
	packages_for "$ganesha"
	all_there "$ganesha"
done
clean

(cd "$files" && LC_ALL=C && export LC_ALL && sha256sum -- * \
	> "$making/SHA256SUMS" && mv "$making/SHA256SUMS" .)
chmod -R u=rwX,go=rX "$files"
find "$files" -exec touch -d "@$SOURCE_DATE_EPOCH" {} +
compare
[ ! -e "$all/$version" ] || mv "$all/$version" "$making/before"
mv "$files" "$all/$version"
echo "$commit" > "$all/.$version.commit"

say "release $version of commit $(short) is in build/release/$version:"
cd "$all/$version"
while read -r sum file; do
	printf '%9s  %s  %s\n' "$(stat -c %s "$file")" "$sum" "$file"
done < SHA256SUMS
printf '%9s  %s  %s\n' "$(stat -c %s SHA256SUMS)" \
	"$(sha256sum < SHA256SUMS | cut -c 1-64)" SHA256SUMS
