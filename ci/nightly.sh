#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# What is too long for each change (ci/job.sh nightly):
#
#   ci/nightly.sh [STEP…]   all steps, or those named
#   ci/nightly.sh --list    the steps, with what each runs
#
# Two steps run side by side (LANES=N: so many), as most of them wait.  Those
# that compare times come last, one after the other.  It goes on after a
# failure, and ends with a table: step, result, seconds, the last line.  SEED=N
# (default: the date) makes its random faults another night's.  Exit status 0
# only when all passed.  Output: build/nightly-logs/<time>/STEP; each command
# keeps its own logs too, as it says there.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=ci/lib/lib.sh
. "$top/ci/lib/lib.sh"

SEED=${SEED:-$(date +%Y%m%d)}
LANES=${LANES:-2}
export SEED

# A step, "beside" others or "alone", its limit in minutes, its command.  The
# longest come first.
steps()
{
	cat << END
coverage beside 180 ci/coverage.sh
ganesha-5.9 beside 120 env GANESHA=5.9 INTEGRATION_LIMIT=6600 ci/test.sh integration -m 'not evidence and not measures' tests/integration
mutate beside 120 ci/job.sh mutate 40 --seed $SEED
tests beside 90 ci/test.sh integration -m 'nightly and not evidence and not measures' tests/integration tests/tools
crash beside 60 ci/job.sh crash 10 5
sanitize beside 90 ci/sanitize.sh
names beside 45 ci/job.sh names 3
reconnect beside 60 ci/job.sh reconnect 5
fuzz-wire beside 40 ci/job.sh fuzz-wire --minutes 5 --seed $SEED
chaos beside 30 ci/job.sh chaos 10 --seed $SEED
fuzz beside 30 ci/fuzz.sh 2
delays beside 40 ci/job.sh delays 3 --first $SEED
packages beside 40 ci/package.sh
coherence beside 20 ci/job.sh coherence 5 --seed $SEED
model beside 20 ci/job.sh model 5 5 $SEED
failover beside 20 ci/job.sh failover 1
failover-ingress beside 20 ci/job.sh failover 1 --ingress
failover-ipv6 beside 20 ci/job.sh failover 1 --ipv6 --patience 2
thief beside 20 ci/job.sh failover 1 --ingress --thief
reload beside 20 ci/job.sh reload 50
unexport beside 25 ci/job.sh unexport 10
soak beside 20 ci/job.sh soak 5
ganesha-5.9-packages beside 40 ci/test.sh other
control alone 30 ci/job.sh control
evidence alone 40 ci/test.sh integration -m evidence tests/integration tests/tools
measures alone 40 ci/test.sh integration -m 'measures and not evidence' tests/integration tests/tools
END
}

# Run step $1 for at most $3 minutes: the rest is the command.  A line of the
# table.
# shellcheck disable=SC2317,SC2329 # called by eval
step()
{
	name=$1 minutes=$3 result=ok
	shift 3
	say "$name: $*"
	began_step=$(date +%s)
	(cd "$top" && timeout -k 120 "$((minutes * 60))" "$@") \
		> "$logs/$name" 2>&1 < /dev/null || result="failed ($?)"
	# Of the runner's own last words, the figures.
	words=$(grep -vE '^ *$|logs: ' "$logs/$name" | tail -n 1 |
		sed 's/=\{3,\}//g' | cut -c 1-90)
	printf '%-21s %-13s %5d s  %s\n' "$name" "$result" \
		"$(($(date +%s) - began_step))" "$words" | tee -a "$logs/table"
	[ "$result" = ok ]
}

# A lane: this script, for one step.
if [ "${1-}" = --step ]; then
	logs=$NIGHTLY_LOGS
	eval "step $(grep "^$2 " "$logs/steps")"
	exit
fi
if [ "${1-}" = --list ]; then
	steps
	exit
fi
for name; do
	steps | grep -q "^$name " || die "'$name' is no step: see --list"
done
wanted=" $* "

NIGHTLY_LOGS=$top/build/nightly-logs/$(date +%Y%m%d-%H%M%S)
export NIGHTLY_LOGS
mkdir -p "$NIGHTLY_LOGS"
steps > "$NIGHTLY_LOGS/steps"
: > "$NIGHTLY_LOGS/table"

# The wanted steps of this kind.
wanted_steps()
{
	while read -r name kind _; do
		case $wanted in
		"  " | *" $name "*) [ "$kind" != "$1" ] || echo "$name" ;;
		esac
	done < "$NIGHTLY_LOGS/steps"
}

failed=0
"$top/ci/image.sh"
wanted_steps beside | xargs -r -P "$LANES" -n 1 "$0" --step || failed=1
wanted_steps alone | xargs -r -n 1 "$0" --step || failed=1

echo
say "seed $SEED, logs: $NIGHTLY_LOGS"
cat "$NIGHTLY_LOGS/table"
passed=$(awk '$2 == "ok"' "$NIGHTLY_LOGS/table" | wc -l)
echo "nightly: $passed passed," \
	"$(($(wc -l < "$NIGHTLY_LOGS/table") - passed)) failed"
exit "$failed"
