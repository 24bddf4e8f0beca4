# SPDX-License-Identifier: LGPL-3.0-or-later
"""report.md from raw.json and nothing else; pure."""
from __future__ import annotations

from typing import Any

from peers import figures, targets

# Figure -> (heading, factor, digits).
COLUMNS = {
    "per_s": ("ops/s", 1, 0), "mib_s": ("MiB/s", 1, 0),
    "mean_us": ("latency mean, ms", .001, 2),
    "p50_us": ("p50, ms", .001, 2), "p99_us": ("p99, ms", .001, 2),
    "read_p99_us": ("READ p99, ms", .001, 2),
    "write_p99_us": ("WRITE p99, ms", .001, 2),
    "create_p99_us": ("CREATE p99, ms", .001, 2),
    "getattr_p50_us": ("GETATTR p50, ms", .001, 2),
    "getattr_p99_us": ("GETATTR p99, ms", .001, 2),
    "getattr_corrected_p99_us": ("GETATTR p99 corrected, ms", .001, 2),
    "create_per_s": ("create/s", 1, 0), "stat_per_s": ("stat/s", 1, 0),
    "readdir_per_s": ("readdir/s", 1, 0),
    "rename_per_s": ("rename/s", 1, 0), "unlink_per_s": ("unlink/s", 1, 0),
    "untar_per_s": ("untar, files/s", 1, 0),
    "checkout_per_s": ("git checkout, files/s", 1, 0),
    "copy_per_s": ("cp -a, files/s", 1, 0),
    "remove_per_s": ("rm -rf, files/s", 1, 0),
    "cold_per_s": ("cold, files/s", 1, 0),
    "warm_per_s": ("warm, files/s", 1, 0),
    "cold_read_ms": ("READ, cold, ms a file", 1, 2),
    "warm_read_ms": ("READ, warm, ms a file", 1, 2),
    "build_per_s": ("make, objects/s", 1, 1),
    "cpu_us": ("CPU µs/op", 1, 1), "client_cpu_us": ("client µs/op", 1, 1),
    "client_cpus": ("client CPUs", 1, 2),
    "switches": ("switches/op", 1, 2),
    "journal": ("MDS events/op", 1, 4), "osd_ops": ("OSD ops/op", 1, 3),
    "osd_bytes": ("OSD KiB/op", 1 / 1024, 1),
    "peak_mib": ("peak MiB", 1, 0),
}
COSTS = ("cpu_us", "client_cpu_us", "client_cpus", "switches", "journal",
         "osd_ops", "osd_bytes", "peak_mib")
REFERENCE = "casync"
WORDS = {True: "met", False: "**not met**", None: "not measured"}


def number(value: dict[str, float] | None, factor: float = 1,
           digits: int = 2) -> str:
    """median (min–max)"""
    if not value:
        return "–"
    if value["rounds"] == 1:
        return f"{value['median'] * factor:.{digits}f}"
    return (f"{value['median'] * factor:.{digits}f} "
            f"({value['min'] * factor:.{digits}f}–"
            f"{value['max'] * factor:.{digits}f})")


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    return ["| " + " | ".join(head) + " |", "|---" * len(head) + "|",
            *("| " + " | ".join(row) + " |" for row in rows), ""]


def write(raw: dict[str, Any], old: dict[str, Any] | None = None) -> str:
    lines = ["# Side by side with every peer", "", *_about(raw),
             "## Targets", "", *_targets(raw), ""]
    if old:
        lines += _against(raw, old)
    for scenario in raw["scenarios"]:
        lines += _scenario(raw, scenario)
    return "\n".join(lines + _errors(raw)) + "\n"


def _about(raw: dict[str, Any]) -> list[str]:
    settings = raw["settings"]
    lines = [
        f"Measured {raw['when']} on {raw['machine']}; {raw['versions']}. "
        f"{settings['rounds']} rounds of {settings['seconds']:g} s, the "
        "systems of a case in turns. Figures are medians (least–most); a "
        "ratio is taken round by round and its median is shown. Costs are of "
        "the server's process and the cluster, for each request; `*` marks "
        f"lines where others used more than {figures.DISTURBED_CPUS} CPUs in "
        "half of the rounds or more.", "",
        f"While something was measured others used {raw['others_cpus']:.2f} "
        f"of {raw['cpus']} CPUs.", ""]
    if settings.get("disk"):
        lines += [f"The disk was held to {settings['disk']}.", ""]
    if raw["skipped"]:
        lines += ["**Not complete**, there was no time for: "
                  + ", ".join(raw["skipped"]) + ".", ""]
    used = dict.fromkeys(run["system"] for run in raw["runs"])
    lines += table(["name", "system"],
                   [[f"`{name}`", raw["systems"][name]] for name in used])
    return lines


def _targets(raw: dict[str, Any]) -> list[str]:
    rows = [[one["what"], number(one["value"], digits=3), one["wanted"],
             WORDS[one["met"]]] for one in targets.judge(raw["runs"])]
    return table(["what", "measured", "demanded", ""], rows)[:-1]


def _scenario(raw: dict[str, Any], scenario: dict[str, Any]) -> list[str]:
    if not any(run["scenario"] == scenario["name"] for run in raw["runs"]):
        return []
    lines = [f"## {scenario['name']}", "", scenario["title"] + ".", ""]
    for case in scenario["cases"]:
        lines += _case(raw["runs"], scenario["name"], case)
    return lines


def _case(runs: list[figures.Run], scenario: str,
          case: dict[str, Any]) -> list[str]:
    shown = [figure for figure in (*case["show"], *COSTS)
             if any(figures.of(runs, (scenario, case["name"], system), figure)
                    for system in case["systems"])]
    shown = list(dict.fromkeys(shown))
    first = case["show"][0]
    reference = REFERENCE if REFERENCE in case["systems"] \
        else case["systems"][0]
    rows = []
    for system in case["systems"]:
        key = (scenario, case["name"], system)
        if not figures.of(runs, key, first):
            continue
        star = "*" if figures.disturbed(runs, *key) else ""
        cells = [f"`{system}`{star}"]
        for figure in shown:
            _, factor, digits = COLUMNS[figure]
            value = figures.of(runs, key, figure)
            if value and figure in COSTS:
                value = {**value, "rounds": 1}      # the median will do
            cells.append(number(value, factor, digits))
        cells.insert(2, "1" if system == reference else number(figures.ratio(
            runs, (scenario, case["name"], reference), key, first)))
        rows.append(cells)
    if not rows:
        return []
    head = ["system", *(COLUMNS[figure][0] for figure in shown)]
    head.insert(2, f"`{reference}` / it")
    return [f"### {case['title']}", "", *table(head, rows)]


def changes(raw: dict[str, Any],
            old: dict[str, Any]) -> list[dict[str, Any]]:
    """Each case by the figure that it is about."""
    shown = {(scenario["name"], case["name"]): case["show"][0]
             for scenario in raw["scenarios"] for case in scenario["cases"]}
    return figures.against(raw["runs"], old["runs"], shown)


def _against(raw: dict[str, Any], old: dict[str, Any]) -> list[str]:
    rows = []
    for line in changes(raw, old):
        name, factor, digits = COLUMNS[line["figure"]]
        rows.append([*line["key"], name,
                     number(line["then"], factor, digits),
                     number(line["now"], factor, digits),
                     f"{line['ratio']:.2f}",
                     "**changed**" if line["apart"] else ""])
    return ["## Against an older run", "",
            f"Then: {old['when']}, {old['machine']}, {old['versions']}, "
            f"{old['settings']['rounds']} rounds of "
            f"{old['settings']['seconds']:g} s. "
            "Absolute figures of two runs differ by 15 % without a reason; "
            "*changed* are those whose ranges have nothing in common.", "",
            *table(["scenario", "case", "system", "figure", "then", "now",
                    "now / then", ""], rows)]


def _errors(raw: dict[str, Any]) -> list[str]:
    if not raw["errors"]:
        return []
    lines = ["## What failed", ""]
    for one in raw["errors"]:
        said = " ".join(one["error"].split())
        lines.append(f"- {one['scenario']} {one['case']} `{one['system']}` "
                     f"round {one['round'] + 1}: … {said[-300:]}")
    return [*lines, ""]
