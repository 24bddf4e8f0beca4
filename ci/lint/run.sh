#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# Static checks of the tree, where their tools are: in the lab (ci/lint.sh),
# or on any machine that has them (.githooks/pre-commit).
#
#   ci/lint/run.sh [-b BUILD] [-s] [-t FILES] [-c CHECK,...] [FILE...]
#
#   -b BUILD   build folder of the plugin (/build/plugin): clang-tidy, cppcheck
#              and the headers take their compiler flags from it
#   -s         skip a check whose tool or build folder is missing, and say so
#   -t FILES   clang-tidy, which takes most of the time, looks at these alone
#   -c CHECK   only these checks
#   FILE       only these files; what looks at the whole tree is left out
#
# Every check runs, also after one has failed.  Exit status 0 when all passed.
set -eu

cd "$(dirname "$0")/../.."
top=$(pwd)
lint=$top/ci/lint

# Most files that may use each other in a ring: none may (ci/lint/call_graph.py).
RING=${RING:-1}
# Most pairs of files of which one uses the other.  A commit that raises it says
# in its body what it makes unnecessary, as for the limits of house.py.
EDGES=${EDGES:-406}

build=/build/plugin
skip=no
tidy=
checks="clang_format shellcheck ruff collect codespell man_pages reasons tables
	links names symbols comments ages log_text figures rings trips house map headers
	cppcheck clang_tidy"
while getopts b:st:c: option; do
	case $option in
	b) build=$OPTARG ;;
	s) skip=yes ;;
	t) tidy=" $OPTARG " ;;
	c) checks=$(echo "$OPTARG" | tr ',-' ' _') ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))

jobs=$(nproc)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM

# --- files

if [ "$#" -gt 0 ]; then
	whole=no
	printf '%s\n' "$@"
elif [ -e .git ] && git ls-files > "$tmp/tracked" 2> /dev/null; then
	whole=yes
	cat "$tmp/tracked"
else
	whole=yes
	find . \( -name .git -o -name __pycache__ -o -name .pytest_cache \
		-o -path ./build -o -path './build-*' \) -prune \
		-o -type f -print | sed 's|^\./||'
fi > "$tmp/named"
# Corpora are binary, and results are what programs wrote.
grep -vE '^(tests/fuzz/corpus|results)/' "$tmp/named" |
	while read -r file; do
		[ ! -f "$file" ] || echo "$file"
	done > "$tmp/files"

# Files whose name ends in .$1, or whose first line names the program $2.
files_of()
{
	grep -E "\.($1)\$" "$tmp/files" || :
	[ -n "${2:-}" ] || return 0
	grep -vE '/?[^/]*\.[^/]*$' "$tmp/files" | while read -r file; do
		head -n 1 "$file" | grep -qaE "^#!.*[/ ]($2)" && echo "$file"
	done || :
}

# Runs "$@" with the files of list $1 in the end; counts them.
over()
{
	list=$1
	shift
	files=$(wc -l < "$list")
	echo "$files files" > "$tmp/count"
	[ "$files" = 0 ] || xargs -d '\n' "$@" < "$list"
}

# --- checks: output is findings, the status says whether there are any

check_clang_format()
{
	files_of '[ch]' > "$tmp/list"
	over "$tmp/list" clang-format --dry-run -Werror
}

# A compilation database of the files of list $1 in the new folder $2.
database()
{
	mkdir "$2"
	"$lint/compile_db.py" "$build" "$2" < "$1" > "$tmp/count"
	[ "$whole" = no ] || [ "$(cat "$tmp/count")" != "0 files" ] || {
		echo "$build is the build folder of another tree"
		return 1
	}
}

check_clang_tidy()
{
	files_of c | while read -r file; do
		case $tidy in
		"" | *" $file "*) echo "$file" ;;
		esac
	done > "$tmp/list"
	[ -s "$tmp/list" ] || { echo "0 files" > "$tmp/count"; return 0; }
	database "$tmp/list" "$tmp/tidy" || return
	[ "$(cat "$tmp/count")" != "0 files" ] || return 0
	"$lint/tidy.py" "$tmp/tidy" "$jobs"
}

check_cppcheck()
{
	files_of c | grep '^FSAL_CEPH_ASYNC/' > "$tmp/list" || :
	database "$tmp/list" "$tmp/cppcheck" || return
	[ "$(cat "$tmp/count")" != "0 files" ] || return 0
	cppcheck --project="$tmp/cppcheck/compile_commands.json" \
		-j "$jobs" --quiet --error-exitcode=1 --inline-suppr \
		--enable=warning,style,performance,portability \
		--suppressions-list="$lint/cppcheck.suppress" \
		--library="$lint/cppcheck.cfg" \
		--template='{file}:{line}: {severity}: {message} [{id}]'
}

check_headers()
{
	files_of h > "$tmp/list"
	over "$tmp/list" "$lint/headers.py" "$build"
}

check_shellcheck()
{
	files_of sh 'sh|bash|dash' > "$tmp/list"
	over "$tmp/list" shellcheck -x
}

check_ruff()
{
	files_of py python3 > "$tmp/list"
	over "$tmp/list" ruff check --no-cache --quiet --output-format concise
}

check_codespell()
{
	grep -vE '\.(svg|json)$' "$tmp/files" > "$tmp/list" || :
	over "$tmp/list" codespell
}

check_man_pages()
{
	files_of '[1-9]' > "$tmp/list"
	over "$tmp/list" mandoc -T lint -W warning
}

check_reasons()
{
	over "$tmp/files" "$lint/reasons.py"
}

check_tables()
{
	files_of md > "$tmp/list"
	over "$tmp/list" "$lint/tables.py"
}

# A test that cannot be imported fails here, not when its turn comes.
check_collect()
{
	grep -q '^tests/.*\.py$' "$tmp/files" || {
		echo "0 files" > "$tmp/count"
		return 0
	}
	python3 -B -m pytest -p no:cacheprovider --collect-only -q \
		tests/integration tests/tools > "$tmp/collected" 2>&1 || {
		grep -E '^(E |ERROR)' "$tmp/collected"
		return 1
	}
	tail -n 1 "$tmp/collected" | sed 's/ in .*//' > "$tmp/count"
}

check_links()
{
	over "$tmp/files" "$lint/links.py"
}

check_names()
{
	files_of 'md|c|h' > "$tmp/list"
	over "$tmp/list" "$lint/names.py"
}

# Figures of documents against results/*/raw.json, which a source tarball lacks.
check_figures()
{
	[ -d results ] || { echo "no results/" > "$tmp/count"; return 0; }
	python3 tests/bench/quote.py --check
}

# The figures of these three are a report; the first fails on a ring.
check_rings()
{
	"$lint/call_graph.py" "$build" --most "$RING" \
		--most-edges "$EDGES" > "$tmp/count" || {
		cat "$tmp/count"
		return 1
	}
}

check_trips()
{
	"$lint/trip.py" "$build" > "$tmp/trips" || {
		cat "$tmp/trips"
		return 1
	}
	paste -sd ';' "$tmp/trips" | sed 's/;/, /g' > "$tmp/count"
}

check_house()
{
	"$lint/house.py" > "$tmp/house" || {
		cat "$tmp/house"
		return 1
	}
	grep -E '^(\.|lines|files over)' "$tmp/house" | paste -sd ';' |
		sed 's/;/, /g' > "$tmp/count"
}

check_symbols()
{
	"$lint/symbols.py"
}

check_log_text()
{
	"$lint/log_text.py"
}

check_comments()
{
	files_of '[ch]' | grep '^FSAL_CEPH_ASYNC/' > "$tmp/list" || :
	over "$tmp/list" "$lint/comments.py"
}

# A difference of times may wrap; casync_clock_age_ns() does not.
check_ages()
{
	files_of '[ch]' | grep '^FSAL_CEPH_ASYNC/' > "$tmp/list" || :
	over "$tmp/list" grep -nHE 'casync_clock_ns\(\) *-' || return 0
	[ ! -s "$tmp/list" ]
}

check_map()
{
	"$lint/map.py" "$build"
}

# --- all of them

# What run-clang-tidy prints besides findings.
noise='^\[ *[0-9]+/|^[0-9]+ warnings? generated|^Running clang-tidy|^$'

began=$(date +%s)
failed=""
skipped=""

# What check $1 needs: programs, a build folder (BUILD), all files (TREE).
needs_of()
{
	case $1 in
	clang_format) echo clang-format ;;
	clang_tidy) echo clang-tidy run-clang-tidy python3 BUILD ;;
	cppcheck) echo cppcheck python3 BUILD ;;
	headers) echo cc python3 BUILD ;;
	shellcheck | ruff | codespell) echo "$1" ;;
	man_pages) echo mandoc ;;
	reasons | tables | links | names | comments) echo python3 ;;
	ages) echo grep ;;
	collect) echo python3 pytest-3 ;;
	figures | house | log_text | symbols) echo TREE python3 ;;
	trips) echo TREE python3 python3-clang BUILD ;;
	rings | map) echo TREE nm python3 BUILD ;;
	*) echo "ci/lint/run.sh: no check named '$1'" >&2; exit 2 ;;
	esac
}

# Prints what check $1 lacks.
lacks()
{
	for need in $(needs_of "$1"); do
		case $need in
		BUILD)
			[ -e "$build/compile_commands.json" ] ||
				echo "a build folder ($build)" ;;
		TREE)
			[ "$whole" = yes ] || echo "the whole tree" ;;
		python3-clang)
			python3 -c 'import clang.cindex' 2> /dev/null ||
				echo "$need" ;;
		*)
			command -v "$need" > /dev/null || echo "$need" ;;
		esac
	done | paste -sd, | sed 's/,/, /g'
}

# Shows the last line of the output while check $1 (process $2) runs.
wait_for()
{
	ticks=0
	while kill -0 "$2" 2> /dev/null; do
		sleep 0.2
		ticks=$((ticks + 1))
		[ $((ticks % 50)) = 0 ] || continue
		echo "[$(($(date +%s) - began)) s]   ... $1: $(
			grep -v '^ *$' "$tmp/out" | tail -n 1 | cut -c 1-60)"
	done
	wait "$2"
}

run_check()
{
	name=$(echo "$1" | tr _ -)
	lacking=$(lacks "$1")
	if [ "${lacking#the whole tree}" != "$lacking" ]; then
		return 0
	elif [ -n "$lacking" ] && [ "$skip" = yes ]; then
		skipped="$skipped $name"
		echo "$name: skipped, needs $lacking"
		return 0
	elif [ -n "$lacking" ]; then
		failed="$failed $name"
		echo "$name: failed, needs $lacking"
		return 0
	fi
	: > "$tmp/count"
	start=$(date +%s)
	"check_$1" > "$tmp/out" 2>&1 &
	if wait_for "$name" $!; then
		result=ok
	else
		result=failed
		failed="$failed $name"
	fi
	now=$(date +%s)
	echo "[$((now - began)) s] $name: $result ($((now - start)) s" \
		"$(sed 's/^/, /' "$tmp/count"))" | sed 's/ , /, /; s/ )/)/'
	[ "$result" = ok ] || grep -vE "$noise" "$tmp/out" | sed 's/^/    /'
}

for check in $checks; do
	needs_of "$check" > /dev/null
	run_check "$check"
done

echo
[ -z "$skipped" ] || echo "lint: skipped:$skipped"
if [ -n "$failed" ]; then
	echo "lint: failed:$failed"
	exit 1
fi
echo "lint: ok"
