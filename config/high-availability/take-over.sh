#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# This host got the gateway's address: start Ganesha, and fence the other host.
# For keepalived (notify_master):
#
#   take-over.sh POOL NAMESPACE OTHER COMMAND...
#
# POOL and NAMESPACE are those of RADOS_KV in ganesha.conf, OTHER is the other
# host's address towards Ceph, COMMAND starts Ganesha.
#
# A Ganesha that died without a word counts as a watcher of the recovery
# database for 30 s more.  A new one waits 3 s for it, three times, and a
# stopped one could go on and write there.  Blocklisted, it does neither.  So
# OTHER must not have a second gateway of the same NAMESPACE.  The CephFS
# session of the dead one is ended by the new one.
set -u

pool=${1:?POOL} namespace=${2:?NAMESPACE} other=${3:?OTHER}
shift 3
: "${1:?COMMAND}"

# As long as it may take the other Ganesha to notice that it is dead.
SECONDS_FENCED=300

database()
{
	timeout 10 rados --pool "$pool" --namespace "$namespace" "$@"
}

# Ceph prints watcher=192.0.2.12:0/123, or watcher=[2001:db8::12]:0/123.
watchers_of()
{
	awk -v "host=$1" '
		BEGIN {
			host = tolower(host)
			if (host ~ /:/ && host !~ /^\[/)
				host = "[" host "]"
		}
		index($1, "watcher=" host ":") == 1 { print substr($1, 9) }'
}

# Whoever is not fenced may go on writing: it has to be said.
fence()
{
	all=$(database listwatchers grace) ||
		echo "$0: nobody is fenced: the watchers cannot be listed" >&2
	found=$(echo "$all" | watchers_of "$other")
	[ -n "$found" ] || [ -z "$all" ] ||
		echo "$0: no watcher has the address $other: $all" >&2
	for watcher in $found; do
		timeout 10 ceph osd blocklist add "$watcher" \
			"$SECONDS_FENCED" < /dev/null ||
			echo "$0: $watcher is not fenced" >&2
	done
}

# For check-gateway.sh: a start takes some time.
touch "${TAKE_OVER_STAMP:-/run/gateway-take-over}"
fence &
"$@"
wait
