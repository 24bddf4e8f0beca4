#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
#
# Static checks of the tree, in the lab container: see ci/lint/run.sh, which
# also says what may follow as arguments.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=ci/lib/lib.sh
. "$top/ci/lib/lib.sh"

lab=casync-lint-$$

"$top/ci/image.sh"
ensure_engine
trap 'end_lab "$lab"' EXIT
trap 'exit 130' INT TERM
start_compiling_lab "$lab"
"$ENGINE" exec -w /src/fsal-ceph-async "$lab" ci/lint/run.sh "$@"
