# SPDX-License-Identifier: LGPL-3.0-or-later
"""Many small files: an archive and a git repository, made once."""
from __future__ import annotations

import random
import subprocess
from pathlib import Path

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


def _steps(processes: int) -> tuple[str, str, str]:
    """untar, checkout, remove: shell commands, in the new folder."""
    if processes == 1:
        return (f"tar -xf {SOURCES}/files.tar -C tar",
                "git -C git checkout -q -f", "rm -rf tar")
    side_by_side = f"xargs -P {processes} -I {{}}"
    return (f"ls {SOURCES}/d*.tar | {side_by_side} tar -xf {{}} -C tar",
            f"git -C git -c checkout.workers={processes} "
            "-c checkout.thresholdForParallelism=0 checkout -q -f",
            f"ls -d tar/d* | {side_by_side} rm -rf {{}}")


def script(where: str, processes: int = 1) -> str:
    """Shell that ends with five times; what was written is on disk then."""
    untar, checkout, remove = _steps(processes)
    return f"""
set -e
export HOME=/tmp GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory
export GIT_CONFIG_VALUE_0='*'
mkdir -p {where}/tar
cd {where}
a=$(date +%s.%N)
{untar}
sync -f .
b=$(date +%s.%N)
git clone -q -n {SOURCES}/work git
sync -f .
c=$(date +%s.%N)
{checkout}
sync -f .
d=$(date +%s.%N)
{remove}
e=$(date +%s.%N)
cd /
rm -rf {where}
echo $a $b $c $d $e
"""


def rates(out: str, count: int) -> dict[str, float]:
    """Files a second, from the script's last line."""
    begun, untarred, cloned, checked_out, removed = map(
        float, out.strip().splitlines()[-1].split())
    return {"untar_per_s": count / (untarred - begun),
            "checkout_per_s": count / (checked_out - cloned),
            "remove_per_s": count / (removed - checked_out)}
