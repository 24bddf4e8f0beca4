# SPDX-License-Identifier: LGPL-3.0-or-later
"""Hand-over to Ceph's own vstart.sh where CEPH_BUILD_DIR names its tree."""
from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

from . import cluster
from .util import LabError, run, save, say


def build_dir() -> Path | None:
    """The build tree that the caller named; an unusable one is an error."""
    named = os.environ.get("CEPH_BUILD_DIR")
    if not named:
        return None
    build = Path(named).resolve()
    if not (build.parent / "src" / "vstart.sh").exists():
        raise LabError(f"CEPH_BUILD_DIR={named}: no ../src/vstart.sh beside "
                       "it; name the build folder of a Ceph source tree, or "
                       "unset it for the installed packages")
    return build


def start(build: Path, store: str, counts: dict[str, int]) -> None:
    """Run it as people do, and let every tool find its ceph.conf."""
    env = {**os.environ, **{key: str(n) for key, n in counts.items()}}
    say(f"handing over to {build.parent}/src/vstart.sh")
    done = subprocess.run(["../src/vstart.sh", "-n", "-d", f"--{store}"],
                          cwd=build, env=env, stdin=subprocess.DEVNULL,
                          timeout=600, check=False)
    if done.returncode:
        raise LabError(f"vstart.sh failed (status {done.returncode})")
    conf = build / "ceph.conf"
    if not conf.exists():
        raise LabError(f"vstart.sh left no {conf}")
    cluster.CONF.parent.mkdir(exist_ok=True)
    cluster.CONF.unlink(missing_ok=True)
    cluster.CONF.symlink_to(conf)
    now: dict[str, Any] = {
        "store": store, "osds": counts["OSD"], "mds": counts["MDS"],
        "mgr": counts["MGR"], "mons": counts["MON"],
        "auth": "cephx", "build_dir": str(build),
        "addr": cluster.address()}
    save(cluster.STATEFILE, now)


def stop(build: Path) -> None:
    run(["sh", "-c", 'cd "$1" && ../src/stop.sh', "sh", str(build)],
        timeout=120)
