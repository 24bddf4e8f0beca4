#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# May this host have the gateway's address?  For keepalived (vrrp_script):
#
#   check-gateway.sh ADDRESS ROUTER COMMAND...
#
# Status 1 when ROUTER does not answer, or when this host has ADDRESS and its
# Ganesha does not answer a NULL call over NFSv4, three times.  A Ganesha that
# is stopped, dead or has no free worker does not answer.  COMMAND then kills it,
# while the address is still here: end-gateway.sh.
#
# Only the host that has ADDRESS runs Ganesha, so the other one is asked for the
# router alone.
set -u

address=${1:?ADDRESS} router=${2:?ROUTER}
shift 2
: "${1:?COMMAND}"
# Made by take-over.sh: a Ganesha that starts has some time to answer.  It may
# wait for an MDS that fails over: 80 s.
stamp=${TAKE_OVER_STAMP:-/run/gateway-take-over}
STARTING=90

# Within 1 s: before the other host has the address (advert_int).
router_answers()
{
	device=$(ip -o route get "$router" |
		sed -n 's/.* dev \([^ ]*\).*/\1/p')
	for _ in 1 2; do
		timeout 0.5 arping -q -f -c 1 -w 1 -I "$device" "$router" &&
			return 0
	done
	return 1
}

ganesha_answers()
{
	# KILL: rpcinfo puts other signals off for 10 s.
	timeout -s KILL 1 rpcinfo -n "${NFS_PORT:-2049}" -t "$address" nfs 4 \
		> /dev/null 2>&1
}

# A host that has lost its network must give up: nobody can tell it to.  If it
# came back with the address, clients would find a Ganesha that does not know
# them, and lose their locks.
router_answers || exit 1
ip -o address show to "$address" | grep -q . || exit 0
for _ in 1 2 3; do
	if ganesha_answers; then
		rm -f "$stamp"
		exit 0
	fi
	sleep 0.3
done
find "$stamp" -newermt "-$STARTING seconds" 2> /dev/null | grep -q . && exit 0
"$@"
exit 1
