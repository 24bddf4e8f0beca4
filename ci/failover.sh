#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# How long clients stand still when their gateway fails or is moved:
# ci/failover.sh [ROUNDS].  It is the job failover of ci/job.sh, which says more.
exec "$(dirname "$0")/job.sh" failover "$@"
