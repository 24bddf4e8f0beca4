# shellcheck shell=sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# Shared by the scripts that do one job in a lab container of its own and
# leave nothing but its logs.  Sourced after lib.sh.
: "${top:?}"

# A container for the job NAME ($1), and build/NAME-logs/<time> for what it
# leaves: the daemons' logs and, of the container's files, those named in $2….
# The container ends with the script.
begin_job()
{
	job_name=$1
	shift
	"$top/ci/image.sh"
	ensure_engine
	lab=casync-$job_name-$$
	logs=$top/build/$job_name-logs/$(date +%Y%m%d-%H%M%S)
	job_files=$*
	mkdir -p "$logs"
	trap end_job EXIT
	trap 'exit 130' INT TERM
	start_lab "$lab"
}

# shellcheck disable=SC2317,SC2329 # called by trap
end_job()
{
	for file in $job_files; do
		"$ENGINE" cp "$lab:$file" "$logs" > /dev/null 2>&1 || :
	done
	keep_logs "$lab" "$logs"
	end_lab "$lab"
	say "logs: $logs"
}

# Runs "$2"… in the job's container for at most $1 s.
do_job()
{
	limit=$1
	shift
	"$ENGINE" exec -w /tmp "$lab" timeout -k 60 "$limit" "$@"
}
