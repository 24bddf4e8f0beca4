# SPDX-License-Identifier: LGPL-3.0-or-later
"""The library that answers in libcephfs' stead: it answers, and all of it.

The short form of tests/bench/studies/ceiling.py: 4 KiB, half a second each,
only the systems that answer.
"""
import json
import subprocess
import sys

import pytest

import ceiling

pytestmark = pytest.mark.measures


@pytest.fixture(scope="module")
def found(cluster, tmp_path_factory):
    """Its JSON."""
    report = tmp_path_factory.mktemp("ceiling") / "report.json"
    cluster.ganesha("restart", "--fsal", "CEPH_ASYNC", "--export", "",
                    "--block", "")
    # A request without an answer, or with an error, is its end.
    done = subprocess.run(
        [sys.executable, "-B", ceiling.__file__, "--no-up", "--rounds", "1",
         "--seconds", "0.5", "--only", "4 KiB", "--systems", "answering",
         "--json", report],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=200, check=False)
    assert report.exists(), done.stdout
    print(done.stdout)
    assert done.returncode == 0
    return json.loads(report.read_text())


@pytest.mark.parametrize("system", ceiling.ANSWERING)
@pytest.mark.parametrize("mix", ["WRITE 4 KiB, stable", "READ 4 KiB, missing"])
def test_the_library_answers_each_request(found, record, system, mix):
    for flight in 1, 32, 128:
        (one,) = found["runs"][f"{mix}, {flight}"][system]
        record(f"{system}: {mix}, {flight} in flight: {one['rate']:.0f}/s, "
               f"CPU {one['cpu_us']:.1f} µs")
        assert one["requests"] > 0 and one["cpu_us"] > 1, one
        assert one["answered"] > 0.9, one
        assert one["passed"] < 0.02, one


@pytest.mark.parametrize("system", ceiling.ANSWERING)
def test_the_osd_saw_none_of_them(found, system):
    (ops,) = found["osd_ops"][system]
    assert ops < 0.02, ops
