#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# All tests, on real daemons, in lab containers:
#
#   ci/test.sh                             everything that a change can break
#   ci/test.sh quick                       unit tests, lint, and ten cases over
#                                          NFSv3 and 4.2
#   ci/test.sh unit [CTEST ARGS]           ctest alone
#   ci/test.sh lint                        as ci/lint.sh
#   ci/test.sh coverage                    unit tests with counters of lines;
#                                          ci/coverage.sh has all
#   ci/test.sh integration [PYTEST ARGS]   pytest alone
#   ci/test.sh packages                    ci/package.sh short
#   ci/test.sh other                       the short form with Ganesha 5.9:
#                                          unit tests, 42 cases over NFSv3, 4.1
#                                          and 4.2, ceph nfs, kill -9, evictions;
#                                          its DEB and the quick start; skipped
#                                          where its source cannot be had
#
# "everything" and "quick" put their jobs into one queue for several labs
# (ci/lib/queue.sh).  Then tests marked "measures", which compare latencies or
# rates, run alone.  What takes long and is seldom broken runs each night:
# ci/job.sh nightly.  tests/README.md has the times.
#
# Exit status 0 only when everything that ran passed.  Logs of the runners
# and of all daemons are kept in build/test-logs/<time>, a folder for each job.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=ci/lib/lib.sh
. "$top/ci/lib/lib.sh"

# Seconds, of one part.
UNIT_LIMIT=${UNIT_LIMIT:-1200}
INTEGRATION_LIMIT=${INTEGRATION_LIMIT:-3300}

# What the queue leaves out, and what runs alone after it.
MARKS="not evidence and not nightly and not measures"
MEASURES="measures and not evidence and not nightly"

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
# shellcheck source=ci/lib/queue.sh
. "$top/ci/lib/queue.sh"
# shellcheck source=ci/coverage/floors.env
. "$top/ci/coverage/floors.env"

# --- jobs, each in a lab that is there

# shellcheck disable=SC2120 # "ci/test.sh unit" gives it arguments
job_unit()
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

job_address()
{
	unit_sanitized address,undefined "$@"
}

job_thread()
{
	unit_sanitized thread "$@"
}

job_lint()
{
	say "lint"
	limited lint "$UNIT_LIMIT" ci/lint/run.sh "$@"
	closing="$closing
lint: $(tail -n 1 "$logs/lint.log") (status $status)"
}

job_coverage()
{
	say "coverage by the unit tests"
	limited coverage "$UNIT_LIMIT" \
		ci/coverage/run.sh unit "$UNIT_LINES" "$UNIT_BRANCHES"
	closing="$closing
coverage by the unit tests: $(grep '^all ' "$logs/coverage.log" |
		sed 's/  */ /g; s/^all //') (status $status)"
}

job_integration()
{
	say "integration tests"
	# What other FSALs do was recorded, and changes with them only.
	[ "$#" -gt 0 ] || set -- -m "not evidence and not nightly" \
		tests/integration tests/tools
	pytest_as integration "$@"
}

# In containers of its own.
job_packages()
{
	say "packages"
	{
		IMAGE_READY=1 PACKAGE_LIMIT=$UNIT_LIMIT \
			"$top/ci/package.sh" short 2>&1 &&
			echo 0 > "$logs/.status" || echo $? > "$logs/.status"
	} | tee "$logs/packages.log"
	read_status
	closing="$closing
packages: $(grep -E '^=+ .* in ' "$logs/packages.log" | tail -n 1) (status $status)"
}

# The cases of "quick" over one version.
job_cases()
{
	version=$1
	set -- "tests/integration/test_logs.py"
	for case in $QUICK_CASES; do
		set -- "$@" "tests/integration/test_cases.py::test_case[v$version-$case]"
	done
	pytest_as "cases-$version" "$@"
}

# In an image of its own; its last lines are ours.
short_of_other()
{
	# shellcheck disable=SC2119 # it takes ctest's arguments, here none
	job_unit
	set --
	for version in 3 4.1 4.2; do
		for case in $QUICK_CASES $OTHER_CASES; do
			set -- "$@" "tests/integration/test_cases.py::test_case[v$version-$case]"
		done
	done
	job_integration "$@" tests/integration/test_ceph_nfs.py \
		tests/integration/test_restart.py::test_kill_9 \
		tests/integration/test_reconnect.py::test_a_kernel_client_sees_no_error
}

# What names an image or a source of its own is for the default Ganesha.
as_other()
{
	env -u IMAGE -u GANESHA_FROM "GANESHA=$OTHER" "$@"
}

# Fails, or has said that there is no source, if the other's image is not there.
other_image()
{
	log=$logs/image-other.log
	as_other "$top/ci/image.sh" > "$log" 2>&1 && return 0
	if grep -q 'GANESHA_TARBALL=FILE gives one' "$log"; then
		closing="$closing
Ganesha $OTHER: skipped, no source (GANESHA_TARBALL=FILE gives one)"
	else
		tail -n 20 "$log"
		failed=1
		closing="$closing
Ganesha $OTHER: its image cannot be built, see $log"
	fi
	return 1
}

# Part $2 of this script with the other Ganesha; of its closing lines those
# that begin with one of the words $1.
with_other()
{
	words=$1
	log=$logs/other.log
	{
		as_other IMAGE_READY=1 "LOGS=$logs/other" INTEGRATION_LIMIT=900 \
			"$top/ci/test.sh" "$2" 2>&1 &&
			echo 0 > "$logs/.status" || echo $? > "$logs/.status"
	} | tee "$log"
	read_status
	closing="$closing
$(grep -E "^($words): " "$log" | sed "s/^/Ganesha $OTHER: /")"
}

# What a change breaks there: it does not compile.
job_other_unit()
{
	other_image || return 0
	with_other unit unit
}

job_other()
{
	say "the short form with Ganesha $OTHER"
	other_image || return 0
	with_other 'unit|integration' short_of_other
	say "its package"
	log=$logs/packages-other.log
	{
		as_other IMAGE_READY=1 "$top/ci/package.sh" deb 2>&1 &&
			echo 0 > "$logs/.status" || echo $? > "$logs/.status"
	} | tee "$log"
	read_status
	closing="$closing
Ganesha $OTHER: packages: $(grep -E '^=+ .* in ' "$log" |
		tail -n 1) (status $status)"
}

# --- queues

# Each file with tests that $MARKS leaves; the cases are a job for each version.
jobs_of_tests()
{
	"$ENGINE" run --rm -w /src/fsal-ceph-async "$IMAGE" \
		python3 -B -m pytest --collect-only -q -m "$MARKS" \
		tests/integration tests/tools > "$queue/collected" || {
		tail -n 20 "$queue/collected"
		die "pytest cannot read the tests"
	}
	grep -v test_logs.py "$queue/collected" | sed -n "
		s,^\\(.*/test_cases.py\\)::test_case\\[\\(v[0-9.]*\\)-.*,tests/\\1 -k '\\2- or test_logs',p
		t
		s,^\\(.*\\.py\\)::.*,tests/\\1,p"
}

quick()
{
	begin
	new_queue
	changed=$(cd "$top" && git diff --name-only --diff-filter=d \
		"$(git merge-base HEAD '@{upstream}' 2> /dev/null ||
		echo HEAD)" 2> /dev/null | grep '\.[ch]$' | tr '\n' ' ') || :
	echo "lint -t '$changed'" > "$queue/builds"
	echo unit > "$queue/tests"
	printf '%s\n' "cases 3" "cases 4.2" >> "$queue/tests"
	run_queue
	close_queue
}

everything()
{
	begin
	new_queue
	printf '%s\n' lint unit address thread coverage packages other_unit \
		> "$queue/builds"
	# Not in a pipe: its failure ends the run.
	jobs_of_tests > "$queue/found"
	sort -u "$queue/found" > "$queue/tests"
	say "$(wc -l < "$queue/builds") builds and" \
		"$(wc -l < "$queue/tests") files of tests for $LABS labs"
	run_queue
	say "tests that measure"
	echo measures > "$queue/tests"
	LABS=1 run_queue
	close_queue
}

job_measures()
{
	pytest_as measures -m "$MEASURES or closing" \
		tests/integration tests/tools
}

part=everything
if [ "$#" -gt 0 ]; then
	part=$1
	shift
fi
case $part in
everything | quick) "$part" ;;
packages | other)
	begin
	"job_$part" "$@"
	;;
unit | lint | coverage | integration)
	begin_lab
	"job_$part" "$@"
	;;
short_of_other) # of "other"
	begin_lab
	"$part"
	;;
*) die "'$part': quick, unit, lint, coverage, integration, packages," \
	"other or nothing" ;;
esac
