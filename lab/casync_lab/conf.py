# SPDX-License-Identifier: LGPL-3.0-or-later
"""ganesha.conf, from what the caller asked for and as little else."""
from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from . import release
from .util import LabError

FSALS = ("CEPH_ASYNC", "CEPH")
FAULTS = Path("/usr/lib/casync-faults")     # tests/faults/CMakeLists.txt

METRICS = "ceph_async.prom"     # where Ganesha has no endpoint for them


def parse_keys(items: list[str]) -> list[tuple[str, str]]:
    """['Key = Value;', …] as pairs; the semicolon may be missing."""
    pairs = []
    for item in items:
        for part in filter(None, (p.strip() for p in item.split(";"))):
            match = re.fullmatch(r"([A-Za-z_][\w.]*)\s*=\s*(.+)", part, re.S)
            if not match:
                raise LabError(f"'{part}' is not of the form 'Key = Value;'")
            pairs.append((match[1], match[2].strip()))
    return pairs


def block(name: str, keys: list[tuple[str, str]], body: str = "") -> str:
    """One block of ganesha.conf."""
    lines = "".join(f"    {key} = {value};\n" for key, value in keys)
    return f"{name} {{\n{lines}{body}}}\n"


def merged(defaults: dict[str, Any],
           given: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Defaults, each replaced by a given key of the same name."""
    names = {key.lower() for key, _ in given}
    return [(key, str(value)) for key, value in defaults.items()
            if key.lower() not in names] + given


def ports(spec: dict[str, Any]) -> dict[str, int]:
    """The standard port's neighbours are fixed too, for v3's options."""
    port = spec["port"]
    return {"NFS_Port": port, "MNT_Port": port + 1, "NLM_Port": port + 2,
            "Rquota_Port": port + 3}


def render(spec: dict[str, Any], state: Path) -> str:
    """The whole file for one instance; see `lab conf`."""
    first = spec["name"] == "a"
    core = {**ports(spec), "Protocols": "3,4", "mount_path_pseudo": "true",
            "allow_set_io_flusher_fail": "true",
            "Enable_RQUOTA": str(first).lower(),
            "Enable_NLM": str(first).lower()}
    if not first:
        core["Dbus_Name_Prefix"] = spec["name"]
        core["Monitoring_Port"] = spec["port"] + 4
    if spec["faults"]:
        core["Plugins_Dir"] = f'"{FAULTS}"'
    # Blocking_Locks: Ganesha 9.14 refuses a lock that is to wait with fields
    # it has not filled in, for which Linux fails it (docs/comparison.md).
    nfsv4 = {"Graceless": "true", "Minor_Versions": "0,1,2",
             "Blocking_Locks": "false",
             "RecoveryRoot": f'"{state / "recovery"}"'}
    export = {"Export_Id": spec["export_id"], "Path": '"/"',
              "Pseudo": f'"{spec["pseudo"]}"', "Protocols": "3,4",
              "Access_Type": "RW", "Squash": "none", "SecType": "sys",
              "Transports": "TCP", "Attr_Expiration_Time": "0"}
    fsal = block("    FSAL", [("    Name", spec["fsal"])] + [
        (f"    {key}", value) for key, value in parse_keys(spec["export"])])
    fsal = fsal[:-2] + "    }\n"
    text = [f"# Written by lab for the Ganesha named {spec['name']}.\n",
            block("NFS_CORE_PARAM", merged(
                release.known(core), parse_keys(spec["core"]))),
            block("NFSv4", merged(
                release.known(nfsv4), parse_keys(spec["nfsv4"])))]
    if release.keeps_listings() and not any(
            "MDCACHE" in more for more in spec["append"]):
        text.append(block("MDCACHE", [("Dir_Chunk", "0")]))
    metrics = {} if release.has_registry() or \
        spec["fsal"] != "CEPH_ASYNC" else {
        "Metrics_File": f'"{state / METRICS}"'}
    keys = merged(metrics, parse_keys(spec["block"]))
    if keys:
        text.append(block(spec["fsal"], keys))
    text.append(block("EXPORT", merged(
        export, parse_keys(spec["export_block"])), fsal))
    text += [more.rstrip() + "\n" for more in spec["append"]]
    return "\n".join(text)
