#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# All tests, on real daemons, in the lab container:
#
#   ci/test.sh                             everything, an hour on 2 cores
#   ci/test.sh quick                       unit tests, lint, and ten cases over
#                                          NFSv3 and 4.2: 3 minutes
#   ci/test.sh unit [CTEST ARGS]           ctest alone
#   ci/test.sh lint                        as ci/lint.sh
#   ci/test.sh coverage                    unit tests with counters of lines;
#                                          ci/coverage.sh has all
#   ci/test.sh integration [PYTEST ARGS]   pytest alone
#   ci/test.sh packages                    ci/package.sh short
#   ci/test.sh builds                      lint, unit tests, unit tests under
#                                          sanitizers, coverage, packages
#   ci/test.sh other                       the short form with Ganesha 5.9:
#                                          unit tests, 42 cases over NFSv3, 4.1
#                                          and 4.2, ceph nfs, kill -9, evictions;
#                                          its DEB and the quick start; skipped
#                                          where its source cannot be had
#   ci/test.sh cases                       the cases of tests/integration/client,
#                                          and keys and settings one by one
#
# The integration tests mostly wait.  So "everything" runs the rest beside
# them, in containers of their own with little CPU weight.  Tests marked
# "measures" compare latencies or rates: they run at the end, alone.  Two
# containers for either kind were tried: not faster where both cores are full,
# and tests missed their bounds.
#
# Exit status 0 only when everything that ran passed.  Logs of the runners
# and of all daemons are kept in build/test-logs/<time>.  ci/sanitize.sh runs
# ganesha.nfsd under the sanitizers too.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=ci/lib/lib.sh
. "$top/ci/lib/lib.sh"

# Seconds.  At most: 3600 for integration and what is beside it, 1500 for what
# measures.  With the images that is less than the 90 minutes that CI has.
UNIT_LIMIT=${UNIT_LIMIT:-600}
INTEGRATION_LIMIT=${INTEGRATION_LIMIT:-3300}
BESIDE_LIMIT=$((INTEGRATION_LIMIT + 300))

# What runs beside the other integration tests: none of them is a test of times.
CASES="tests/integration/test_cases.py tests/integration/test_every_key.py
	tests/integration/test_settings.py tests/integration/test_compat_keys.py
	tests/integration/test_signed_handles.py tests/integration/test_security.py
	tests/integration/test_kerberos.py
	tests/integration/test_check.py tests/integration/test_check_parts.py
	tests/integration/test_alerts.py tests/integration/test_field_bugs.py
	tests/integration/test_troubleshooting.py
	tests/integration/test_size_after_crash.py tests/integration/test_ingress.py
	tests/integration/test_stable_names.py tests/integration/test_lost_flush.py
	tests/integration/test_samples.py
	tests/integration/test_bad_input.py tests/integration/test_set_id.py
	tests/integration/test_first_write.py tests/integration/test_fuzz_wire.py
	tests/integration/test_dotdot.py tests/integration/test_late_reclaims.py
	tests/integration/test_nfsacl.py tests/integration/test_handles.py
	tests/integration/test_options.py tests/integration/test_opens.py
	tests/integration/test_setattr.py tests/integration/test_listing.py
	tests/integration/test_large_directory.py
	tests/integration/test_inline_data.py
	tests/integration/test_sparse_model.py
	tests/integration/test_handle_keys_in_rados.py
	tests/tools/test_abi.py tests/tools/test_quoted_figures.py"

# Of test_cases.py, over each of the two versions.
QUICK_CASES="create_write_read random_data_direct append truncate_down_and_up
	unlink_open_file rename_file hard_link symlink
	make_and_remove_directories chmod"

# The other Ganesha, and more cases for it.
OTHER=5.9
OTHER_CASES="access_of_another_user truncate_open_file
	file_mode_for_supplementary_group listing_cookies_are_stable"

logs=${LOGS:-$top/build/test-logs/$(date +%Y%m%d-%H%M%S)}
lab=casync-test-$$
# shellcheck source=ci/lib/runner.sh
. "$top/ci/lib/runner.sh"
# shellcheck source=ci/coverage/floors.env
. "$top/ci/coverage/floors.env"

unit()
{
	say "building the unit tests"
	limited build-unit "$UNIT_LIMIT" cmake --build /build/plugin > /dev/null
	[ "$status" = 0 ] || {
		tail -n 25 "$logs/build-unit.log"
		closing="$closing
unit: they cannot be built (status $status)"
		return 0
	}
	say "unit tests"
	unit_of unit /build/plugin "$@"
}

lint()
{
	say "lint"
	limited lint "$UNIT_LIMIT" ci/lint/run.sh
	closing="$closing
lint: $(tail -n 1 "$logs/lint.log") (status $status)"
}

coverage()
{
	say "coverage by the unit tests"
	limited coverage "$UNIT_LIMIT" \
		ci/coverage/run.sh unit "$UNIT_LINES" "$UNIT_BRANCHES"
	closing="$closing
coverage by the unit tests: $(grep '^all ' "$logs/coverage.log" |
		sed 's/  */ /g; s/^all //') (status $status)"
}

integration()
{
	say "integration tests"
	# What other FSALs do was recorded, and changes with them only.
	[ "$#" -gt 0 ] || set -- -m "not evidence" \
		tests/integration tests/tools
	pytest_as integration "$@"
}

packages()
{
	say "packages"
	{
		IMAGE_READY=1 "$top/ci/package.sh" short 2>&1 &&
			echo 0 > "$logs/.status" || echo $? > "$logs/.status"
	} | tee "$logs/packages.log"
	read_status
	closing="$closing
packages: $(grep -E '^=+ .* in ' "$logs/packages.log" | tail -n 1) (status $status)"
}

builds()
{
	lint
	unit
	# shellcheck disable=SC2119 # it takes ctest's arguments, here none
	unit_sanitized
	coverage
	packages
}

cases()
{
	say "the cases of tests/integration/client, keys and settings"
	# shellcheck disable=SC2086 # they are several words
	pytest_as cases -m "not evidence" $CASES tests/integration/test_logs.py
}

quick()
{
	begin_beside "$BESIDE_LIMIT" lint
	# Ten million requests: a minute of both CPUs.
	unit -E test_memory
	set --
	for version in 3 4.2; do
		for case in $QUICK_CASES; do
			set -- "$@" "tests/integration/test_cases.py::test_case[v$version-$case]"
		done
	done
	integration "$@" tests/integration/test_logs.py
	end_beside
}

# In an image of its own; its last lines are ours.
short_of_other()
{
	unit -E test_memory
	set --
	for version in 3 4.1 4.2; do
		for case in $QUICK_CASES $OTHER_CASES; do
			set -- "$@" "tests/integration/test_cases.py::test_case[v$version-$case]"
		done
	done
	integration "$@" tests/integration/test_ceph_nfs.py \
		tests/integration/test_restart.py::test_kill_9 \
		tests/integration/test_reconnect.py::test_a_kernel_client_sees_no_error
}

# What names an image or a source of its own is for the default Ganesha.
as_other()
{
	env -u IMAGE -u GANESHA_FROM "GANESHA=$OTHER" "$@"
}

other()
{
	say "the short form with Ganesha $OTHER"
	log=$logs/image-other.log
	if ! as_other "$top/ci/image.sh" > "$log" 2>&1; then
		if grep -q 'GANESHA_TARBALL=FILE gives one' "$log"; then
			closing="$closing
Ganesha $OTHER: skipped, no source (GANESHA_TARBALL=FILE gives one)"
			return 0
		fi
		tail -n 20 "$log"
		failed=1
		closing="$closing
Ganesha $OTHER: its image cannot be built, see $log"
		return 0
	fi
	log=$logs/other.log
	{
		as_other IMAGE_READY=1 "LOGS=$logs/other" CPU_SHARES=1024 \
			INTEGRATION_LIMIT=900 "$top/ci/test.sh" \
			short_of_other 2>&1 && echo 0 > "$logs/.status" ||
			echo $? > "$logs/.status"
	} | tee "$log"
	read_status
	closing="$closing
$(grep '^unit: ' "$log" | tail -n 1 | sed "s/^/Ganesha $OTHER: /")
$(grep '^integration: ' "$log" | tail -n 1 | sed "s/^/Ganesha $OTHER: /")"
	say "its package"
	packages_log=$logs/packages-other.log
	{
		as_other IMAGE_READY=1 "$top/ci/package.sh" deb 2>&1 &&
			echo 0 > "$logs/.status" || echo $? > "$logs/.status"
	} | tee "$packages_log"
	read_status
	closing="$closing
Ganesha $OTHER: packages: $(grep -E '^=+ .* in ' "$packages_log" |
		tail -n 1) (status $status)"
}

# One after the other: both need all the CPU that they get.
builds_and_other()
{
	builds
	other
}

everything()
{
	begin_beside "$BESIDE_LIMIT" builds_and_other
	begin_beside "$BESIDE_LIMIT" cases
	set -- -m "not evidence and not measures"
	for file in $CASES; do
		set -- "$@" --ignore "$file"
	done
	integration "$@" tests/integration tests/tools
	end_beside
	say "tests that measure"
	INTEGRATION_LIMIT=$((INTEGRATION_LIMIT * 5 / 11))
	pytest_as measures -m "(measures or closing) and not evidence" \
		tests/integration tests/tools
}

part=everything
if [ "$#" -gt 0 ]; then
	part=$1
	shift
fi
case $part in
everything | quick | unit | lint | coverage | integration | packages | builds | cases | other) ;;
short_of_other | builds_and_other) ;; # of "other", of "everything"
*) die "'$part': quick, unit, lint, coverage, integration, packages, builds," \
	"cases, other or nothing" ;;
esac

begin
"$part" "$@"
