# SPDX-License-Identifier: LGPL-3.0-or-later
"""What Ganesha wants from a host: message bus, portmapper, lock status."""
from __future__ import annotations

from pathlib import Path

from .util import LOGS, STATE, end_pid, pid_of, run, spawn, wait_until

POLICY = Path("/etc/dbus-1/system.d/casync-lab.conf")
POLICY_TEXT = """\
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<!-- Written by lab: a second Ganesha owns a prefixed name. -->
<busconfig>
  <policy user="root">
    <allow own="*"/>
    <allow send_destination="*"/>
  </policy>
</busconfig>
"""
PIDS = STATE / "services"


def up() -> None:
    """Start what is not running yet."""
    PIDS.mkdir(parents=True, exist_ok=True)
    LOGS.mkdir(parents=True, exist_ok=True)
    _start("dbus-daemon", ["dbus-daemon", "--system", "--nofork",
                           "--nopidfile"], _prepare_dbus)
    _start("rpcbind", ["rpcbind", "-w", "-f"])
    wait_until(Path("/run/rpcbind.sock").exists, "rpcbind's socket", 10)
    wait_until(Path("/run/dbus/system_bus_socket").exists,
               "the message bus' socket", 10)
    _start("rpc.statd", ["rpc.statd", "-F", "--no-notify"])


def _prepare_dbus() -> None:
    Path("/run/dbus").mkdir(parents=True, exist_ok=True)
    Path("/run/dbus/system_bus_socket").unlink(missing_ok=True)
    Path("/run/dbus/pid").unlink(missing_ok=True)
    POLICY.parent.mkdir(parents=True, exist_ok=True)
    POLICY.write_text(POLICY_TEXT)
    run(["dbus-uuidgen", "--ensure"], check=False)


def _start(name: str, cmd: list[str], prepare=lambda: None) -> None:
    pidfile = PIDS / name
    if pid_of(pidfile, name):
        return
    prepare()
    proc = spawn(cmd, LOGS / f"{name}.out")
    pidfile.write_text(f"{proc.pid}\n")


def down() -> None:
    for name in ("rpc.statd", "rpcbind", "dbus-daemon"):
        end_pid(pid_of(PIDS / name, name), name, timeout=5)
