#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# Ends Ganesha while the gateway's address is still here:
#
#   end-gateway.sh ADDRESS COMMAND...
#
# COMMAND kills it.  A killed process closes its connections only when its last
# thread has ended.  If ADDRESS went before, clients would not hear of it, and an
# NFSv3 client that has sent all it has to say would wait for a minute
# (timeo=600).  So this waits, for SECONDS_TO_CLOSE at most.
set -u

address=${1:?ADDRESS}
shift
: "${1:?COMMAND}"
SECONDS_TO_CLOSE=5

"$@"
for _ in $(seq $((SECONDS_TO_CLOSE * 10))); do
	ss -Htn state established state close-wait state fin-wait-1 \
		src "$address" | grep -q . || exit 0
	sleep 0.1
done
