# shellcheck shell=sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# Shared by the scripts in ci/: messages, a container engine, lab containers.
# Sourced with $top set to the checkout.
: "${top:?}"

# shellcheck source=ci/versions.env
. "$top/ci/versions.env"

began=$(date +%s)

say()
{
	echo "[$(($(date +%s) - began)) s] $*"
}

die()
{
	echo "$(basename "$0"): $*" >&2
	exit 1
}

# The version of this checkout.  CMakeLists.txt is the only place that has it.
project_version()
{
	sed -n '/^project(/{s/.* VERSION \([0-9.]*\) .*/\1/p;q;}' \
		"$top/CMakeLists.txt" | grep . ||
		die "no project(... VERSION ...) in CMakeLists.txt"
}

# GANESHA names the lab's Ganesha.  versions.env has the default; another one
# has its values in ci/ganesha/, and an image of its own.
GANESHA=${GANESHA:-$GANESHA_VERSION}
if [ "$GANESHA" = "$GANESHA_VERSION" ]; then
	IMAGE=${IMAGE:-fsal-ceph-async/lab}
elif [ -e "$top/ci/ganesha/$GANESHA.env" ]; then
	# shellcheck source=ci/ganesha/5.9.env
	. "$top/ci/ganesha/$GANESHA.env"
	IMAGE=${IMAGE:-fsal-ceph-async/lab:ganesha$GANESHA}
else
	die "GANESHA=$GANESHA: allowed are $GANESHA_VERSION (the default)$(
		cd "$top/ci/ganesha" && printf ', %s' ./*.env |
		sed 's,\./,,g; s/\.env//g')"
fi

# Sets $ENGINE to docker or podman; on Debian as root, installs one.
ensure_engine()
{
	if docker info > /dev/null 2>&1; then
		ENGINE=docker
	elif podman info > /dev/null 2>&1; then
		ENGINE=podman
	else
		start_docker
		ENGINE=docker
	fi
}

start_docker()
{
	[ "$(id -u)" = 0 ] || die "neither 'docker info' nor 'podman info'" \
		"answers, and only root can change that: install docker or" \
		"podman, or run this as root on Debian"
	if ! command -v dockerd > /dev/null; then
		command -v apt-get > /dev/null || die "no container engine," \
			"and no apt-get to install one: install docker or podman"
		say "no container engine: installing docker.io and mmdebstrap"
		log=$(mktemp /tmp/casync-apt.XXXXXX)
		watched "$log" '^(Setting up docker|E: )' sh -c 'apt-get update -q &&
			DEBIAN_FRONTEND=noninteractive \
			apt-get install -q -y docker.io mmdebstrap' || {
			tail -n 20 "$log" >&2
			die "apt-get failed, its whole output is in $log"
		}
		rm -f "$log"
		# With systemd the package has started its service.
		for _ in 1 2 3 4 5; do
			[ -d /run/systemd/system ] || break
			docker info > /dev/null 2>&1 && return 0
			sleep 1
		done
	fi
	# A machine that lost its power leaves these files, and their numbers may
	# be those of other processes now: dockerd would not start.
	for file in /var/run/docker.pid \
			/var/run/docker/containerd/containerd.pid; do
		program=$(cat "/proc/$(cat "$file" 2> /dev/null)/comm" \
			2> /dev/null) || program=
		case $program in
		dockerd | containerd) ;;
		*) rm -f "$file" ;;
		esac
	done
	say "starting dockerd in the background, output in /var/log/dockerd.log"
	nohup setsid dockerd > /var/log/dockerd.log 2>&1 < /dev/null &
	daemon=$!
	for _ in $(seq 60); do
		docker info > /dev/null 2>&1 && return 0
		kill -0 "$daemon" 2> /dev/null || break
		sleep 1
	done
	tail -n 15 /var/log/dockerd.log >&2
	die "dockerd ended or does not answer, see /var/log/dockerd.log"
}

# Runs "$@" with its output in LOG ($1), showing the lines that match PATTERN
# ($2) and, where those are rare, a sign of life with the latest line.
watched()
{
	log=$1 pattern=$2
	shift 2
	: > "$log"
	"$@" > "$log" 2>&1 &
	job=$!
	seen=0 quiet=0
	while kill -0 "$job" 2> /dev/null; do
		sleep 1
		watched_news
		quiet=$((quiet + 1))
		if [ "$quiet" -ge 10 ]; then
			say "  ... $(tail -n 1 "$log" | tr -d '\r' | cut -c 1-70)"
			quiet=0
		fi
	done
	watched_news
	wait "$job"
}

watched_news()
{
	lines=$(wc -l < "$log")
	[ "$lines" -gt "$seen" ] || return 0
	sed -n "$((seen + 1)),${lines}p" "$log" | grep -E "$pattern" |
		cut -c 1-100 > "$log.news" || :
	seen=$lines
	[ -s "$log.news" ] || { rm -f "$log.news"; return 0; }
	quiet=0
	while read -r line; do
		say "  $line"
	done < "$log.news"
	rm -f "$log.news"
}

# What a lab container needs of the host; to be said before an image is built.
ensure_devices()
{
	for device in /dev/fuse /dev/net/tun; do
		[ -e "$device" ] || die "$device is missing on this host:" \
			"modprobe -a fuse tun. In a container: start it with" \
			"--device $device"
	done
}

# Starts a lab container named $1; $2… are more options of the engine.
# CPU_SHARES below 1024: it gets the CPU time that other containers leave.
start_lab()
{
	name=$1
	shift
	[ -z "${CPU_SHARES-}" ] || set -- --cpu-shares "$CPU_SHARES" "$@"
	set -- "$@" --cap-add SYS_ADMIN --cap-add NET_ADMIN \
		--cap-add SYS_PTRACE --cap-add DAC_READ_SEARCH \
		--device /dev/fuse --device /dev/net/tun \
		--security-opt seccomp=unconfined \
		--tmpfs /dev/shm:exec,size=8g
	if [ "$ENGINE" = podman ]; then
		set -- "$@" --ulimit nofile=20000:20000 \
			--ulimit nproc=30000:30000
		if command -v runc > /dev/null; then
			set -- --runtime runc "$@"
		fi
	fi
	ensure_devices
	"$ENGINE" run -d --init --name "$name" "$@" "${LAB_IMAGE:-$IMAGE}" sleep infinity \
		> /dev/null || die "the container $name does not start"
}

# The same where something is compiled: a volume keeps what gcc has made.
start_compiling_lab()
{
	start_lab "$@" -v casync-ccache:/ccache -e CCACHE_DIR=/ccache \
		-e CCACHE_MAXSIZE=2G -e CMAKE_C_COMPILER_LAUNCHER=ccache
}

# Copies the logs of the daemons in container $1 to folder $2.
keep_logs()
{
	"$ENGINE" exec "$1" lab logs --collect /tmp/logs > /dev/null 2>&1 ||
		return 0
	"$ENGINE" cp "$1:/tmp/logs/." "$2" > /dev/null 2>&1 || :
}

end_lab()
{
	"$ENGINE" rm -f "$1" > /dev/null 2>&1 || :
}
