#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# The packages, from the source tarball to their removal:
#
#   ci/package.sh          all of this
#   ci/package.sh short    without what is marked *, for ci/test.sh
#   ci/package.sh build [deb|rpm]
#                          built once and looked at: what users install
#   ci/package.sh release  PACKAGES=FOLDER: built once and looked at, with an SBOM,
#                          for ci/release.sh
#   ci/package.sh deb      one DEB, and docs/quick-start.md walked with it, for
#                          ci/test.sh other
#
# - RPM and DEB are built, listed, given to rpmlint and lintian, and built once
#   more elsewhere: the bytes must be the same *
# - the same version with a lower release is built, to upgrade from (RPM *)
# - in a fresh container, with Ganesha and without compiler or sources, they
#   are installed, serve a mount, are upgraded under clients that keep files
#   open, take FSAL_CEPH's place and give it back, and are removed
#   (tests/packages); the image of config/container/ is made of them
# - an image is built from source, config/container/Containerfile.source; it
#   stops where it cannot fit *
# - a Ganesha with another FSAL API, and another version of Ganesha, refuse the
#   plugin and serve the rest *
# - the other Ganesha of those that we build for refuses packages and plugin *
#
# GANESHA=5.9: for that Ganesha, which is built from source (ci/image.sh).
# IMAGE_READY=1: the lab image is there and fits, it is not looked at again.
#
# Packages stay in build/packages (build/packages-5.9), logs in
# build/package-logs/<time>.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=ci/lib/lib.sh
. "$top/ci/lib/lib.sh"

LIMIT=${PACKAGE_LIMIT:-900}
mode=${1:-all}
case $mode in
all | short | build | release | deb) ;;
*) die "'$mode': short, build [deb|rpm], release, deb or nothing" ;;
esac
kinds="deb rpm"
if [ "$#" -gt 1 ]; then
	case "$mode $2" in
	"build deb" | "build rpm") kinds=$2 ;;
	*) die "'$mode $2': only build takes a second word, deb or rpm" ;;
	esac
fi

packages=$top/build/packages
tag=latest
lab=
if [ -e "$top/ci/ganesha/$GANESHA.env" ]; then
	packages=$packages-$GANESHA
	tag=ganesha$GANESHA
	lab=$IMAGE
fi
logs=$top/build/package-logs/$(date +%Y%m%d-%H%M%S)
builder=casync-package-build-$$
user=casync-package-use-$$
if [ "$mode" = release ]; then
	packages=${PACKAGES:?names the folder for the packages}
	[ ! -e "$packages" ] || die "PACKAGES=$packages is there already"
fi
mkdir -p "$logs"
rm -rf "$packages"
mkdir -p "$packages"

# shellcheck disable=SC2317,SC2329 # called by trap
finish()
{
	result=$?
	trap - EXIT
	for name in "$builder" "$user"; do
		"$ENGINE" cp "$name:/var/log/casync-lab/." "$logs/$name" \
			> /dev/null 2>&1 || :
		end_lab "$name"
	done
	say "logs: $logs"
	[ "$result" = 0 ] || say "failed (status $result)"
	exit "$result"
}

# image KIND TAG BASE [LAB]: of ci/package/Containerfile.KIND
image()
{
	name=package-$1:$2
	watched "$logs/image-$1-$2.log" '^(Step|STEP|#[0-9]+ \[) ?[0-9]' \
		"$ENGINE" build -f "$top/ci/package/Containerfile.$1" \
		-t "fsal-ceph-async/$name" --build-arg "BASE=$3" \
		--build-arg "LAB=${4:-$3}" "$top/ci/package" || {
		tail -n 25 "$log" >&2
		die "the image was not built"
	}
	say "image fsal-ceph-async/$name is ready"
}

# What ci/image.sh took, when nobody named one.
lab_base()
{
	for base in "fsal-ceph-async/base:$SUITE" "docker.io/library/debian:$SUITE"
	do
		if "$ENGINE" image inspect "$base" > /dev/null 2>&1; then
			echo "$base"
			return 0
		fi
	done
	die "no base image: see ci/image.sh"
}

# step NAME CONTAINER COMMAND...: its output to the logs; to the screen what it
# has made, a sign of life, and its end when it fails.
step()
{
	log=$logs/$1.log
	where=$2
	shift 2
	watched "$log" '^(dpkg-deb: building|Wrote: )' \
		"$ENGINE" exec "$where" timeout -k 30 "$LIMIT" "$@" || {
		status=$?
		tail -n 60 "$log" >&2
		die "$(basename "$log" .log) failed (status $status), see $log"
	}
}

# The tarball of release $1, in the builder as /tarballs/$1/.
dist()
{
	PACKAGE_RELEASE=$1 "$top/ci/dist.sh" "$packages/source-$1" \
		> "$logs/dist-$1.log"
	tarball=/tarballs/$1/$(basename "$(cat "$logs/dist-$1.log")")
	"$ENGINE" exec "$builder" mkdir -p "/tarballs/$1"
	"$ENGINE" cp "$(cat "$logs/dist-$1.log")" "$builder:$tarball"
}

# build KIND RELEASE WHICH
build()
{
	say "building $1, release $2"
	step "build-$1-$3" "$builder" sh /opt/package/build.sh "$1" \
		"$tarball" "/packages/$1/$3"
}

build_all()
{
	if [ "$mode" = deb ]; then
		dist 1
		build deb 1 this
		return 0
	fi
	case $mode in
	all | short)
		dist 0
		build deb 0 previous
		[ "$mode" = short ] || build rpm 0 previous
		;;
	esac
	dist 1
	for kind in $kinds; do
		build "$kind" 1 this
		say "looking at $kind"
		step "check-$kind" "$builder" sh /opt/package/check.sh "$kind" \
			"/packages/$kind/this/out" /opt/package/rpmlint.toml
		case $mode in
		all | short) sed 's/^/    /' "$logs/check-$kind.log" ;;
		esac
	done
	if [ "$mode" = release ]; then
		say "SBOM"
		step sbom "$builder" sh /opt/package/sbom.sh "$tarball" \
			/packages/deb/this/out /packages/sbom
	fi
	[ "$mode" = all ] || return 0
	for kind in $kinds; do
		say "building $kind once more"
		step "again-$kind" "$builder" sh /opt/package/again.sh "$kind" \
			"$tarball" "/packages/$kind/this"
		grep '^the same bytes' "$logs/again-$kind.log"
	done
}

# What tests are made of; of the plugin nothing.
put_tests()
{
	"$ENGINE" exec "$1" mkdir -p /opt/casync/tests
	"$ENGINE" cp "$top/lab" "$1:/opt/casync/lab"
	"$ENGINE" cp "$top/docs" "$1:/opt/casync/docs"
	for part in conftest.py integration lab_program.py nfs packages \
			pytest.ini; do
		"$ENGINE" cp "$top/tests/$part" "$1:/opt/casync/tests/$part"
	done
	"$ENGINE" exec "$1" ln -sf /opt/casync/lab/lab /usr/local/bin/lab
	# cephadm's template, which the lab image has.
	"$ENGINE" exec "$builder" tar -c -C /usr/share casync-lab |
		"$ENGINE" exec -i "$1" tar -x -C /usr/share
}

pytest()
{
	where=$1
	shift
	{
		"$ENGINE" exec -w /opt/casync/tests/packages "$where" \
			timeout -k 30 "$LIMIT" python3 -B -m pytest -v -rsP \
			-p no:cacheprovider "$@" 2>&1 && echo 0 > "$logs/status" ||
			echo $? > "$logs/status"
	} | tee "$logs/$1.log"
	[ "$(cat "$logs/status")" = 0 ] ||
		die "tests failed, see $logs/$1.log"
}

# The image that users make, of the image that we have.
overlay()
{
	say "an image of config/container/Containerfile"
	for package in "" -compat; do
		mkdir -p "$packages/overlay$package"
		cp "$top/config/container/Containerfile" "$packages/overlay$package"
	done
	cp "$packages"/deb/this/out/nfs-ganesha-ceph-async_*.deb \
		"$packages/overlay"
	cp "$packages"/deb/this/out/nfs-ganesha-ceph-async_*.deb \
		"$packages"/deb/this/out/nfs-ganesha-ceph-async-compat_*.deb \
		"$packages/overlay-compat"
	for package in "" -compat; do
		"$ENGINE" build -t "fsal-ceph-async/overlay$package:$tag" \
			-f "$packages/overlay$package/Containerfile" \
			--build-arg "BASE=fsal-ceph-async/package-run:$tag" \
			"$packages/overlay$package" > "$logs/overlay$package.log" 2>&1 || {
			tail -n 25 "$logs/overlay$package.log" >&2
			die "the image was not built"
		}
	done
	"$ENGINE" run --rm "fsal-ceph-async/overlay:$tag" sh -c \
		'test -e /usr/lib/*/ganesha/libfsalceph_async.so'
	serves "fsal-ceph-async/overlay:$tag"
	"$ENGINE" run --rm "fsal-ceph-async/overlay-compat:$tag" sh -c \
		'test -e /usr/lib/*/ganesha/libfsalceph.so.distrib'
	overlay_stops
}

# A gateway of image $1 serves an export by the plugin, and with a second
# argument one more by its stand-in for FSAL_CEPH.
serves()
{
	IMAGE=$1
	served=${1##*/}
	served=${served%:*}
	end_lab "$user"
	start_lab "$user"
	put_tests "$user"
	step "serves-$served" "$user" sh -c 'lab up --fsal CEPH_ASYNC &&
		nfs-ls "nfs://127.0.0.1/ceph?version=4"'
	[ -z "${2-}" ] ||
		step "serves-compat-$served" "$user" sh -c '
			lab ganesha restart --fsal CEPH &&
			nfs-ls "nfs://127.0.0.1/ceph?version=4" &&
			grep "FSAL CEPH [0-9.]*: FSAL API" \
				/var/log/casync-lab/ganesha-a.log'
	say "the image $1 serves an export by the plugin"
}

# On a base without Ganesha the build stops with one line.
overlay_stops()
{
	! "$ENGINE" build -f "$packages/overlay/Containerfile" \
		--build-arg "BASE=${BASE_IMAGE:-$(lab_base)}" \
		"$packages/overlay" > "$logs/overlay-stops.log" 2>&1 ||
		die "the image was built on a base without Ganesha"
	grep 'STOP: this image has Ganesha (none), the packages are for' \
		"$logs/overlay-stops.log" | tail -n 1
}

# source_image NAME BASE [OPTIONS]: of config/container/Containerfile.source
source_image()
{
	name=$1
	base=$2
	shift 2
	"$ENGINE" build -t "fsal-ceph-async/$name:$tag" \
		-f "$context/config/container/Containerfile.source" \
		--build-arg "BASE=$base" "$@" "$context" \
		> "$logs/$name.log" 2>&1
}

# stops LINE BASE [OPTIONS]: that build stops, with this line.
stops()
{
	line=$1
	shift
	! source_image source-stops "$@" ||
		die "the image was built, instead of: STOP: $line"
	grep -o "STOP: $line.*" "$logs/source-stops.log" || {
		tail -n 25 "$logs/source-stops.log" >&2
		die "not said: STOP: $line"
	}
}

# An image like the run image, with command $1 run in it.
spoiled()
{
	printf 'FROM fsal-ceph-async/package-run:%s\nRUN %s\n' "$tag" "$1" |
		"$ENGINE" build -t "fsal-ceph-async/spoiled:$tag" - \
			> "$logs/spoiled.log" 2>&1
}

# The image that users make without packages, from the tarball.  The sources
# are the lab's: no host of git repositories is asked.
from_source()
{
	say "an image of config/container/Containerfile.source"
	context=$packages/source-image
	mkdir -p "$context"
	tar -x -f "$(cat "$logs/dist-1.log")" -C "$context" --strip-components=1
	beside=$context/config/container
	run=fsal-ceph-async/package-run:$tag
	stops "no source of Ganesha $GANESHA" "$run" \
		--build-arg GANESHA_URL=https://127.0.0.1/none
	"$ENGINE" exec "$builder" tar -cz -C /usr/src/nfs-ganesha tree \
		> "$beside/nfs-ganesha-$GANESHA.tar.gz"
	"$ENGINE" exec -w /usr/src/nfs-ganesha "$builder" \
		sh -c 'tar -c libntirpc-dev*.deb' | tar -x -C "$beside"
	stops "this image has no Ganesha" "${BASE_IMAGE:-$(lab_base)}"
	spoiled 'printf "echo V6.5" > /usr/local/bin/ganesha.nfsd && \
		chmod +x /usr/local/bin/ganesha.nfsd'
	stops "this image has Ganesha 6.5" "fsal-ceph-async/spoiled:$tag"
	spoiled 'sed -i "/^Package: libcephfs2$/,/^Version/s/^\(Version: \).*/\1 18.2.7-1/" \
		/var/lib/dpkg/status'
	stops "this image has libcephfs 18.2.7" "fsal-ceph-async/spoiled:$tag"
	source_image from-source "$run" --build-arg COMPAT=yes || {
		tail -n 25 "$logs/from-source.log" >&2
		die "the image was not built"
	}
	grep -E '^(loaded|symbols): ' "$logs/from-source.log"
	serves "fsal-ceph-async/from-source:$tag" compat
}

# These packages where the other Ganesha is.
other_ganesha()
{
	if [ -n "$lab" ]; then
		set -- latest ""
	else
		set -- ganesha5.9 fsal-ceph-async/lab:ganesha5.9
		"$ENGINE" image inspect "$2" > /dev/null 2>&1 || {
			say "not run: these packages on Ganesha 5.9, there is no" \
				"image $2 (GANESHA=5.9 ci/image.sh)"
			return 0
		}
	fi
	image run "$1" "${BASE_IMAGE:-$(lab_base)}" "$2"
	end_lab "$user"
	IMAGE=fsal-ceph-async/package-run:$1
	start_lab "$user"
	put_tests "$user"
	"$ENGINE" cp "$packages" "$user:/packages"
	pytest "$user" test_other_ganesha.py
}

[ -n "${IMAGE_READY-}" ] || "$top/ci/image.sh"
ensure_engine
trap finish EXIT
trap 'exit 130' INT TERM

# Side by side: the one waits for the network while the other unpacks.
run_image=
if [ "$mode" != build ] && [ "$mode" != release ]; then
	image run "$tag" "${BASE_IMAGE:-$(lab_base)}" "$lab" &
	run_image=$!
fi
image build "$tag" "$IMAGE"
IMAGE=fsal-ceph-async/package-build:$tag
start_lab "$builder"
"$ENGINE" exec "$builder" mkdir -p /packages
"$ENGINE" cp "$top/ci/package" "$builder:/opt/package"
"$ENGINE" cp "$top/packaging/rpm/rpmlint.toml" "$builder:/opt/package/"
build_all
"$ENGINE" cp "$builder:/packages/." "$packages"
# Not the version before, which tests of updates want.
say "packages:"
find "$packages" -path '*/this/out/*' -name 'nfs-ganesha-*' \
	\( -name '*.deb' -o -name '*.rpm' \) ! -name '*dbg*' ! -name '*debug*' \
	! -name '*.src.rpm' | sort | sed 's/^/    /'
case $mode in
build | release) exit 0 ;;
esac

# Stand-ins for what an RPM distribution has; see there.
if [ "$mode" != deb ]; then
	step stand-ins "$builder" sh /opt/package/stand-ins.sh \
		/packages/rpm/this/out /packages/rpm/stand-ins
	"$ENGINE" cp "$builder:/packages/rpm/stand-ins" \
		"$packages/rpm/stand-ins"
fi

wait "$run_image"
IMAGE=fsal-ceph-async/package-run:$tag
start_lab "$user"
put_tests "$user"
"$ENGINE" cp "$packages" "$user:/packages"
say "installing and using them"
if [ "$mode" = deb ]; then
	pytest "$user" test_quick_start.py \
		test_deb.py::test_nothing_to_build_with \
		test_deb.py::test_what_it_depends_on \
		test_deb.py::test_which_ganesha_it_takes
	exit 0
fi
pytest "$user" test_deb.py test_quick_start.py test_rpm.py test_source.py
overlay

[ "$mode" = all ] || exit 0
from_source
say "Ganeshas that do not fit (log: $logs/wrong-ganesha.log)"
step wrong-ganesha "$builder" sh /opt/package/wrong-ganesha.sh /wrong
put_tests "$builder"
pytest "$builder" test_wrong_ganesha.py
other_ganesha
