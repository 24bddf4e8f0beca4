# SPDX-License-Identifier: LGPL-3.0-or-later
"""What a cephx user needs for all exports of the file that are its.

`ceph auth caps` takes all else away: a command for one export alone would take
the user's other exports from their clients.
"""
import re

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
    return f" path={path}" if re.fullmatch(r"[\w/.-]+", path) else \
        f' path="{path}"'


def grant(config, user, preset):
    """How the user gets what its exports need: a sentence, a command."""
    if user == "admin":     # the command would lock everybody out
        return ("Give the export a User_Id of its own (ceph fs authorize).",
                "")
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
            f"ceph auth caps client.{user} mon '{mon}' mds '{mds}' "
            f"osd '{osd}'")
