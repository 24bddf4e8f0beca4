# SPDX-License-Identifier: LGPL-3.0-or-later
"""The metrics of Ganesha "a": what Prometheus and the log show."""
import re
import subprocess
import time
import urllib.request
from collections import Counter
from pathlib import Path

# Where a Ganesha has no endpoint, the lab sets Metrics_File.
LAB = Path("/var/lib/casync-lab/ganesha")
# A version is cached 2 s after its last change (io/read_cache.h).
SETTLED_S = 2.2
# The plugin updates Prometheus once a second; its watchdog looks ten times a
# second whether it is time.
UPDATE_S = 1.5
SERIES = re.compile(r'^(\w+)(?:\{(.*)\})? (\S+)$')
LINE = re.compile(r"export \d+: \d+ s: (.*)")
# Of a family of the line: values of labels, and the number; of a histogram the
# number of its samples.
SAMPLE = re.compile(r"((?:[a-z_]+ )*)(\d+)(?: mean \d+ p99 \d+)?")


def scrape(name="a", monitoring=9587):
    """What Prometheus would get of a Ganesha, as text."""
    file = LAB / name / "ceph_async.prom"
    if file.exists():
        return file.read_text()
    with urllib.request.urlopen(f"http://127.0.0.1:{monitoring}/metrics",
                                timeout=10) as answer:
        return answer.read().decode()


def families(text):
    """Name → type, of ours."""
    return dict(re.findall(r"^# TYPE (ceph_async__\w+) (\w+)$", text, re.M))


def prometheus(name, **labels):
    """The sum of the series that have these labels."""
    total = 0.0
    for line in scrape().splitlines():
        match = SERIES.match(line)
        if match and match[1] == f"ceph_async__{name}":
            found = dict(re.findall(r'(\w+)="([^"]*)"', match[2] or ""))
            if labels.items() <= found.items():
                total += float(match[3])
    return total


def wait_for_update():
    """Until Prometheus has what was counted so far."""
    time.sleep(UPDATE_S)


def read_cache():
    """The read cache's numbers, up to date, without "_total"; those of one
    cause are "fills_dropped write".  What is 0 may be left out."""
    wait_for_update()
    prefix = "ceph_async__read_cache_"
    found = Counter()
    for line in scrape().splitlines():
        match = SERIES.match(line)
        if match and match[1].startswith(prefix):
            name = match[1].removeprefix(prefix).removesuffix("_total")
            cause = re.search(r'cause="(\w+)"', match[2] or "")
            found[f"{name} {cause[1]}" if cause else name] = float(match[3])
    return found


class CacheCounts:
    """What the read cache has counted since this was made."""

    def __init__(self):
        self.before = read_cache()

    def since(self, *names):
        now = read_cache()
        # Of each name Ganesha shows at least one series.
        assert {name.split()[0] for name in names} <= {
            key.split()[0] for key in now}
        return tuple(now[name] - self.before[name] for name in names)


def wait_for_cache_bytes(wanted):
    """Until a reload has set them."""
    deadline = time.monotonic() + 15
    while prometheus("read_cache_budget_bytes") != wanted:
        assert time.monotonic() < deadline, f"Cache_Bytes is not {wanted}"
        time.sleep(0.1)


def log_numbers(log):
    """"bytes_total read" → the sum of all lines in a log; and "lines"."""
    total = Counter()
    for line in log.matching(LINE.pattern):
        total["lines"] += 1
        for family in LINE.search(line)[1].split("; "):
            name, samples = family.split(" ", 1)
            for sample in samples.split(", "):
                labels, number = SAMPLE.fullmatch(sample).groups()
                total[f"{name} {labels}".rstrip()] += int(number)
    return total


def promtool(*args, text=None):
    """Prometheus' own tool; its output, and whether it was content."""
    done = subprocess.run(["promtool", *map(str, args)], input=text, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=60, check=False)
    return done.stdout, done.returncode == 0
