# SPDX-License-Identifier: LGPL-3.0-or-later
"""Twenty seconds of ci/job.sh fuzz-wire, without a sanitizer."""
import pytest

SEED = "20240229"           # any: the same requests each time
MINUTES = "0.3"


@pytest.fixture
def judged(cluster):
    """The job starts "a" anew, and judges it.  Ganesha's lines on requests
    that make no sense are no other test's."""
    cluster.altered = True
    ends = [log.end() for log in cluster.whole_logs]
    yield cluster
    for log, end in zip(cluster.whole_logs, ends):
        log.leave_out(end)


@pytest.mark.nightly    # ci/job.sh nightly runs the job itself
def test_right_and_wrong_requests(judged, record):
    """The daemon lives, a client beside it is served, nothing is left."""
    said = judged.job("fuzz/wire.py", "--seed", SEED, "--minutes", MINUTES,
                      limit_s=120)
    for line in said.splitlines():
        if " requests in " in line or "canary" in line or "last" in line:
            record(line.split(" ", 1)[1])
