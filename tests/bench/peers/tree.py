# SPDX-License-Identifier: LGPL-3.0-or-later
"""Many small files: an archive and a git repository, made once."""
from __future__ import annotations

import random
import re
import subprocess
from pathlib import Path

# Shell: the time, and the requests so far and how long they took.
TELL = r"""
tell() {
    echo "step $1 $(date +%s.%N)"
    sed -n '/ mounted on .mnt.nfs with /,/ mounted on /p' /proc/self/mountstats
}
"""
SOURCES = Path("/var/tmp/peers-sources")    # the kernel client's root has it


def make_sources(count: int) -> None:
    """COUNT files of 0.1 to 16 KiB in folders of 50; the same every time."""
    if (SOURCES / f"done-{count}").exists():
        return
    subprocess.run(["rm", "-rf", str(SOURCES)], check=True, timeout=60)
    work = SOURCES / "work"
    chance = random.Random(7)
    for number in range(count):
        path = work / f"d{number // 50:03}" / f"f{number:05}.c"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(chance.randbytes(chance.randrange(100, 16384)))
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org",
           "-c", "gc.auto=0", "-C", str(work)]
    folders = sorted(path.name for path in work.iterdir())
    for words in (*(["tar", "-cf", str(SOURCES / f"{name}.tar"), "-C",
                     str(work), name] for name in folders),
                  ["tar", "-cf", str(SOURCES / "files.tar"), "-C",
                   str(work), "."],
                  [*git, "init", "-q"], [*git, "add", "."],
                  [*git, "commit", "-q", "-m", "all"]):
        subprocess.run(words, check=True, stdin=subprocess.DEVNULL,
                       timeout=120)
    (SOURCES / f"done-{count}").touch()


def _steps(processes: int) -> dict[str, str]:
    """Shell commands, in the new folder."""
    if processes == 1:
        return {"untar": f"tar -xf {SOURCES}/files.tar -C tar",
                "copy": f"cp -a {SOURCES}/work/d* copy",
                "checkout": "git -C git checkout -q -f",
                "remove": "rm -rf tar"}
    side_by_side = f"xargs -P {processes} -I {{}}"
    return {"untar": f"ls {SOURCES}/d*.tar | {side_by_side} "
                     "tar -xf {} -C tar",
            "copy": f"ls -d {SOURCES}/work/d* | {side_by_side} "
                    "cp -a {} copy",
            "checkout": f"git -C git -c checkout.workers={processes} "
                        "-c checkout.thresholdForParallelism=0 checkout -q -f",
            "remove": f"ls -d tar/d* | {side_by_side} rm -rf {{}}"}


def script(where: str, processes: int = 1) -> str:
    """Shell that tells the time and the requests so far before and after each
    step; what it wrote is on disk then."""
    steps = "".join(f"""
tell {name}
{command}
sync -f .
tell end
""" for name, command in _steps(processes).items())
    return f"""
set -e
{TELL}
export HOME=/tmp GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory
export GIT_CONFIG_VALUE_0='*'
mkdir -p {where}/tar {where}/copy
cd {where}
git clone -q -n {SOURCES}/work git
sync -f .
{steps}
cd /
rm -rf {where}
"""


def rates(out: str, count: int) -> dict[str, float]:
    """Of each step of the script: files a second; and of each kind of request
    how many a file took, and how many milliseconds of a file's time."""
    figures = {}
    told = [_told(part) for part in out.split("step ")[1:]]
    for (step, begun, before), (_, ended, after) in zip(told[::2], told[1::2]):
        figures[f"{step}_per_s"] = count / (ended - begun)
        for kind, (requests, ms) in after.items():
            requests -= before[kind][0]
            if requests >= count / 20:
                figures[f"{step}_{kind}"] = requests / count
                figures[f"{step}_{kind}_ms"] = \
                    (ms - before[kind][1]) / count
    return figures


# The name of a request, its number, and the milliseconds until their answers.
REQUESTS = re.compile(r"^\s+([A-Z_]+): (\d+)(?: \d+){5} (\d+)", re.M)


def _told(part: str) -> tuple[str, float, dict[str, tuple[int, int]]]:
    step, when = part.split("\n", 1)[0].split()
    return step, float(when), {
        kind.lower(): (int(requests), int(ms))
        for kind, requests, ms in REQUESTS.findall(part)}
