# SPDX-License-Identifier: LGPL-3.0-or-later
"""Findings about this host: what is installed, files, the clock."""
import ctypes
import stat
from pathlib import Path

from . import daemon, installed
from .config import PRESET_PATH, export_name
from .finding import ERROR, NOTE, WARNING, Finding, Place

# adjtimex(2): the kernel has not been told for long that its clock is right.
STA_UNSYNC = 0x0040
TIMEX_BYTES = 208
STATUS_AT = 40


def _versions(config):
    refused = config.versions["refused"]
    if refused:
        yield Finding(
            ERROR, "version", Place(config.path),
            "the plugin was built for Ganesha "
            f"{config.versions['ganesha_built']}: {refused}",
            "Ganesha serves none of our exports until they fit.")


def _plugin(config):
    folder = config.parameter("Plugins_Dir")
    if not folder or not config.our_exports():
        return
    place = config.place("NFS_CORE_PARAM", "Plugins_Dir")
    library = installed.plugin(folder, config.fsal)
    if not library.exists():
        yield Finding(
            ERROR, "no-plugin", place,
            f"Ganesha will not find the plugin: there is no {library}",
            "Install nfs-ganesha-ceph-async, or correct Plugins_Dir.")
    elif not installed.is_ours(library):
        yield Finding(ERROR, "no-plugin", place,
                      f"{library} is not this plugin",
                      "Install nfs-ganesha-ceph-async again.")


def _compat(config):
    """Exports with FSAL_CEPH's name."""
    folder = config.parameter("Plugins_Dir")
    if config.compat or not folder:
        return
    ours = installed.is_ours(installed.plugin(folder, "CEPH"))
    for export in config.exports():
        fsal = export.block("FSAL")
        if fsal is None or fsal.get("Name", "").upper() != "CEPH":
            continue
        if ours and config.our_exports():
            yield Finding(
                WARNING, "both-names", fsal.place("Name"),
                "Name = CEPH is served by this plugin too (-compat is "
                "installed): two copies of it run in one process, with two "
                "caches and two sets of limits",
                "Write Name = CEPH_ASYNC; in all exports.")
        elif ours:
            yield Finding(
                NOTE, "compat", fsal.place("Name"),
                "Name = CEPH is served by this plugin, and not by "
                "FSAL_CEPH: -compat is installed")
        elif config.our_exports():
            yield Finding(
                NOTE, "fsal-ceph-too", fsal.place("Name"),
                "Name = CEPH is served by FSAL_CEPH, beside this plugin: "
                "the names of CephFS sessions differ then from those of a "
                "gateway with one of them")


def _loaded(config):
    """What is written is not what runs: an upgrade has put an image of Ceph
    back, or Ganesha was not restarted."""
    if not config.our_exports():
        return
    for process in installed.running(config.path, PRESET_PATH):
        if installed.has_loaded_us(process, config.fsal) is False:
            yield Finding(
                ERROR, "not-loaded", config.place(config.fsal),
                f"ganesha.nfsd (pid {process.name}) serves this "
                "configuration and has not loaded the plugin: exports with "
                "Name = CEPH_ASYNC fail, those with Name = CEPH are "
                "FSAL_CEPH's",
                "After ceph orch upgrade set the image again "
                "(docs/install.md); else restart Ganesha, and read the "
                "CRIT lines of its log.")


def _served(config):
    """An export that could not be mounted is left out until a reload."""
    core = config.block("NFS_CORE_PARAM")
    prefix = core.get("Dbus_Name_Prefix", "") if core else ""
    for process in installed.running(config.path, PRESET_PATH):
        if not installed.has_loaded_us(process, config.fsal):
            continue
        served = daemon.exports_of(process.name, prefix)
        for export, number in config.numbered_exports():
            if served is not None and number not in served:
                yield Finding(
                    ERROR, "not-served", export.place("Export_Id"),
                    f"ganesha.nfsd (pid {process.name}) does not serve "
                    f"{export_name(export)}: it could not mount it, or has "
                    "not read this file since",
                    "Repair what else is found. Then kill -HUP "
                    f"{process.name}, and read the CRIT lines of its log.")


def _secrets(config):
    secrets = [key for block in config.blocks for key in block.secrets()]
    for key in secrets:
        try:
            mode = Path(key["file"]).stat().st_mode
        except OSError:
            continue
        if mode & (stat.S_IROTH | stat.S_IWOTH):
            yield Finding(
                WARNING, "secret-readable",
                Place(key["file"], key["line"], "FSAL", key["name"]),
                f"everybody on this host may read the file (mode "
                f"{stat.S_IMODE(mode):04o}), and it has a secret",
                f"chmod o= {key['file']}; or leave the key out and put it "
                "into a keyring.")


def clock_is_synchronized():
    """What the kernel says; None if it does not."""
    timex = ctypes.create_string_buffer(TIMEX_BYTES)
    try:
        if ctypes.CDLL(None).adjtimex(timex) == -1:
            return None
    except (OSError, AttributeError):
        return None
    status = ctypes.c_int.from_buffer(timex, STATUS_AT).value
    return not status & STA_UNSYNC


def _clock(config):
    if config.our_exports() and config.module.get("Cache_Bytes") and \
            clock_is_synchronized() is False:
        yield Finding(
            NOTE, "clock", config.place(config.fsal, "Cache_Bytes"),
            "the kernel says that no time service keeps this host's clock; "
            "the read cache relies on clocks of CephFS clients that differ "
            "by 2 s at most",
            "Run chrony or another NTP client, or set Cache_Bytes = 0. In a "
            "container or virtual machine, look at the host.")


def findings(config):
    yield from _versions(config)
    yield from _plugin(config)
    yield from _compat(config)
    yield from _loaded(config)
    yield from _served(config)
    yield from _secrets(config)
    yield from _clock(config)
