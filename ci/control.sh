#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# The POSIX cases with FSAL_CEPH and other controls beside CEPH_ASYNC, in one
# lab:  ci/control.sh [OPTIONS of tests/integration/control.py]
#
# Prints the table of docs/conformance.md.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=ci/lib/lib.sh
. "$top/ci/lib/lib.sh"
# shellcheck source=ci/lib/job.sh
. "$top/ci/lib/job.sh"

begin_job control
do_job 3600 \
	python3 -B /src/fsal-ceph-async/tests/integration/control.py "$@"
