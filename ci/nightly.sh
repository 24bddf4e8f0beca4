#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# What is too long for each change, one after the other (ci/job.sh nightly):
#
#   ci/nightly.sh [STEP…]   all steps, or those named
#   ci/nightly.sh --list    the steps, with what each runs
#
# It goes on after a failure, and ends with a table: step, result, seconds, the
# last line.  SEED=N (default: the date) makes its random faults another night's.
# Exit status 0 only when all passed.  Output: build/nightly-logs/<time>/STEP;
# each command keeps its own logs too, as it says there.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=ci/lib/lib.sh
. "$top/ci/lib/lib.sh"

SEED=${SEED:-$(date +%Y%m%d)}

# A step, its limit in minutes, its command.  One that finds the most in a minute
# comes first.
steps()
{
	cat << END
tests 60 ci/test.sh integration -m 'nightly and not evidence and not measures' tests/integration tests/tools
sanitize 60 ci/sanitize.sh
fuzz-wire 25 ci/job.sh fuzz-wire --minutes 5 --seed $SEED
chaos 20 ci/job.sh chaos 10 --seed $SEED
coherence 12 ci/job.sh coherence 5 --seed $SEED
model 12 ci/job.sh model 5 5 $SEED
crash 40 ci/job.sh crash 10 5
names 30 ci/job.sh names 3
reconnect 30 ci/job.sh reconnect 5
failover 12 ci/job.sh failover 1
failover-ingress 12 ci/job.sh failover 1 --ingress
reload 15 ci/job.sh reload 50
unexport 20 ci/job.sh unexport 10
soak 12 ci/job.sh soak 5
fuzz 20 ci/fuzz.sh 2
measures 40 ci/test.sh integration -m 'measures and not evidence' tests/integration tests/tools
evidence 40 ci/test.sh integration -m evidence tests/integration tests/tools
control 30 ci/job.sh control
packages 30 ci/package.sh
mutate 60 ci/job.sh mutate 40 --seed $SEED
coverage 90 ci/coverage.sh
ganesha-5.9 60 env GANESHA=5.9 ci/test.sh integration -m 'not evidence and not measures' tests/integration
ganesha-5.9-packages 30 ci/test.sh other
END
}

# Runs step $1 for at most $2 minutes: the rest is the command.
# shellcheck disable=SC2317,SC2329 # called by eval
step()
{
	name=$1 minutes=$2
	shift 2
	say "$name: $*"
	began_step=$(date +%s)
	result=ok
	(cd "$top" && timeout -k 120 "$((minutes * 60))" "$@") \
		> "$logs/$name" 2>&1 < /dev/null || result="failed ($?)"
	[ "$result" = ok ] || failed=1
	# Of the runner's own last words, the figures.
	words=$(grep -vE '^ *$|logs: ' "$logs/$name" | tail -n 1 |
		sed 's/=\{3,\}//g' | cut -c 1-90)
	printf '%-21s %-13s %5d s  %s\n' "$name" "$result" \
		"$(($(date +%s) - began_step))" "$words" | tee -a "$logs/table"
}

if [ "${1-}" = --list ]; then
	steps
	exit
fi
for name; do
	steps | grep -q "^$name " || die "'$name' is no step: see --list"
done
wanted=" $* "

logs=$top/build/nightly-logs/$(date +%Y%m%d-%H%M%S)
mkdir -p "$logs"
failed=0
steps > "$logs/steps"
: > "$logs/table"
while read -r name minutes command; do
	case $wanted in
	"  " | *" $name "*) eval "step $name $minutes $command" ;;
	esac
done < "$logs/steps"

echo
say "seed $SEED, logs: $logs"
cat "$logs/table"
passed=$(awk '$2 == "ok"' "$logs/table" | wc -l)
echo "nightly: $passed passed, $(($(wc -l < "$logs/table") - passed)) failed"
exit "$failed"
