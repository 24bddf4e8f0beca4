#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# Random faults under verified load:  ci/chaos.sh [MINUTES] [--seed N].  It is
# the job chaos of ci/job.sh, which says more.
exec "$(dirname "$0")/job.sh" chaos "$@"
