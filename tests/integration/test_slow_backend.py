# SPDX-License-Identifier: LGPL-3.0-or-later
"""Every OSD operation takes 0 to 100 ms: whom does that slow down?

The short form of ci/job.sh slow-backend: two rounds, the same bounds, a control
that ends sooner.
"""
import json
import subprocess
import sys

import pytest

import slow_backend

# Too long for each change; and latencies mean something on a machine that does
# nothing else.
pytestmark = [pytest.mark.nightly, pytest.mark.measures]

# At 0.9 CPUs of others Ganesha, OSD and load waited 40 s for a CPU in 5 s
# (/proc/PID/task/*/schedstat).


@pytest.fixture(scope="module")
def verdicts(cluster, tmp_path_factory):
    """Bound → verdict, of the median of the rounds."""
    report = tmp_path_factory.mktemp("slow") / "report.json"
    cluster.run("slow", slow_backend.SLOW_MS)
    try:
        # Connections to the OSD are slow or fast from their beginning on.
        cluster.ganesha("restart", "--fsal", "CEPH_ASYNC", "--export", "",
                        "--block", "")
        cluster.start_second("CEPH")
        done = subprocess.run(
            [sys.executable, "-B", slow_backend.__file__, "--no-up",
             "--control-depth", "32", "--rounds", "2", "--seconds", "5",
             "--json", report],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=500, check=False)
    finally:
        cluster.run("slow", 0)
        cluster.stop_second()
    assert report.exists(), done.stdout
    print(done.stdout)
    found = json.loads(report.read_text())
    return {verdict["key"]: {**verdict, "others": found["others_cpus"]}
            for verdict in found["bounds"]}


@pytest.mark.parametrize("key", [bound[1] for bound in slow_backend.BOUNDS])
def test_bound(verdicts, record, key):
    verdict = verdicts[key]
    line = (f"{verdict['what']}: {verdict['value']:.2f}, "
            f"wanted {verdict['wanted']}; others used "
            f"{verdict['others']:.2f} CPUs meanwhile")
    record(line)
    assert verdict["holds"], line
