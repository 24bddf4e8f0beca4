# SPDX-License-Identifier: LGPL-3.0-or-later
"""Prometheus and the log agree with what the clients counted."""
import json
import re
import subprocess
import time
from pathlib import Path

import pytest

import metrics_outputs as outputs
from lab import LOGS, Log

SOURCE = Path(__file__).resolve().parents[2]
MONITORING = SOURCE / "config" / "monitoring"
NAME = re.compile(r"ceph_async__\w+")
# A tick of the metrics, and one of the log's line.
SETTLE_S = 2.5
BLOCK = 4096
CACHE_BYTES = 256 << 20
STAGES = ("queued", "libcephfs", "handover", "finish")
# promtool wants seconds; Ganesha's registry has integers only.
KNOWN_LINT = "metric names should not contain abbreviated units"


@pytest.fixture(scope="module")
def counted(cluster):
    """Ganesha with both outputs on."""
    cluster.ganesha("restart", "--fresh", "--export",
                    "Stats_Interval = 1; Promote_Unstable = false;", "--core",
                    "Enable_Metrics = true;")
    return cluster


class Watch:
    """What both outputs have counted since it was made."""

    def __init__(self):
        time.sleep(SETTLE_S)
        self.log = Log(LOGS / "ganesha-a.log")
        self.before = self._now()

    @staticmethod
    def _now():
        return {
            f"prometheus {op}{what}": outputs.prometheus(
                "bytes_total" if what else "requests_total", op=op)
            for op in ("read", "write")
            for what in ("", "_bytes")}

    def since(self):
        time.sleep(SETTLE_S)
        since = {key: value - self.before[key]
                 for key, value in self._now().items()}
        told = outputs.log_numbers(self.log)
        assert told["lines"] >= 2, "no line in the log"
        assert not [name for name in told if name.startswith("errors_total")
                    and not name.endswith(" delay")]
        for op in ("read", "write"):
            since[f"log {op}"] = told[f"requests_total {op}"]
            since[f"log {op}_bytes"] = told[f"bytes_total {op}"]
        return since


def near(wanted):
    return pytest.approx(wanted, rel=0.01)


def check(since, wanted):
    """Both outputs, within 1 %."""
    for what, value in wanted.items():
        assert value > 1000, f"too little to compare: {wanted}"
        for output in ("prometheus", "log"):
            assert since[f"{output} {what}"] == near(value), \
                f"{output} {what}: {since}, wanted {wanted}"


def fio(lab, vers, *options):
    output = lab.client(
        "fio", "--name=counted", "--directory=/mnt/nfs", "--size=16M",
        "--bs=4k", "--rw=randrw", "--ioengine=psync", "--direct=1",
        "--output-format=json", *options, vers=vers)
    return json.loads(output[output.index("{"):output.rindex("}") + 1])


@pytest.mark.parametrize("vers", ("3", "4.1"))
def test_all_doors_agree_with_fio(counted, record, vers):
    fio(counted, vers, "--create_only=1")
    watch = Watch()
    done = fio(counted, vers, "--time_based", "--runtime=8")["jobs"][0]
    since = watch.since()
    assert done["error"] == 0
    wanted = {"read": done["read"]["total_ios"],
              "write": done["write"]["total_ios"],
              "read_bytes": done["read"]["io_bytes"],
              "write_bytes": done["write"]["io_bytes"]}
    record(f"NFSv{vers}: fio counted {wanted}, the outputs {since}")
    check(since, wanted)


def nfsload(*args):
    done = subprocess.run(["nfsload", "--name", "counted", *args], text=True,
                          capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def stage_us(op, what):
    """stage → count or sum."""
    return {stage: outputs.prometheus(f"latency_us_{what}", op=op, stage=stage)
            for stage in (*STAGES, "total")}


@pytest.fixture
def without_cache(counted):
    counted.ganesha("reload", "--block", "Cache_Bytes = 0;")
    outputs.wait_for_cache_bytes(0)
    yield
    counted.ganesha("reload", "--block", "")
    outputs.wait_for_cache_bytes(CACHE_BYTES)


@pytest.mark.parametrize("op", ("read", "write"))
@pytest.mark.usefixtures("without_cache")
def test_stages_are_the_whole_latency(record, op):
    """And less than the client's, which has the network on top."""
    nfsload("--count", "1")
    watch = Watch()
    counts, sums = stage_us(op, "count"), stage_us(op, "sum")
    load = nfsload("--mix", f"{op}=100", "--connections", "2", "--depth", "4",
                   "--seconds", "4")
    since = watch.since()
    counts = {stage: value - counts[stage]
              for stage, value in stage_us(op, "count").items()}
    sums = {stage: value - sums[stage]
            for stage, value in stage_us(op, "sum").items()}
    check(since, {op: load["sent"], f"{op}_bytes": load["sent"] * BLOCK})
    for stage, count in counts.items():
        # A read of the last block asks for the size, on a worker.
        assert count == near(load["sent"]), stage
    assert sum(sums[stage] for stage in STAGES) == near(sums["total"])
    means = {stage: sums[stage] / counts[stage] for stage in sums}
    client_us = load["ops"][op]["latency_us"]["mean"]
    record(f"{op}: client {client_us:.0f} us; " + ", ".join(
        f"{stage} {value:.1f}" for stage, value in means.items()))
    assert means["total"] < client_us
    assert means["libcephfs"] > means["queued"]


def test_unstable_writes_and_their_commit(counted):
    def now():
        return {
            "stable_writes_total": outputs.prometheus("stable_writes_total"),
            "commits_without_flush_total": outputs.prometheus(
                "commits_without_flush_total"),
            "commits": outputs.prometheus("requests_total", op="commit"),
            "timed": outputs.prometheus("latency_us_count", op="commit"),
            "bytes": outputs.prometheus("bytes_total", op="write")}
    before = now()
    counted.client("dd", "if=/dev/zero", "of=/mnt/nfs/committed", "bs=1M",
                   "count=4", "conv=fsync")
    time.sleep(SETTLE_S)
    came = {name: value - before[name] for name, value in now().items()}
    assert came["bytes"] == 4 << 20
    assert came["commits"] >= 1
    assert came["timed"] == came["commits"]
    # Stable_Write = data: the data are committed, nothing is left to do.
    assert came["commits_without_flush_total"] == came["commits"]
    # Promote_Unstable = false: what was written unstable stays so.
    assert came["stable_writes_total"] == 0


def test_scrape_passes_promtool(counted):
    said, _ = outputs.promtool("check", "metrics", text=outputs.scrape())
    ours = [line for line in said.splitlines()
            if line.startswith("ceph_async__") and KNOWN_LINT not in line]
    assert not ours, said


# docs/metrics.md, "How many series".
MOST_OF_AN_EXPORT, MOST_OF_THE_PROCESS = 380, 28
LABELS = {"export", "op", "stage", "le", "class", "mode", "client", "cause",
          "version", "libcephfs"}


def test_number_of_series_is_bounded(counted, record):
    """No label names a client of NFS, a file or an error's text."""
    series = re.findall(r"^ceph_async__\w+(?:\{(.*)\})? \S+$",
                        outputs.scrape(), re.M)
    of_exports = [one for one in series if 'export="' in one]
    exports = set(re.findall(r'export="(\d+)"', "\n".join(of_exports)))
    record(f"series: {len(of_exports)} of {len(exports)} exports, "
           f"{len(series) - len(of_exports)} of the process")
    assert len(of_exports) <= MOST_OF_AN_EXPORT * len(exports)
    assert len(series) - len(of_exports) <= MOST_OF_THE_PROCESS
    assert set(re.findall(r'(\w+)="', "\n".join(series))) <= LABELS
    page = (MONITORING.parents[1] / "docs/metrics.md").read_text()
    assert f"at most {MOST_OF_AN_EXPORT} series" in page
    assert f"{MOST_OF_THE_PROCESS} of the process" in page


def test_what_alerts_count_is_there_at_0(counted):
    """Ganesha leaves counters of 0 out; these are gauges."""
    text = outputs.scrape()
    for name in ("reconnects", "locks_lost", "last_reload_successful"):
        assert re.search(rf"^ceph_async__{name}(\{{.*\}})? \d+$", text, re.M), \
            name


CACHE_FAMILIES = {
    f"ceph_async__read_cache_{name}" for name in (
        "fills_dropped_total", "invalidations_total", "bypasses_total",
        "evictions_total", "evicted_bytes_total",
        "revalidations_refused_total")}


def test_both_outputs_tell_of_the_read_cache(counted, record):
    """A file that fits, read over and over by one client alone."""
    nfsload("--count", "1")
    # A version is cached 2 s after its last change.
    time.sleep(SETTLE_S)
    log = Log(LOGS / "ganesha-a.log")
    before = outputs.read_cache()
    load = nfsload("--mix", "read=100", "--connections", "2", "--depth", "4",
                   "--seconds", "4")
    time.sleep(SETTLE_S)
    now = outputs.read_cache()
    record(f"{load['sent']} READs; the read cache {dict(now)}")
    assert now["budget_bytes"] == CACHE_BYTES
    assert 0 < now["data_bytes"] <= now["used_bytes"] <= CACHE_BYTES
    hits = now["hits"] - before["hits"]
    assert hits > load["sent"] / 10
    assert hits + now["misses"] - before["misses"] <= load["sent"]
    assert now["hit_bytes"] - before["hit_bytes"] == hits * BLOCK
    assert now["fills"] > 0
    # In the log what came since a line.
    assert outputs.log_numbers(log)["read_cache_hits_total"] == hits
    assert outputs.families(outputs.scrape()).keys() >= CACHE_FAMILIES


def known(counted):
    """Every name that a query may use."""
    names = set()
    for name, kind in outputs.families(outputs.scrape()).items():
        names |= {f"{name}_bucket", f"{name}_sum", f"{name}_count"} \
            if kind == "histogram" else {name}
    assert len(names) > 20
    return names


def test_alert_rules_are_valid_and_of_metrics_that_are(counted):
    rules = MONITORING / "alerts.yml"
    said, good = outputs.promtool("check", "rules", rules)
    assert good, said
    used = set(NAME.findall(rules.read_text()))
    assert used and used <= known(counted), used - known(counted)


# Four exports: one loses its session for good, one keeps it, one was removed,
# one reconnects within a minute.  A fifth has errors of READs only.
SESSIONS = """
rule_files: [RULES]
tests:
  - interval: 1m
    input_series:
      - series: ceph_async__session_state{instance="g",export="1",client="c"}
        values: 1 1 2 2 2
      - series: ceph_async__session_state{instance="g",export="2",client="c"}
        values: 1 1 1 1 1
      - series: ceph_async__session_state{instance="g",export="3",client="c"}
        values: 1 1 0 0 0
      - series: ceph_async__session_state{instance="g",export="5",client="d"}
        values: 1 2 1 2 1
      - series: >-
          ceph_async__errors_total{instance="g",export="4",op="read",class="session"}
        values: 0 0 9 9 9
    alert_rule_test:
      - eval_time: 1m
        alertname: CephAsyncSessionLost
      - eval_time: 2m
        alertname: CephAsyncSessionLost
      - eval_time: 3m
        alertname: CephAsyncSessionLost
        exp_alerts: &lost
          - exp_labels: {severity: critical, instance: g, export: 1, client: c}
            exp_annotations:
              summary: "g export 1: WORDS"
              description: "WHY"
              runbook_url: "https://fsal-ceph-async.example/docs/runbook.html#cephasyncsessionlost"
      - eval_time: 4m
        alertname: CephAsyncSessionLost
        exp_alerts: *lost
      - eval_time: 4m
        alertname: CephAsyncErrors
        exp_alerts:
          - exp_labels: {severity: critical, instance: g, export: 4}
            exp_annotations:
              summary: "g export 4: I/O errors are given to clients"
              runbook_url: "https://fsal-ceph-async.example/docs/runbook.html#cephasyncerrors"
"""

# Two exports of one mount, which reconnects at 20 min for the first time, and
# a mount that had reconnected twice, and does so again at 40 min.
RECONNECTS = """
rule_files: [RULES]
tests:
  - interval: 1m
    input_series:
      - series: ceph_async__METRIC{instance="g",export="1",client="c"}
        values: 0x20 1x40
      - series: ceph_async__METRIC{instance="g",export="2",client="c"}
        values: 0x20 1x40
      - series: ceph_async__METRIC{instance="g",export="3",client="d"}
        values: 2x40 3x20
    alert_rule_test:
      - eval_time: 19m
        alertname: ALERT
      - eval_time: 21m
        alertname: ALERT
        exp_alerts:
          - exp_labels: {severity: SEVERITY, instance: g, client: c}
            exp_annotations:
              summary: "g c: SUMMARY"
              description: "DESCRIPTION"
              runbook_url: "https://fsal-ceph-async.example/docs/runbook.html#PAGE"
      - eval_time: 39m
        alertname: ALERT
      - eval_time: 42m
        alertname: ALERT
        exp_alerts:
          - exp_labels: {severity: SEVERITY, instance: g, client: d}
            exp_annotations:
              summary: "g d: SUMMARY"
              description: "DESCRIPTION"
              runbook_url: "https://fsal-ceph-async.example/docs/runbook.html#PAGE"
      - eval_time: 58m
        alertname: ALERT
"""


def evaluated(file, text, **words):
    """By promtool's own evaluation of the rules."""
    for word, value in words.items():
        text = text.replace(word, value)
    file.write_text(text)
    said, good = outputs.promtool("test", "rules", file)
    assert good, said


def test_alert_of_a_lost_session(tmp_path):
    """After a minute: a quick reconnect fires nothing."""
    evaluated(
        tmp_path / "sessions.yml", SESSIONS,
        RULES=str(MONITORING / "alerts.yml"),
        WORDS="its CephFS session is gone (evicted, blocklisted)",
        WHY="The plugin has no new CephFS client yet, or Reconnect is false, "
            "or Reconnect_Timeout is over. See Ganesha's log.")


@pytest.mark.parametrize("alert, severity, metric, summary, description", [
    ("CephAsyncReconnected", "warning", "reconnects",
     "the CephFS session was lost, a new client took its place",
     "Find out why: ceph osd blocklist ls, the log of the MDS."),
    ("CephAsyncLocksLost", "critical", "locks_lost",
     "byte-range locks could not be taken again after a reconnect",
     "Another client of CephFS may have changed the locked files.")])
def test_alert_of_a_reconnect(tmp_path, alert, severity, metric, summary,
                              description):
    """For a quarter of an hour, once for a mount, also of the first one."""
    evaluated(
        tmp_path / "reconnects.yml", RECONNECTS,
        RULES=str(MONITORING / "alerts.yml"), METRIC=metric, ALERT=alert,
        PAGE=alert.lower(),
        SEVERITY=severity, SUMMARY=summary, DESCRIPTION=description)


def test_dashboard_is_of_metrics_that_are(counted):
    dashboard = json.loads(
        (MONITORING / "grafana-dashboard.json").read_text())
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    queries = [target["expr"] for panel in panels
               for target in panel.get("targets", ())]
    queries += [variable["query"] for variable in
                dashboard["templating"]["list"]]
    used = set(NAME.findall("\n".join(queries)))
    assert used <= known(counted), used - known(counted)
    for query in queries:
        if "ceph_async__" not in query or query.startswith("label_values"):
            continue
        for old, new in (("$__rate_interval", "1m"), ("$instance", ".*"),
                         ("$export", ".*")):
            query = query.replace(old, new)
        said, good = outputs.promtool("--experimental", "promql", "format",
                                      query)
        assert good, f"{query}: {said}"


def test_every_metric_is_documented(counted):
    text = (SOURCE / "docs" / "metrics.md").read_text()
    for name in outputs.families(outputs.scrape()):
        assert f"`{name.removeprefix('ceph_async__')}" in text, name
