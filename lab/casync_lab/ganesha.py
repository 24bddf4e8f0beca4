# SPDX-License-Identifier: LGPL-3.0-or-later
"""ganesha.nfsd instances: start, ready check, stop, what became of them.

An instance is a name ("a" is the one on the standard ports) and a spec
that stays between commands, so `restart` keeps whatever is not given anew:
same Export_Id, same recovery directory, hence clients keep their mounts.
"""
from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from . import asok, cluster, conf
from .util import (LOGS, STATE, LabError, alive, end_pid, load, pid_of, run,
                   save, say, spawn, stop_pid, wait_until)

DIR = STATE / "ganesha"

DEFAULTS: dict[str, Any] = {
    "fsal": "CEPH_ASYNC", "port": 2049, "pseudo": "/ceph", "export": [],
    "block": [], "core": [], "nfsv4": [], "export_block": [], "append": [],
    "conf": None, "log_level": "NIV_EVENT", "wrapper": "", "faults": False,
    "fresh": False,
}


def names() -> list[str]:
    """Every instance that was ever started in this lab."""
    return sorted(path.parent.name for path in DIR.glob("*/spec.json"))


def spec_of(name: str) -> dict[str, Any]:
    spec = load(DIR / name / "spec.json")
    if not spec:
        raise LabError(f"no Ganesha named {name}: `lab ganesha start "
                       f"--name {name}`; there are: "
                       f"{', '.join(names()) or 'none'}")
    return spec


def pid(name: str) -> int | None:
    return pid_of(DIR / name / "pid", "ganesha.nfsd")


def log_path(name: str) -> Path:
    return LOGS / f"ganesha-{name}.log"


def out_path(name: str) -> Path:
    """Where the process' own output goes: libraries' complaints."""
    return LOGS / f"ganesha-{name}.out"


def update_spec(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """What is stored, overlaid with what the caller gave (not None).

    Another FSAL has other keys: without new ones, the old ones go.  A fresh
    one keeps its export's number alone, which file handles contain.
    """
    old = load(DIR / name / "spec.json")
    if given.get("fresh"):
        old = {key: old[key] for key in ("export_id",) if key in (old or {})}
    spec = {**DEFAULTS, **(old or {})}
    given = {key: value for key, value in given.items() if value is not None}
    if given.get("fsal", spec["fsal"]) != spec["fsal"]:
        spec["export"], spec["block"] = [], []
    spec.update(given)
    spec["name"] = name
    if not re.fullmatch(r"[A-Za-z][\w-]{0,30}", name):
        raise LabError(f"name '{name}': letters, digits, - and _ only")
    if spec["fsal"] not in conf.FSALS:
        raise LabError(f"--fsal {spec['fsal']}: one of "
                       f"{', '.join(conf.FSALS)}")
    if not spec["pseudo"].startswith("/"):
        raise LabError(f"--pseudo {spec['pseudo']}: must begin with /")
    if "export_id" not in spec:
        # The tests' second one has the same whoever came before it.
        taken = [spec_of(other)["export_id"] for other in names()]
        spec["export_id"] = {"a": 1, "b": 2}.get(name, max(taken + [2]) + 1)
    for other in names():
        near = abs(spec_of(other)["port"] - spec["port"])
        elsewhere = spec_of(other)["wrapper"] != spec["wrapper"]
        if other != name and near < 5 and pid(other) and not elsewhere:
            raise LabError(f"--port {spec['port']}: too near to "
                           f"{spec_of(other)['port']} of Ganesha {other} "
                           "(each takes 5 ports)")
    return spec


def write_conf(spec: dict[str, Any]) -> Path:
    """The instance's ganesha.conf, or the caller's in its stead."""
    mine = DIR / spec["name"]
    (mine / "recovery").mkdir(parents=True, exist_ok=True)
    path = mine / "ganesha.conf"
    if spec["conf"]:
        try:
            shutil.copyfile(spec["conf"], path)
        except OSError as err:
            raise LabError(f"--conf {spec['conf']}: {err.strerror}") from None
    else:
        path.write_text(conf.render(spec, mine))
    return path


def start(name: str, given: dict[str, Any], timeout: float = 60,
          wait: bool = True) -> None:
    """Start one instance and return when a mount of it answers."""
    if pid(name):
        raise LabError(f"Ganesha {name} runs already (pid {pid(name)}): "
                       "`lab ganesha restart` or `stop`")
    spec = update_spec(name, given)
    path = write_conf(spec)
    save(DIR / name / "spec.json", spec)
    offset = {path: path.stat().st_size if path.exists() else 0
              for path in (log_path(name), out_path(name))}
    say(f"ganesha {name}: {spec['fsal']} on port {spec['port']}, "
        f"pseudo root {spec['pseudo']}")
    _launch(name, spec, path)
    if wait:
        _wait_ready(name, spec, offset, timeout)


def _launch(name: str, spec: dict[str, Any], path: Path) -> None:
    """The process; all but "a" get a portmapper and host name of their own.

    Ganesha unregisters its RPC programs at start and end, whoever had
    registered them: beside "a" that would take away a's NFSv3.  And its
    CephFS session is identified by the host's name: a second one of the
    same name has the first one's session reset.
    """
    daemon = ["ganesha.nfsd", "-F", "-f", str(path), "-L",
              str(log_path(name)), "-N", spec["log_level"],
              "-p", str(DIR / name / "ganesha.pid")]
    if spec["wrapper"]:
        daemon = spec["wrapper"].split() + daemon
    env = None
    if spec["faults"]:
        env = {**os.environ, "CASYNC_FAULTS_DIR": str(_faults_dir(name))}
    if name != "a":
        _stop_portmapper(name)      # of a Ganesha that was killed by others
        run_dir = DIR / name / "run"
        (run_dir / "dbus").mkdir(parents=True, exist_ok=True)
        script = ('set -e; hostname "$1"; mount --bind /run/dbus "$2/dbus"; '
                  'mount --rbind "$2" /run; cd /; rpcbind -h 127.0.0.9; '
                  'shift 2; exec "$@"')
        daemon = ["unshare", "--mount", "--uts", "sh", "-c", script, "sh",
                  f"{os.uname().nodename}-{name}", str(run_dir), *daemon]
    proc = spawn(daemon, out_path(name), env=env)
    (DIR / name / "pid").write_text(f"{proc.pid}\n")


def _faults_dir(name: str) -> Path:
    """Where the shim finds its rules (none at first) and keeps its events."""
    if not (conf.FAULTS / "libfsalceph_async.so").exists():
        raise LabError(f"--faults: no plugin in {conf.FAULTS}: `cmake "
                       "--install /build/plugin --component faults`")
    where = DIR / name / "faults"
    where.mkdir(parents=True, exist_ok=True)
    (where / "rules").unlink(missing_ok=True)
    return where


def answers(spec: dict[str, Any]) -> str | None:
    """None when the pseudo root can be listed, else libnfs' complaint."""
    url = (f"nfs://127.0.0.1{spec['pseudo']}?version=4"
           f"&nfsport={spec['port']}")
    try:
        done = run(["timeout", "5", "nfs-ls", url], timeout=8, check=False)
    except LabError as err:
        return str(err)
    if done.returncode:
        return (done.stderr or done.stdout).strip() or "no answer in 5 s"
    return None


def _wait_ready(name: str, spec: dict[str, Any], offset: dict[Path, int],
                timeout: float) -> None:
    """Until the export answers; death and refusal are told at once."""
    initialized: list[float] = []
    complaint: list[str] = [""]

    def report(what: str) -> LabError:
        return LabError(f"ganesha {name}: {what}; end of "
                        f"{log_path(name)}:\n{_relevant(name, offset)}")

    # Not pid(name): until its shell has come to the exec it has another name.
    started = int((DIR / name / "pid").read_text())

    def probe() -> bool:
        if not alive(started):
            raise report("it ended at start")
        text = _since(log_path(name), offset)
        if "NFS SERVER INITIALIZED" not in text:
            return False
        if not initialized:
            initialized.append(time.monotonic())
        complaint[0] = answers(spec) or ""
        if not complaint[0]:
            return True
        if time.monotonic() - initialized[0] > 3 and \
                re.search(r"NOENT|NOT_FOUND|mount.*denied|ACCES",
                          complaint[0]):
            raise report(f"it runs, but {spec['pseudo']} is not exported "
                         f"({complaint[0]})")
        return False

    try:
        wait_until(probe, f"mount of {spec['pseudo']}", timeout, every=0.05)
    except LabError as err:
        if "nothing within" not in str(err):
            raise
        where = stacks(name)
        raise report(f"no mount within {timeout:g} s {complaint[0]}; stacks "
                     f"and what its CephFS clients wait for: "
                     f"{where}") from None
    say(f"ganesha {name}: {spec['pseudo']} answers (pid {pid(name)})")


def wait_initialized(name: str, start_at: int, timeout: float) -> None:
    """Until its log, from byte START_AT on, says that it serves."""
    path = log_path(name)
    offset = {path: start_at, out_path(name): 0}
    started = int((DIR / name / "pid").read_text())

    def probe() -> bool:
        if not alive(started):
            raise LabError(f"ganesha {name}: it ended at start; end of "
                           f"{path}:\n{_relevant(name, offset)}")
        return "NFS SERVER INITIALIZED" in _since(path, offset)
    wait_until(probe, f"ganesha {name} to serve", timeout, every=0.05)
    say(f"ganesha {name} serves (pid {pid(name)})")


def _since(path: Path, offset: dict[Path, int]) -> str:
    """What a log got since the start that we watch."""
    try:
        with open(path, "rb") as log:
            log.seek(offset[path])
            return log.read().decode("utf-8", "replace")
    except OSError:
        return ""


def _relevant(name: str, offset: dict[Path, int]) -> str:
    """The lines that say why; where there are none, simply the last ones."""
    lines = _since(log_path(name), offset).splitlines()
    bad = [line for line in lines
           if re.search(r":(CRIT|FATAL|MAJ)\b", line)
           and "gss_principal_init" not in line][-12:]
    rest = _since(out_path(name), offset).splitlines()[-5:]
    return "\n".join((bad or lines[-20:]) + rest)


def stop(name: str, timeout: float = 60) -> None:
    """An orderly end; when it hangs, its stacks are kept first."""
    spec_of(name)
    victim = pid(name)
    if not victim:
        say(f"ganesha {name} is not running")
        return
    begin = time.monotonic()
    if not stop_pid(victim, signal.SIGTERM, timeout):
        where = stacks(name)
        end_pid(victim, f"ganesha {name}", signal.SIGKILL, 10)
        _stop_portmapper(name)
        raise LabError(f"ganesha {name} did not end within {timeout:g} s "
                       f"and was killed; its stacks are in {where}")
    _stop_portmapper(name)
    say(f"ganesha {name} stopped in {time.monotonic() - begin:.1f} s")


def kill9(name: str) -> None:
    """SIGKILL: what a power cut is to the daemon."""
    spec_of(name)
    victim = pid(name)
    if not victim:
        raise LabError(f"ganesha {name} is not running")
    end_pid(victim, f"ganesha {name}", signal.SIGKILL, 15)
    _stop_portmapper(name)
    say(f"ganesha {name} killed")


def _stop_portmapper(name: str) -> None:
    """End the instance's own rpcbind: the one that shares its /run."""
    if name == "a":
        return
    mark = str(DIR / name / "run")
    for proc in Path("/proc").iterdir():
        try:
            if proc.name.isdigit() and \
                    (proc / "comm").read_text() == "rpcbind\n" and \
                    mark in (proc / "mountinfo").read_text():
                end_pid(int(proc.name), f"rpcbind of ganesha {name}",
                        timeout=5)
        except OSError:
            continue


def stacks(name: str) -> Path:
    """All threads' stacks by gdb, and what its CephFS clients wait for, into a
    file."""
    where = LOGS / f"ganesha-{name}-stacks-{time.strftime('%H%M%S')}.txt"
    with open(where, "w", encoding="utf-8") as out:
        try:
            subprocess.run(
                ["gdb", "-p", str(pid(name)), "-batch", "-nx",
                 "-ex", "set debuginfod enabled off",
                 "-ex", "thread apply all bt"],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                timeout=120, check=False)
        except subprocess.TimeoutExpired:
            out.write("\ngdb did not finish within 120 s\n")
        for path in sorted(cluster.RUN.glob(f"client.*.{pid(name)}.*.asok")):
            out.writelines(
                f"\n{path.name} {what}: {_said(path, what)}\n" for what in
                ("mds_sessions", "mds_requests", "objecter_requests"))
    return where


def _said(path: Path, what: str) -> str:
    try:
        return json.dumps(asok.ask(path, what), indent=1)
    except LabError as err:
        return str(err)


def reload(name: str) -> None:
    """SIGHUP: exports are read again from a freshly written file."""
    victim = pid(name)
    if not victim:
        raise LabError(f"ganesha {name} is not running")
    path = log_path(name)
    offset = {path: path.stat().st_size if path.exists() else 0}
    os.kill(victim, signal.SIGHUP)
    # While it starts, Ganesha does not listen to signals.
    wait_until(lambda: "Received SIGHUP" in _since(path, offset) or
               not alive(victim), f"ganesha {name} to hear of it", 20,
               every=0.02)
    say(f"ganesha {name}: reads its configuration again")


def down() -> None:
    """All instances, quickly: their state goes anyway."""
    for name in names():
        victim = pid(name)
        if victim and not stop_pid(victim, signal.SIGTERM, 10):
            say(f"ganesha {name} does not end; killing it, stacks in "
                f"{stacks(name)}")
            end_pid(victim, f"ganesha {name}", signal.SIGKILL, 10)
        _stop_portmapper(name)
    shutil.rmtree(DIR, ignore_errors=True)
