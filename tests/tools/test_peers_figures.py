# SPDX-License-Identifier: LGPL-3.0-or-later
"""What ci/bench.sh makes of figures: medians, ratios, --against.  No lab."""
import json
import os
import subprocess
import sys

import pytest

from peers import (counters, figures, loads, measure, report, runner,
                   targets, tree)
from peers.kernel_client import AGENT
from peers.loads import Fio
from peers.runner import Plan, Runner
from peers.scenarios import SCENARIOS, chosen
from peers.systems import SYSTEMS


def runs_of(scenario, case, **systems):
    """system=[value of round 0, value of round 1, …]; None: it failed."""
    return [{"scenario": scenario, "case": case, "system": system,
             "round": number, "figures": {"per_s": value, "others_cpus": 0}}
            for system, values in systems.items()
            for number, value in enumerate(values) if value is not None]


def key(system, case="stable-write", scenario="small"):
    return scenario, case, system


def test_spread():
    assert figures.spread([3, 1, 2]) == {
        "median": 2, "min": 1, "max": 3, "rounds": 3}
    assert figures.spread([4, 1, 3, 2])["median"] == 2.5
    assert figures.spread([]) is None


def test_ratio_is_of_each_round_and_not_of_medians():
    runs = runs_of("small", "stable-write", casync=[10, 20, 90],
                   ceph=[5, 20, 10])
    found = figures.ratio(runs, key("casync"), key("ceph"), "per_s")
    # 2, 1, 9; the medians' ratio would be 20 / 10
    assert found == {"median": 2, "min": 1, "max": 9, "rounds": 3}
    runs = runs_of("small", "stable-write", casync=[10, 40, 90],
                   ceph=[5, 10, 10])
    assert figures.ratio(runs, key("casync"), key("ceph"),
                         "per_s")["median"] == 4


def test_a_round_that_one_lacks_is_left_out():
    runs = runs_of("small", "stable-write", casync=[10, 10, 10],
                   ceph=[1, None, 5])
    assert figures.ratio(runs, key("casync"), key("ceph"), "per_s") == {
        "median": 6, "min": 2, "max": 10, "rounds": 2}
    assert figures.ratio(runs, key("casync"), key("fuse"), "per_s") is None


def test_zero_divides_nothing():
    runs = runs_of("small", "stable-write", casync=[10], ceph=[0])
    assert figures.ratio(runs, key("casync"), key("ceph"), "per_s") is None


def test_better_is_the_better_one_of_each_round():
    runs = runs_of("large", "read", ceph=[5, 1], cephasync=[3, 8])
    assert figures.better(runs, [key("ceph", "read", "large"),
                                 key("cephasync", "read", "large")],
                          "per_s") == {0: 5, 1: 8}


def test_disturbed_when_half_of_the_rounds_are():
    runs = runs_of("small", "stable-write", casync=[1, 1, 1])
    for run, cpus in zip(runs, (0.0, 0.5, 0.5)):
        run["figures"]["others_cpus"] = cpus
    assert figures.disturbed(runs, *key("casync"))
    runs[1]["figures"]["others_cpus"] = 0.0
    assert not figures.disturbed(runs, *key("casync"))


def test_others_are_weighed_by_time():
    runs = runs_of("small", "stable-write", casync=[1, 1])
    for run, cpus, took in zip(runs, (1.0, 0.0), (1, 3)):
        run["figures"]["others_cpus"] = cpus
        run["took_s"] = took
    assert figures.others(runs) == 0.25
    assert figures.others([]) == 0


def test_against():
    old = runs_of("small", "stable-write", casync=[100, 110, 120],
                  ceph=[50, 55, 60], fuse=[1])
    new = runs_of("small", "stable-write", casync=[130, 140, 150],
                  ceph=[58, 60, 62], rbd=[7])
    lines = figures.against(new, old, {("small", "stable-write"): "per_s"})
    assert [(line["key"][2], line["apart"]) for line in lines] == [
        ("casync", True), ("ceph", False)]
    assert lines[0]["ratio"] == pytest.approx(140 / 110)
    # Of a case that is not shown there is nothing to say.
    assert figures.against(new, old, {}) == []


@pytest.mark.parametrize("ours, met", [([25, 26, 27], True),
                                       ([24, 24.9, 30], False)])
def test_targets_are_met_or_not(ours, met):
    runs = runs_of("small", "stable-write", casync=ours, ceph=[10, 10, 10])
    verdicts = {one["what"]: one for one in targets.judge(runs)}
    first = verdicts[targets.TARGETS[0].what]
    assert first["met"] is met and first["wanted"] == ">= 2.5"
    # What was not measured is neither.
    assert sum(one["met"] is None for one in verdicts.values()) == \
        len(targets.TARGETS) - 1


def test_a_target_of_latency_wants_less():
    for value, met in ((0.4, True), (0.6, False)):
        runs = runs_of("one", "stable-write", casync=[0], ceph=[0])
        for run, took in zip(runs, (value * 1000, 1000)):
            run["figures"]["mean_us"] = took
        what = ("one at a time: stable 4 KiB write latency / FSAL_CEPH "
                "blocking")
        assert next(one["met"] for one in targets.judge(runs)
                    if one["what"] == what) is met


def test_every_target_names_a_case_that_exists(monkeypatch):
    """And one that --quick measures."""
    systems = {(scenario.name, case.name): case.systems
               for scenario in chosen([], quick=True)
               for case in scenario.cases}
    asked = []

    def note(_runs, one, _figure):
        asked.append(one)
        return {}
    monkeypatch.setattr(figures, "by_round", note)
    for target in targets.TARGETS:
        asked.clear()
        assert target.value([]) is None
        assert asked, target.what
        for scenario, case, system in asked:
            assert system in systems[scenario, case], target.what


def test_every_figure_shown_has_a_column():
    shown = {figure for scenario in chosen([], quick=False)
             for case in scenario.cases for figure in case.show}
    assert shown <= report.COLUMNS.keys()


def test_every_system_of_a_case_exists():
    assert {name for scenario in SCENARIOS for case in scenario.cases
            for name in case.systems} <= SYSTEMS.keys()


def test_number():
    value = figures.spread([1, 2, 4])
    assert report.number(value) == "2.00 (1.00–4.00)"
    assert report.number(value, 1000, 0) == "2000 (1000–4000)"
    assert report.number(figures.spread([2])) == "2.00"
    assert report.number(None) == "–"


def raw_of(runs):
    names = list(dict.fromkeys(run["system"] for run in runs))
    return {
        "when": "today", "machine": "a machine", "versions": "versions",
        "cpus": 2, "others_cpus": 0.1, "skipped": ["S9"],
        "settings": {"rounds": 3, "seconds": 2.0, "quick": True},
        "systems": {name: f"the {name}" for name in names},
        "scenarios": [{"name": "small", "title": "small I/O",
                       "cases": [
            {"name": "stable-write", "title": "writes", "show": ["per_s"],
             "systems": names}]}],
        "runs": runs, "errors": [
            {"scenario": "small", "case": "stable-write", "system": "ceph",
             "round": 1, "error": "nfsload: status 1\nmore"}]}


def test_report_says_what_is_missing_and_what_failed():
    runs = runs_of("small", "stable-write", casync=[30, 30, 30],
                   ceph=[10, 10, 10])
    raw = json.loads(json.dumps(raw_of(runs)))
    text = report.write(raw)
    assert "**Not complete**, there was no time for: S9." in text
    assert ("- small stable-write `ceph` round 2: … nfsload: status 1 more"
            in text)
    assert "| `casync` | 30 (30–30) | 1 |" in text
    assert "| `ceph` | 10 (10–10) | 3.00 (3.00–3.00) |" in text
    assert "| not measured |" in text
    runs[0]["figures"]["others_cpus"] = runs[1]["figures"]["others_cpus"] = 1
    assert "| `casync`* |" in report.write(raw_of(runs))


def test_a_late_run_makes_fewer_rounds_of_each():
    scenarios = chosen(["small", "large"], quick=True)
    each = [sum(len(case.systems) for case in scenario.cases)
            for scenario in scenarios]
    plan = Plan(scenarios, 3, 2.0, limit_s=1000)
    late = Runner(plan, None, print, print)
    assert plan.count() == 3 * sum(each)
    # The first one may have its share of 1000 s, the last one all.
    share = 1000 * each[0] / sum(each)
    late.elapsed_s = lambda: share - 50
    assert not late.late(scenarios[0], 49)
    assert late.late(scenarios[0], 51)
    assert not late.late(scenarios[1], 51)
    plan.limit_s = 0
    assert not late.late(scenarios[0], 10000)


RADOS = """\
Total time run:         2.00156
Total writes made:      8000
Write size:             4096
Average IOPS:           3996
Average Latency(s):     0.00431
Max latency(s):         0.0561
"""
FIO = """warning of a library {
{
  "fio version" : "fio-3.41",
  "jobs" : [{"error" : 0,
    "read" : {"total_ios" : 0},
    "write" : {"total_ios" : 600, "io_bytes" : 2457600, "runtime" : 2000,
      "clat_ns" : {"mean" : 5000.0, "percentile" : {
        "50.000000" : 4000, "99.000000" : 9000}}}}]
}
"""


def test_what_the_tools_say_is_understood():
    found, made = measure.of_rados(RADOS, 4096)
    assert made == 8000 and found["per_s"] == pytest.approx(8000 / 2.00156)
    assert found["mean_us"] == pytest.approx(4310)
    with pytest.raises(SystemExit, match="Total"):
        measure.of_rados("", 4096)
    found, made = measure.of_fio(FIO)
    assert made == 600 and found == {
        "per_s": 300, "mib_s": pytest.approx(1.171875), "mean_us": 5,
        "p50_us": 4, "p99_us": 9}
    with pytest.raises(SystemExit, match="error 5"):
        measure.of_fio(FIO.replace('"error" : 0', '"error" : 5'))
    assert tree.rates(
        "noise\nstep untar 10.0\n" + mount_stats(300, 150, 5) +
        "step end 12.0\n" + mount_stats(600, 300, 6), 100) == {
            "untar_per_s": 50, "untar_setattr": 3, "untar_setattr_ms": 1.5}
    # CephFS has no such requests.
    assert tree.rates("step remove 17.5\nstep end 18.5\n", 100) == {
        "remove_per_s": 100}


def mount_stats(changes, ms, looks):
    """The lines of /proc/self/mountstats that count."""
    return f"""device x mounted on /mnt/nfs with fstype nfs4 statvers=1.1
\tper-op statistics
\t     SETATTR: {changes} {changes} 0 700 800 9 {ms} 999 0
\t      ACCESS: {looks} {looks} 0 70 80 9 77 99 0
"""


def nfsload_op(per_s, mib_per_s, p99):
    return {"per_s": per_s, "mib_per_s": mib_per_s,
            "latency_us": {"mean": 2.5, "p50": 2, "p99": p99, "max": 99}}


def test_nfsload_of_one_operation_and_of_a_mix():
    write, create = nfsload_op(400, 1.5625, 20), nfsload_op(50, 0, 70)
    found = measure.of_nfsload({"ops": {"write": write}})
    assert found == {"per_s": 400, "mib_s": 1.5625, "mean_us": 2.5,
                     "p50_us": 2, "p99_us": 20, "max_us": 99}
    found = measure.of_nfsload({"ops": {"write": write, "create": create}})
    assert found["per_s"] == 450 and found["mib_s"] == 1.5625
    assert found["write_per_s"] == 400 and found["create_per_s"] == 50
    assert found["write_p99_us"] == 20 and found["create_p99_us"] == 70
    assert "p99_us" not in found


def test_the_agent_is_where_the_kernel_client_looks():
    assert AGENT.exists()


def test_cpu_time_of_what_a_process_started():
    """A child that has burned CPU and is still there counts."""
    before = counters.tree_cpu_s(os.getpid())
    with subprocess.Popen(
            [sys.executable, "-c", "import time\n"
             "while time.process_time() < 0.5: pass\n"
             "print(flush=True)\ntime.sleep(60)"],
            stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        used = counters.tree_cpu_s(os.getpid()) - before
        alone = counters.tree_cpu_s(child.pid)
        child.kill()
    assert used >= 0.45 and alone >= 0.45


def test_fio_of_parts_is_given_each_part_once():
    load = Fio(loads.Files("streams", 64 * loads.MIB), "write", "1m", 4,
               jobs=16, apart=True)
    words = measure._fio_words(load, 2, 1)
    assert "--size=4194304" in words
    assert "--offset_increment=4194304" in words


def test_each_case_reads_at_offsets_of_its_own():
    """Else a gateway's cache has what the case before it read: 4 KiB reads
    that were said to miss it were answered from it."""
    seeds = [runner.seed_of(scenario, case, number) for scenario in SCENARIOS
             for case in scenario.cases for number in range(5)]
    assert 0 not in seeds and len(set(seeds)) == len(seeds)


def test_files_of_a_tree_have_sizes_between_and_folders():
    files = loads.Files("tree", 1 << 20, 600, least=4096, a_folder=50)
    sizes = [files.bytes(number) for number in range(files.count)]
    assert sizes == [files.bytes(number) for number in range(files.count)]
    assert min(sizes) >= 4096
    assert max(sizes) <= 1 << 20
    middle = sorted(sizes)[300]
    assert 1 << 15 < middle < 1 << 17       # of the logarithms
    assert files.path(0) == "tree/d000/f00000"
    assert files.path(599) == "tree/d011/f00599"
    one = loads.Files("io", 1 << 20)
    assert (one.bytes(0), one.path(0)) == (1 << 20, "io.0")
