# SPDX-License-Identifier: LGPL-3.0-or-later
"""ci/job.sh latency: its arithmetic, and a short run of it."""
import json
import subprocess
import sys

import pytest

import latency_places
from latency_places import Look

# One connection, seen from both ends; then another port.
SS = """\
ESTAB 0 500 127.0.0.1:40000 127.0.0.1:21059 cubic bytes_sent:1600 \
bytes_acked:1000 bytes_received:300 segs_out:9
ESTAB 200 0 [::ffff:127.0.0.1]:21059 [::ffff:127.0.0.1]:40000 cubic \
bytes_sent:350 bytes_acked:350 bytes_received:1100 segs_out:9
ESTAB 7 7 127.0.0.1:40001 127.0.0.1:2049 cubic bytes_acked:9 bytes_received:9
"""
# Of 4 in flight: 1 in libnfs, 1.5 on the way, 1 in the server, 0.5 back.
CALL, ANSWER = 1000, 100


def test_what_each_end_says():
    look = latency_places.look_of(SS, 21059, 3.0)
    assert look == Look(3.0, written=1500, arrived=900, answered=350, done=300)
    assert latency_places.look_of("", 21059, 3.0).counts() == (0, 0, 0, 0)


def test_what_the_plugin_says():
    assert latency_places.parse_stages("""
ceph_async__latency_us_sum{export="1",op="read",stage="queued"} 5
ceph_async__latency_us_sum{export="1",op="write",stage="queued"} 7
ceph_async__latency_us_count{export="1",op="write",stage="total"} 3
ceph_async__requests_total{op="write"} 9
""") == {"sum queued": 12, "count total": 3}


def looks_of_a_load(answered_a_second=100, seconds=4):
    """Quiet, load, quiet; set-up has moved some bytes before."""
    looks = [Look(index * 0.02, 77, 77, 33, 33) for index in range(20)]
    begin = looks[-1].at
    steps = int(seconds / 0.02)
    for index in range(1, steps + 1):
        done = answered_a_second * index * 0.02
        looks.append(Look(
            begin + index * 0.02,
            int(77 + (done + 3) * CALL), int(77 + (done + 1.5) * CALL),
            int(33 + (done + 0.5) * ANSWER), int(33 + done * ANSWER)))
    total = answered_a_second * seconds + 4
    end = looks[-1].at
    return looks + [Look(end + index * 0.02, 77 + total * CALL,
                         77 + total * CALL, 33 + total * ANSWER,
                         33 + total * ANSWER) for index in range(1, 21)], total


def test_numbers_in_each_place():
    looks, total = looks_of_a_load()
    found = latency_places.numbers(looks, total, 4, 1, 3)
    assert found["libnfs"] == pytest.approx(1, abs=0.02)
    assert found["there"] == pytest.approx(1.5, abs=0.02)
    assert found["server"] == pytest.approx(1, abs=0.02)
    assert found["back"] == pytest.approx(0.5, abs=0.02)
    assert found["per_s"] == pytest.approx(100, rel=0.02)


def test_a_load_without_quiet_is_refused():
    looks, total = looks_of_a_load()
    with pytest.raises(SystemExit, match="no quiet"):
        latency_places.numbers(looks[:15], total, 4, 1, 3)
    with pytest.raises(SystemExit, match="looks at the load"):
        latency_places.numbers(looks, total, 4, 1, 1.05)


def test_the_plugins_part_is_taken_out_of_the_servers():
    found = {"libnfs": 1, "there": 1, "server": 10, "back": 1, "per_s": 1000}
    before = {"count total": 100, "sum queued": 0.0}
    after = {"count total": 200, "sum queued": 100.0,
             "sum libcephfs": 400000.0, "sum handover": 100000.0,
             "sum finish": 0.0}
    took = latency_places.places(found, before, after)
    assert took["libcephfs"] == 4 and took["handover"] == 1
    assert took["queued"] == 0.001
    assert took["ganesha"] == pytest.approx(10 - 5.001)
    assert sum(took.values()) == pytest.approx(13)


@pytest.mark.measures
def test_a_short_run(cluster, tmp_path, record):
    """1 MiB WRITEs: each place is there, none is below nothing."""
    report = tmp_path / "report.json"
    done = subprocess.run(
        [sys.executable, "-B", latency_places.__file__, "--no-up", "--rounds",
         "1", "--seconds", "2", "--only", "1 MiB", "--least", "0.8",
         "--json", report],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stdout
    for name, (one,) in json.loads(report.read_text()).items():
        took = one["places_ms"]
        record(f"{name}: {one['client_ms']:.1f} ms: " + ", ".join(
            f"{place} {took[place]:.1f}" for place in took))
        slack = 0.1 * one["client_ms"]
        assert all(value > -slack for value in took.values()), took
        assert took["libcephfs"] > 0
        assert 0.8 <= one["accounted"] <= 1.2
    assert "accounted for, %" in done.stdout
