#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# Builds the lab image, fsal-ceph-async/lab: a container engine first, then in
# four steps, of which each is done again only when its own inputs change:
#
#   base        Debian
#   toolchain   ci/Containerfile: Ceph, Ganesha, compilers
#   built       the plugin and the unit tests, compiled.  Its inputs are the
#               files of compiled_from().  The volume casync-ccache keeps what
#               gcc has made
#   lab         the rest of the tree: what it costs to edit a test or a document
#
#   GANESHA=5.9                        another Ganesha than the default, see
#                                      ci/ganesha/; a tag of its own
#   GANESHA_TARBALL=FILE               the other one's source.  Without: that in
#                                      ../shared/ganesha, or Debian's source
#                                      package, or upstream's tag
#   GANESHA_FROM=auto|package|source   where Ganesha's daemon comes from
#   BASE_IMAGE=debian:forky            a base of one's own, not bootstrapped
#   IMAGE=name                         another tag than fsal-ceph-async/lab
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=ci/lib/lib.sh
. "$top/ci/lib/lib.sh"

logs=$top/build/logs
mkdir -p "$logs"
toolchain=fsal-ceph-async/toolchain:$GANESHA
builder=casync-image-$$
trap '[ -z "${ENGINE-}" ] || end_lab "$builder"' EXIT
trap 'exit 130' INT TERM

have_image()
{
	"$ENGINE" image inspect "$1" > /dev/null 2>&1
}

bootstrap()
{
	mmdebstrap --variant=minbase --include=ca-certificates \
		--aptopt='Acquire::Check-Valid-Until "false"' \
		"$SUITE" "$logs/base.tar"
}

# Sets $base to an image of the suite, made here when nobody named one.
ensure_base()
{
	base=${BASE_IMAGE:-}
	[ -z "$base" ] || return 0
	base=fsal-ceph-async/base:$SUITE
	if have_image "$base"; then
		return 0
	fi
	if ! command -v mmdebstrap > /dev/null; then
		if [ "$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then
			base=docker.io/library/debian:$SUITE
			say "no mmdebstrap here: the base image is $base"
			return 0
		fi
		say "installing mmdebstrap"
		{ apt-get update -q && apt-get install -q -y mmdebstrap; } \
			> "$logs/apt.log" 2>&1 ||
			die "mmdebstrap cannot be installed, see $logs/apt.log"
	fi
	say "base image: Debian $SUITE by mmdebstrap (log: $logs/base.log)"
	watched "$logs/base.log" '^I: |^E: ' bootstrap ||
		die "mmdebstrap failed, see $logs/base.log (SUITE is set in" \
		    "ci/versions.env; BASE_IMAGE names another base)"
	"$ENGINE" import "$logs/base.tar" "$base" > /dev/null
	rm -f "$logs/base.tar"
}

# What the build needs of Ganesha, in its context: versions.env with the values
# of the chosen one, and its source where there is a tarball.
ganesha_files()
{
	files=$top/build/ganesha
	rm -rf "$files"
	mkdir -p "$files"
	cp "$top/ci/versions.env" "$files/versions.env"
	[ ! -e "$top/ci/ganesha/$GANESHA.env" ] ||
		cat "$top/ci/ganesha/$GANESHA.env" >> "$files/versions.env"
	# The default's source is the distribution's.
	[ -e "$top/ci/ganesha/$GANESHA.env" ] || return 0
	tarball=$top/../shared/ganesha/nfs-ganesha-$GANESHA.tar.gz
	[ -n "${GANESHA_TARBALL-}" ] || [ ! -e "$tarball" ] ||
		GANESHA_TARBALL=$tarball
	[ -n "${GANESHA_TARBALL-}" ] || return 0
	cp "$GANESHA_TARBALL" "$files/source.tar" ||
		die "GANESHA_TARBALL=$GANESHA_TARBALL cannot be read"
}

# The image of compilers, by ci/Containerfile.
build_toolchain()
{
	set -- -f "$top/ci/Containerfile" -t "$toolchain" \
		--build-arg "BASE=$base" --build-arg "GANESHA=$GANESHA" \
		--build-arg "GANESHA_FROM=${GANESHA_FROM:-auto}" "$top"
	if [ "$ENGINE" = podman ]; then
		podman build --layers "$@"
	elif docker buildx version > /dev/null 2>&1; then
		docker buildx build --progress plain --load "$@"
	else
		DOCKER_BUILDKIT=0 docker build "$@"
	fi
}

# The files that the plugin and the unit tests are compiled from.
compiled_from()
{
	(cd "$top" && find CMakeLists.txt cmake FSAL_CEPH_ASYNC check \
		docs/generate tests/unit tests/faults tests/bench/load \
		tests/fuzz tests/sanitize ci/image/plugin.sh -type f \
		\( -name '*.[ch]' -o -name '*.in' -o -name '*.cmake' \
		-o -name CMakeLists.txt -o -name plugin.sh \)) | LC_ALL=C sort
}

# The whole tree for tar, less what runs have left in it.
tree()
{
	tar -C "$top" --sort=name --exclude=./.git --exclude='./build' \
		--exclude='./build-*' --exclude=__pycache__ \
		--exclude=.pytest_cache --exclude='*.log' -c .
}

# The container $builder, of image $1 and with the files that come as a tar
# archive, becomes image $2 after plugin.sh $3.
step()
{
	LAB_IMAGE=$1 start_compiling_lab "$builder" &&
		"$ENGINE" exec -i "$builder" \
			tar -x --no-same-owner -C /src/fsal-ceph-async &&
		"$ENGINE" exec "$builder" \
			sh /src/fsal-ceph-async/ci/image/plugin.sh "$3" &&
		"$ENGINE" commit --change "LABEL casync.from=$4" "$builder" "$2" \
			> /dev/null &&
		end_lab "$builder"
}

build()
{
	build_toolchain || return
	id=$("$ENGINE" image inspect -f '{{.Id}}' "$toolchain")
	compiled_from > "$logs/compiled-from"
	sum=$({ echo "$id"; cd "$top" && xargs sha256sum < "$logs/compiled-from"; } |
		sha256sum | cut -c 1-16)
	built=fsal-ceph-async/built:$GANESHA-$sum
	have_image "$built" || {
		forget_built
		tar -C "$top" -c -T "$logs/compiled-from" |
			step "$toolchain" "$built" build "$id"
	} || return
	tree_sum=$({ echo "$sum"; tree; } | sha256sum | cut -c 1-16)
	old=$("$ENGINE" image inspect -f \
		'{{.Id}} {{index .Config.Labels "casync.from"}}' "$IMAGE" \
		2> /dev/null) || old=
	[ "${old#* }" != "$tree_sum" ] || return 0
	tree | step "$built" "$IMAGE" install "$tree_sum" || return
	[ -z "$old" ] || "$ENGINE" image rm "${old% *}" > /dev/null 2>&1 || :
}

# Only the newest is used again.
forget_built()
{
	"$ENGINE" image ls --format '{{.Repository}}:{{.Tag}}' |
		grep "^\(localhost/\)\{0,1\}fsal-ceph-async/built:$GANESHA-" |
		while read -r old; do
			"$ENGINE" image rm "$old" > /dev/null 2>&1 || :
		done
}

case ${GANESHA_FROM:-auto} in
auto | package | source) ;;
*) die "GANESHA_FROM=$GANESHA_FROM: auto, package or source" ;;
esac
[ "${GANESHA_FROM-}" != package ] || [ ! -e "$top/ci/ganesha/$GANESHA.env" ] ||
	die "GANESHA_FROM=package: there is none of Ganesha $GANESHA, say" \
		"source or nothing"

ensure_devices
ensure_engine
# A tree has one build/ganesha.  After ensure_engine: a daemon that this starts
# would keep the lock.
exec 9> "$logs/image.lock"
flock -n 9 || {
	say "waiting for another ci/image.sh of this tree"
	flock 9
}
ensure_base
ganesha_files
say "building $IMAGE with $ENGINE (log: $logs/image.log)"
watched "$logs/image.log" '^(Step|STEP|#[0-9]+ \[) ?[0-9]|image: |plugin: ' \
	build || {
	grep -v '^ *$' "$logs/image.log" | tail -n 25 >&2
	die "the image was not built; the whole log is $logs/image.log"
}
say "$IMAGE is ready"
