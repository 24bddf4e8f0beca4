# SPDX-License-Identifier: LGPL-3.0-or-later
"""Each alert of config/monitoring: promtool lets it fire, and lets it rest;
docs/runbook.md says what to do."""
import re
from pathlib import Path

import metrics_outputs as outputs
import pytest
import yaml

TOP = Path(__file__).parents[2]
MONITORING = TOP / "config" / "monitoring"
RULES = {rule["alert"]: rule for group in yaml.safe_load(
    (MONITORING / "alerts.yml").read_text())["groups"]
    for rule in group["rules"]}
RUNBOOK = (TOP / "docs" / "runbook.md").read_text(encoding="utf-8")

# Series without "ceph_async__": the values that fire, minute by minute, and
# values of the same that do not.  {} stands for the labels of an export.
E = '{instance="g",export="1"}'
C = '{instance="g",export="1",client="c"}'
UP = 'up{job="nfs-ganesha",instance="g"}'
CASES = {
    "CephAsyncStuck": ({f"oldest_in_flight_ms{E}": "31000x20"},
                       {f"oldest_in_flight_ms{E}": "29000x20"}),
    "CephAsyncCallStuck": ({f"oldest_call_ms{E}": "31000x20"},
                           {f"oldest_call_ms{E}": "31000 0x20"}),
    "CephAsyncNoProgress": (
        {f"in_flight{E}": "3x20", f"requests_total{E}": "7x20"},
        {f"in_flight{E}": "3x20", f"requests_total{E}": "0+5x20"}),
    "CephAsyncSessionLost": ({f"session_state{C}": "2x20"},
                             {f"session_state{C}": "2 1x20"}),
    "CephAsyncReconnected": ({f"reconnects{C}": "0x10 1x10"},
                             {f"reconnects{C}": "1x20"}),
    "CephAsyncLocksLost": ({f"locks_lost{C}": "0x10 2x10"},
                           {f"locks_lost{C}": "2x20"}),
    "CephAsyncErrors": (
        {f'errors_total{E[:-1]},op="read",class="io"}}': "0+3x20"},
        {f'errors_total{E[:-1]},op="read",class="other"}}': "0+3x20"}),
    "CephAsyncFull": (
        {f'errors_total{E[:-1]},op="write",class="space"}}': "0+3x20"},
        {f'errors_total{E[:-1]},op="write",class="space"}}': "3x20"}),
    "CephAsyncThrottled": ({f"waiting{E}": "9x20"},
                           {f"waiting{E}": "9x2 0x20"}),
    "CephAsyncSlow": ({f"slow_requests_total{E}": "0+1x20"},
                      {f"slow_requests_total{E}": "4x20"}),
    "CephAsyncOursSlow": (
        {f'latency_us_bucket{E[:-1]},stage="handover",le="131072"}}': "0x40",
         f'latency_us_bucket{E[:-1]},stage="handover",le="262144"}}':
             "0+9x40",
         f'latency_us_bucket{E[:-1]},stage="handover",le="+Inf"}}':
             "0+9x40"},
        {f'latency_us_bucket{E[:-1]},stage="handover",le="1024"}}': "0+9x40",
         f'latency_us_bucket{E[:-1]},stage="handover",le="+Inf"}}':
             "0+9x40"}),
    "CephAsyncDuplicate": ({'duplicate_completions_total{instance="g"}':
                            "0x10 1x10"},
                           {'duplicate_completions_total{instance="g"}':
                            "1x20"}),
    "CephAsyncMetricsFileOld": (
        {'node_textfile_mtime_seconds{instance="g",file="/d/ceph_async.prom"}':
         "0x20"},
        {'node_textfile_mtime_seconds{instance="g",file="/d/ceph_async.prom"}':
         "0+60x20"}),
    "CephAsyncDown": ({UP: "0x20"}, {UP: "1x20"}),
    "CephAsyncAbsent": ({f"in_flight{E}": "0x20"}, {UP: "0x20"}),
    # A reload took the last one away; one has lost its session.
    "CephAsyncNoExport": ({UP: "1x20", f"session_state{E}": "0x20"},
                          {UP: "1x20", f"session_state{E}": "2x20"}),
    "CephAsyncReloadRefused": (
        {'last_reload_successful{instance="g"}': "0x20"},
        {'last_reload_successful{instance="g"}': "1x20"}),
    "CephAsyncCapsWithheld": (
        {f"oldest_in_flight_ms{E}": "11000x20",
         f"file_queue_waits_total{E}": "0+2x20"},
        {f"oldest_in_flight_ms{E}": "11000x20",
         f"file_queue_waits_total{E}": "2x20"}),
    "CephAsyncCapsKept": (
        {f"caps_kept_total{E}": "0+9x60"},
        {f"caps_kept_total{E}": "0+9x60",
         f"caps_released_total{E}": "0+9x60"}),
    "CephAsyncForgedHandles": ({f"handles_refused_total{E}": "1x10 2x10"},
                               {f"handles_refused_total{E}": "2x20"}),
}
# Ganesha leaves counters of 0 out: the first value of a series is an event.
FIRST = {
    "CephAsyncErrors": (f'errors_total{E[:-1]},op="read",class="io"}}',
                        f"flush_errors_total{E}"),
    "CephAsyncFull": (f'errors_total{E[:-1]},op="write",class="space"}}',),
    "CephAsyncDuplicate": ('duplicate_completions_total{instance="g"}',),
    "CephAsyncForgedHandles": (f"handles_refused_total{E}",),
}
MINUTES = {"CephAsyncOursSlow": 30, "CephAsyncCapsKept": 45}


def named(series):
    foreign = series.startswith(("up{", "node_"))
    return series if foreign else f"ceph_async__{series}"


def evaluated(file, alert, series, fires, minutes=15):
    """promtool's answer; ALERTS is what Prometheus itself shows of alerts."""
    file.write_text(yaml.safe_dump({
        "rule_files": [str(MONITORING / "alerts.yml")],
        "evaluation_interval": "1m",
        "tests": [{
            "interval": "1m",
            "input_series": [{"series": named(name), "values": values}
                             for name, values in series.items()],
            "promql_expr_test": [{
                "expr": f'count(ALERTS{{alertname="{alert}",'
                        'alertstate="firing"})',
                "eval_time": f"{MINUTES.get(alert, minutes)}m",
                "exp_samples": [{"value": 1}] if fires else []}]}]}))
    return outputs.promtool("test", "rules", file)


@pytest.mark.parametrize("alert", RULES)
def test_it_fires_and_it_rests(tmp_path, alert):
    fires, rests = CASES[alert]
    for series, whether in ((fires, True), (rests, False)):
        said, good = evaluated(tmp_path / "t.yml", alert, series, whether)
        assert good, f"fires: {whether}\n{said}"


@pytest.mark.parametrize("alert, series", [
    (alert, one) for alert, several in FIRST.items() for one in several])
def test_a_first_value_fires(tmp_path, alert, series):
    """Also that of a Ganesha that was started again; and no longer when it is
    an old one, nor after scrapes that failed."""
    for values, whether in (("_x24 3x9", True), ("3x30", False),
                            ("3x3 stale _x20 1x9", True),
                            ("3x3 stale _x20 3x9", False)):
        said, good = evaluated(tmp_path / "t.yml", alert, {series: values},
                               whether, minutes=27)
        assert good, f"{values} fires: {whether}\n{said}"


def test_the_test_can_fail(tmp_path):
    """Each of both ways."""
    fires, rests = CASES["CephAsyncDown"]
    assert not evaluated(tmp_path / "t.yml", "CephAsyncDown", fires, False)[1]
    assert not evaluated(tmp_path / "t.yml", "CephAsyncDown", rests, True)[1]


@pytest.mark.parametrize("alert", RULES)
def test_the_runbook_has_it(alert):
    rule = RULES[alert]
    assert rule["labels"]["severity"] in ("critical", "warning")
    url = rule["annotations"]["runbook_url"]
    assert url == ("https://fsal-ceph-async.example/docs/runbook.html#" +
                   alert.lower())
    section = re.search(rf"^### {alert}\n(.*?)(?=^##)", RUNBOOK,
                        re.M | re.S)
    assert section, alert
    for part in ("**Means**", "**Look**", "**Do**"):
        assert part in section[1], (alert, part)


def test_the_runbook_has_no_other():
    assert set(re.findall(r"^#+ (CephAsync\w+)$", RUNBOOK, re.M)) == \
        set(RULES) == set(CASES)


def test_the_scrape_job_is_valid(tmp_path):
    for name in ("prometheus.yml", "alerts.yml"):
        (tmp_path / name).write_bytes((MONITORING / name).read_bytes())
    said, good = outputs.promtool("check", "config",
                                  tmp_path / "prometheus.yml")
    assert good, said
    job, = yaml.safe_load((MONITORING / "prometheus.yml").read_text()
                          )["scrape_configs"]
    assert f'job="{job["job_name"]}"' in (MONITORING / "alerts.yml").read_text()
