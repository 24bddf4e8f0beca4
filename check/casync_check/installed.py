# SPDX-License-Identifier: LGPL-3.0-or-later
"""Finds Ganesha's library, the plugin, and our own library."""
import re
from pathlib import Path

FOLDERS = ("/usr/lib/ganesha", "/usr/lib64/ganesha", "/usr/local/lib/ganesha",
           "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/local/lib64")
# Only our plugin, under whatever file name, has this in it.
OUR_MARK = b"CEPH_ASYNC"


def _folders():
    for folder in FOLDERS:
        yield Path(folder)
        if Path(folder).name == "lib":
            yield from Path(folder).glob("*-linux-gnu*")
            yield from Path(folder).glob("*-linux-gnu*/ganesha")


def ganesha_library():
    """Ganesha's library, or None."""
    for folder in _folders():
        for name in ("libganesha_nfsd.so", "libganesha_nfsd.so.[0-9]*"):
            for path in sorted(folder.glob(name)):
                return path.resolve()
    return None


def ganesha_version(library):
    """The version, which is in the file's name."""
    match = re.search(r"\.so\.(.+)$", library.name)
    return match[1] if match else "unknown"


class Ours:
    """Where our own libraries are; main() is told."""
    folder = Path("/usr/libexec/nfs-ganesha-ceph-async")


def our_library(compat):
    """What reads the configuration."""
    name = "casync_check_compat.so" if compat else "casync_check.so"
    return Ours.folder / name


def plugin(folder, fsal):
    """The plugin's file, where Ganesha looks for it; it may not exist."""
    return Path(folder) / f"libfsal{fsal.lower()}.so"


def is_ours(path):
    """Is the library this plugin, and not FSAL_CEPH?"""
    try:
        return OUR_MARK in path.read_bytes()
    except OSError:
        return False
