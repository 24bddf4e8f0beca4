# SPDX-License-Identifier: LGPL-3.0-or-later
"""ci/bench.sh's harness: a very short run, and what it leaves behind."""
import json
import subprocess
import sys
from pathlib import Path

import pytest

PEERS = Path(__file__).resolve().parents[1] / "bench" / "peers"
OPTIONS = ("--rounds", "1", "--seconds", "2", "--systems", "casync,ceph",
           "--cases", "stable-write,randwrite,names-and-data")
SCENARIOS = ("small", "linux", "mixed")


@pytest.fixture(scope="module")
def result(cluster, tmp_path_factory):
    """One round of two systems, by nfsload and by fio in kernel clients;
    (raw.json, its folder, what was said)."""
    folder = tmp_path_factory.mktemp("peers")
    done = subprocess.run(
        [sys.executable, "-B", PEERS, "--no-up", *OPTIONS, "--output",
         folder, *SCENARIOS],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout
    return json.loads((folder / "raw.json").read_text()), folder, done.stdout


def figures(result, system, scenario="small"):
    runs = [run for run in result[0]["runs"]
            if (run["system"], run["scenario"]) == (system, scenario)]
    assert len(runs) == 1, runs
    return runs[0]["figures"]


def test_every_measurement_is_there(result):
    raw = result[0]
    assert [(run["scenario"], run["case"], run["system"], run["round"])
            for run in raw["runs"]] == [
                ("small", "stable-write", "casync", 0),
                ("small", "stable-write", "ceph", 0),
                ("linux", "randwrite", "casync", 0),
                ("linux", "randwrite", "ceph", 0),
                ("mixed", "names-and-data", "casync", 0),
                ("mixed", "names-and-data", "ceph", 0)]
    assert raw["errors"] == [] and raw["skipped"] == []
    assert raw["settings"] == {"rounds": 1, "seconds": 2.0, "quick": False,
                               "disk": ""}
    case = raw["scenarios"][0]["cases"][0]
    assert case["loads"]["ceph"]["stable"] == "file_sync"
    assert case["loads"]["ceph"]["by"] == "nfs"


@pytest.mark.parametrize("scenario", ["small", "linux"])
@pytest.mark.parametrize("system", ["casync", "ceph"])
def test_figures_make_sense(result, system, scenario):
    found = figures(result, system, scenario)
    assert found["per_s"] > 50
    assert found["mib_s"] == pytest.approx(found["per_s"] / 256, rel=0.01)
    assert 0 < found["p50_us"] <= found["p99_us"]
    # A 4 KiB write is one OSD write of 4 KiB, and what the MDS makes of it.
    assert 0.95 < found["osd_ops"] < 3
    assert 4096 * 0.95 < found["osd_bytes"] < 3 * 4096
    assert 5 < found["cpu_us"] < 100000
    assert found["switches"] > 0
    assert 20 < found["peak_mib"] < 4096
    assert found["others_cpus"] >= 0


@pytest.mark.parametrize("scenario", ["small", "linux"])
def test_journal_tells_the_two_apart(result, record, scenario):
    ours, theirs = (figures(result, name, scenario)["journal"]
                    for name in ("casync", "ceph"))
    record(f"{scenario}, MDS journal events a stable write: CEPH_ASYNC "
           f"{ours:.4f}, FSAL_CEPH {theirs:.4f}")
    assert ours < 0.05 < 0.5 < theirs


@pytest.mark.parametrize("system", ["casync", "ceph"])
def test_a_mix_with_creates(result, system):
    found = figures(result, system, "mixed")
    rates = {op: found[f"{op}_per_s"] for op in
             ("read", "write", "getattr", "create")}
    assert found["per_s"] == pytest.approx(sum(rates.values()))
    # One in ten, drawn by lot.
    assert 0.05 < rates["create"] / found["per_s"] < 0.15
    assert 0 < found["create_p50_us"] <= found["create_p99_us"]


def test_report(result):
    raw, folder, said = result
    report = (folder / "report.md").read_text()
    assert "## Targets" in report and "## small" in report
    assert "| `casync`" in report and "| `ceph`" in report
    assert f"{figures(result, 'ceph')['per_s']:.0f}" in report
    ratio = figures(result, "casync")["per_s"] / \
        figures(result, "ceph")["per_s"]
    assert f"/ FSAL_CEPH blocking | {ratio:.3f} | >= 2.5 |" in report
    assert "left] small stable-write round 1" in said
    assert "What failed" not in report and raw["machine"] in report


def test_nothing_of_it_is_left(result, cluster):
    """Its Ganeshas are gone; the lab's own cluster is as it was."""
    ganeshas = cluster.stat()["ganesha"]
    assert {name for name, about in ganeshas.items()
            if name.startswith("peer") and about["pid"]} == set()


def test_report_again_and_against(result):
    """Figures of the same run do not differ from themselves."""
    folder = result[1]
    before = (folder / "raw.json").read_text()
    done = subprocess.run(
        [sys.executable, "-B", PEERS, "--report", folder / "raw.json",
         "--against", folder / "raw.json"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout
    report = (folder / "report.md").read_text()
    assert "## Against an older run" in report
    assert "**changed**" not in report and "| 1.00 |" in report
    assert (folder / "raw.json").read_text() == before
