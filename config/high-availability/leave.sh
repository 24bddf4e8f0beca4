#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# An administrator moves the gateway to the other host.  On the host that has it:
#
#   leave.sh POOL NAMESPACE MINE COMMAND...
#
# POOL and NAMESPACE are those of RADOS_KV in ganesha.conf, MINE is this host's
# address towards Ceph.  COMMAND kills Ganesha, with end-gateway.sh, and then
# stops keepalived.
#
# Kills, on purpose: a Ganesha that ends in an orderly way waits for Ceph.  A
# killed one keeps its locks, too, until the next one has them.  It is fenced
# meanwhile, for which see take-over.sh.
set -u

pool=${1:?POOL} namespace=${2:?NAMESPACE} mine=${3:?MINE}
shift 3
: "${1:?COMMAND}"
SECONDS_FENCED=300

# Ceph prints watcher=192.0.2.11:0/123, or watcher=[2001:db8::11]:0/123.
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

all=$(timeout 10 rados --pool "$pool" --namespace "$namespace" \
	listwatchers grace) ||
	echo "$0: nobody is fenced: the watchers cannot be listed" >&2
watchers=$(echo "$all" | watchers_of "$mine")
[ -n "$watchers" ] || [ -z "$all" ] ||
	echo "$0: no watcher has the address $mine: $all" >&2
"$@" &
for watcher in $watchers; do
	timeout 10 ceph osd blocklist add "$watcher" "$SECONDS_FENCED" ||
		echo "$0: $watcher is not fenced" >&2
done
wait "$!"
