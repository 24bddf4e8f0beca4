#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# For the edit loop: a lab container that stays, with this tree in it and a
# build folder that is kept, so that only what has changed is built.
#
#   ci/dev.sh unit [NAME…] [CTEST ARGS]   builds these unit tests, or all, and
#                                         runs them: ci/dev.sh unit gate flush
#   ci/dev.sh test [PYTEST ARGS]          installs the plugin if it has changed,
#                                         and runs pytest; the cluster stays:
#                                         ci/dev.sh test test_locks.py -k reclaim
#   ci/dev.sh case VERS-NAME              one case in the kernel client:
#                                         ci/dev.sh case v4.2-hard_link
#   ci/dev.sh lint [ARGS]                 ci/lint/run.sh, of the files that
#                                         differ from the last commit if none
#                                         are named
#   ci/dev.sh which FILE…                 the tests for a file, by the map and by
#                                         "I changed X: run Y"
#   ci/dev.sh run COMMAND…                anything, in the tree in the container
#   ci/dev.sh shell                       a shell there
#   ci/dev.sh end                         removes the container and its build
#
# The container is casync-dev-ID, with an ID for each tree.  GANESHA=5.9 as in
# ci/image.sh.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=ci/lib/lib.sh
. "$top/ci/lib/lib.sh"

dev=casync-dev-$(echo "$top $GANESHA" | sha256sum | cut -c 1-8)

inside()
{
	"$ENGINE" exec -w /src/fsal-ceph-async "$dev" "$@"
}

# The container; the image is built if there is none, and not looked at again.
ensure_dev()
{
	ensure_engine
	[ "$("$ENGINE" container inspect -f '{{.State.Running}}' "$dev" \
		2> /dev/null)" != true ] || return 0
	end_lab "$dev"
	"$ENGINE" image inspect "$IMAGE" > /dev/null 2>&1 || "$top/ci/image.sh"
	say "starting $dev, which stays until ci/dev.sh end"
	start_compiling_lab "$dev" -v "$dev:/build" \
		-v "$top:/src/fsal-ceph-async"
}

# The plugin is installed when it was linked since the last time.
install_plugin()
{
	inside cmake --build /build/plugin --target FSAL_CEPH_ASYNC/all \
		check/all tests/faults/all tests/bench/load/nfsload/all \
		tests/bench/load/nfsmeta/all > /dev/null
	# shellcheck disable=SC2016 # the shell in the container expands it
	inside sh -c 'newer=$(find /build/plugin/FSAL_CEPH_ASYNC \
			/build/plugin/tests/faults /build/plugin/tests/bench/load \
			check /build/plugin/check -type f \
			\( -name "*.so" -o -name "nfs*" -o -name "*.py" \
			-o -name "ganesha-ceph-*" \) \
			-newer /build/installed 2> /dev/null)
		[ -e /build/installed ] && [ -z "$newer" ] && exit
		cd /build/plugin && touch /build/now &&
		for component in "" "--component faults" "--component lab"; do
			cmake --install . $component || exit
		done > /dev/null &&
		mv /build/now /build/installed && echo "the plugin is installed"'
}

unit()
{
	targets="" names=""
	while [ "$#" -gt 0 ]; do
		case $1 in
		-*) break ;;
		esac
		targets="$targets test_${1#test_}"
		names="$names|test_${1#test_}"
		shift
	done
	# shellcheck disable=SC2086 # a list of targets
	inside ninja -C /build/plugin --quiet ${targets:-all}
	[ -z "$names" ] || set -- -R "^(${names#|})$" "$@"
	inside ctest --test-dir /build/plugin --output-on-failure \
		--no-tests=error --parallel 6 "$@"
}

# A file without a folder is one of the integration tests.
tests()
{
	for word; do
		shift
		case $word in
		test_*.py*) word=tests/integration/$word ;;
		esac
		set -- "$@" "$word"
	done
	install_plugin
	inside python3 -B -m pytest "$@"
}

lint()
{
	if [ "$#" = 0 ]; then
		# shellcheck disable=SC2046 # files of ours have no spaces
		set -- $(cd "$top" && git diff --name-only --diff-filter=d HEAD;
			git ls-files -o --exclude-standard)
		[ "$#" -gt 0 ] || die "no file differs from the last commit"
	fi
	inside ci/lint/run.sh "$@"
}

# Rows of both tables that name the file, its folder or its room.
which_tests()
{
	for file; do
		file=${file#"$top/"}
		room=${file#FSAL_CEPH_ASYNC/}
		grep -hF "\`$room\`" "$top/FSAL_CEPH_ASYNC/README.md" || :
		grep -hF -e "$(basename "$file")" -e "\`$(dirname "$file")/\`" \
			-e "\`$(dirname "$room")/\`" "$top/CONTRIBUTING.md" || :
	done
}

what=${1-}
[ "$#" = 0 ] || shift
case $what in
unit | test | case | lint | run | shell) ensure_dev ;;
esac
case $what in
unit) unit "$@" ;;
test) tests "$@" ;;
case) tests "test_cases.py::test_case[${1:?names a case}]" ;;
lint) lint "$@" ;;
which) which_tests "$@" ;;
run) inside "$@" ;;
shell) "$ENGINE" exec -it -w /src/fsal-ceph-async "$dev" bash ;;
end)
	ensure_engine
	end_lab "$dev"
	"$ENGINE" volume rm -f "$dev" > /dev/null
	;;
'' | -h | --help) sed -n '4,/^set -eu/s/^# \{0,1\}//p' "$0" ;;
*) die "'$what': unit, test, case, lint, which, run, shell or end" ;;
esac
