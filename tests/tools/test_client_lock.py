# SPDX-License-Identifier: LGPL-3.0-or-later
"""The counting of client_lock: the right mutex, and figures that can be.

The short form of tests/bench/studies/client_lock.py: 4 KiB, a second each.
"""
import json
import subprocess
import sys

import pytest

import client_lock

pytestmark = pytest.mark.measures

READ, WRITE = "READ 4 KiB, missing", "WRITE 4 KiB, stable"


@pytest.fixture(scope="module")
def found(cluster, tmp_path_factory):
    """Its JSON."""
    report = tmp_path_factory.mktemp("lock") / "report.json"
    cluster.ganesha("restart", "--fsal", "CEPH_ASYNC", "--export", "",
                    "--block", "")
    done = subprocess.run(
        [sys.executable, "-B", client_lock.__file__, "--no-up", "--rounds",
         "1", "--seconds", "1", "--only", "4 KiB", "--json", report],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=200, check=False)
    assert report.exists(), done.stdout
    print(done.stdout)
    return json.loads(report.read_text())


def test_each_callback_comes_with_it_held(found):
    for mutex in found["mutexes"]:
        assert mutex["callbacks"] >= 1000, mutex
        assert mutex["callbacks"] - mutex["callbacks_held"] <= 1, mutex


@pytest.mark.parametrize("name", [READ, WRITE])
def test_request_takes_it_and_its_answer_does(found, record, name):
    (one,) = found["runs"][name]["counted"]
    record(f"{name}: client_lock taken {one['taken']:.2f} times, held "
           f"{one['held_us']:.1f} µs, waited for {one['waited_us']:.1f} µs")
    # Once to submit, once to answer; some answers share one call (gather.h).
    assert 0.9 <= one["callbacks"] <= 1.1, one
    assert 1.9 <= one["taken"] <= 5, one
    # Less than the whole of Ganesha's CPU time, more than a few calls.
    assert 1 < one["held_us"] < one["cpu_us"], one
    assert one["held_workers_us"] > 0 and one["held_ceph_us"] > 0, one


def test_cached_read_has_no_callback(found):
    """The mutex was there and libcephfs was not needed for data."""
    (one,) = found["runs"]["READ 4 KiB, cached"]["counted"]
    assert one["callbacks"] < 0.1, one
