# SPDX-License-Identifier: LGPL-3.0-or-later
"""Side by side with every peer: `ci/bench.sh`, tests/bench/README.md."""
