# SPDX-License-Identifier: LGPL-3.0-or-later
"""What a running Ganesha serves, as it says by D-Bus.

A file may be right, and the daemon may not have what is in it: an export that
cannot be mounted at the start is left out, and stays out.
"""
import re

from . import progress

NAME = "org.ganesha.nfsd"
LIMIT_S = 5


def _asked(*words):
    """What dbus-send printed; None without it, or without an answer."""
    try:
        status, out, _ = progress.run(
            ["dbus-send", "--system", "--print-reply", *words],
            "asking ganesha.nfsd by D-Bus", LIMIT_S)
    except OSError:
        return None
    return out if status == 0 else None


def exports_of(pid, prefix):
    """Numbers of the exports that process PID serves, which has PREFIX before
    its name.  None: nobody says, as for one in a container."""
    # Ganesha ignores another prefix.
    name = f"{prefix}.{NAME}" if re.fullmatch(r"\w+", prefix) else NAME
    owner = _asked("--dest=org.freedesktop.DBus", "/", "org.freedesktop.DBus."
                   "GetConnectionUnixProcessID", f"string:{name}")
    if owner is None or not re.search(rf"uint32 {pid}$", owner, re.M):
        return None
    shown = _asked(f"--dest={name}", "/org/ganesha/nfsd/ExportMgr",
                   f"{NAME}.exportmgr.ShowExports")
    if shown is None:
        return None
    return {int(number) for number in
            re.findall(r"^\s*uint16 (\d+)$", shown, re.M)}
