# SPDX-License-Identifier: LGPL-3.0-or-later
"""Two minutes of the chaos job of tests/chaos, on a cluster of its own."""
import pytest

SEED = "1695"


@pytest.mark.nightly    # ci/job.sh nightly runs the job itself
def test_service_survives_random_faults(nothing_up, record):
    """A fixed seed: an eviction and a blocklisting; OSD, MON and MDS killed, a
    gateway stopped, the clocks of both stepped."""
    said = nothing_up.job("chaos/chaos.py", "--seed", SEED, "--no-kernel", "2",
                          limit_s=600)
    for line in said.splitlines():
        if " x  " in line or "reconnects" in line:
            record(line.split(" ", 1)[1])
