# SPDX-License-Identifier: LGPL-3.0-or-later
"""What a cephx user needs for all exports of the file that are its.

`ceph auth caps` takes all else away: a command for one export alone would take
the user's other exports from their clients.
"""
import re
import shlex

from .config import export_name
from .exports import access_types


def root(export, values):
    return values["Cmount_Path"] or export.get("Path", "/")


def writes(config, export):
    own, others = access_types(config, export)
    return not {own, *others} <= {"RO", "MDONLY_RO", "NONE"}


def sets_layout(values):
    return bool(values["Object_Size"] or values["Data_Pool"])


def _needs(config, user, preset):
    """{file system: {root: letters}}; PRESET is the default one's name."""
    needs = {}
    for export, values in config.our_exports():
        if (values["User_Id"] or "admin") == user:
            letters = ("rw" if writes(config, export) else "r") + \
                "p" * sets_layout(values)
            roots = needs.setdefault(values["Filesystem"] or preset, {})
            roots.setdefault(root(export, values), set()).update(letters)
    return needs


def _at(path):
    if path == "/":
        return ""
    return f" path={path}" if re.fullmatch(r"[\w/.-]+", path, re.A) else \
        f' path="{path}"'


def _others(config, user):
    """Who else in the file is the user: what it needs is not known here."""
    ours = [export for export, _ in config.our_exports()]
    for export in config.exports():
        fsal = export.block("FSAL")
        if export not in ours and fsal and \
                fsal.get("User_Id", "admin") == user:
            yield export_name(export)
    for block in config.blocks:
        if block.name.upper() in ("RADOS_KV", "RADOS_URLS") and \
                block.get("UserId") == user:
            yield block.name


def grant(config, user, preset):
    """How the user gets what its exports need: a sentence, a command."""
    if user == "admin":     # the command would lock everybody out
        return ("Give the export a User_Id of its own (ceph fs authorize).",
                "")
    others = ", ".join(_others(config, user))
    if others:
        return (f"client.{user} is also the user of {others}: add what it "
                f"lacks to what it has (ceph auth get client.{user}).", "")
    needs = _needs(config, user, preset)
    mds = ", ".join(
        f"allow {''.join(sorted(letters, key='rwp'.index))} fsname={name}"
        f"{_at(path)}" for name, roots in needs.items()
        for path, letters in roots.items())
    mon = ", ".join(f"allow r fsname={name}" for name in needs)
    osd = ", ".join(
        f"allow {'rw' if 'w' in set().union(*roots.values()) else 'r'} "
        f"tag cephfs data={name}" for name, roots in needs.items())
    return ("This gives the user what its exports in this file need, and "
            "takes all other capabilities away:",
            f"ceph auth caps client.{user} mon {shlex.quote(mon)} "
            f"mds {shlex.quote(mds)} osd {shlex.quote(osd)}")
