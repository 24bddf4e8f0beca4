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


def _serves(process, path, preset):
    words = (process / "cmdline").read_bytes().split(b"\0")
    named = words.index(b"-f") + 1 if b"-f" in words else len(words)
    asked = words[named].decode() if named < len(words) else preset
    # In a container it is another name of the same file.
    return (process / "comm").read_bytes() == b"ganesha.nfsd\n" and \
        Path(path).samefile(f"{process}/root{asked}")


def running(path, preset):
    """Processes of ganesha.nfsd that serve this configuration, also in
    containers of this host; PRESET is what one without -f reads."""
    for comm in Path("/proc").glob("[0-9]*/comm"):
        try:
            if _serves(comm.parent, path, preset):
                yield comm.parent
        except (OSError, UnicodeDecodeError):   # it ended, or is another's
            continue


def has_loaded_us(process, fsal):
    """Is the plugin in its memory?  None: this user may not know."""
    name = plugin("/", fsal).name
    try:
        lines = (process / "maps").read_text().splitlines()
    except OSError:
        return None
    return any(is_ours(Path(f"{process}/root{place}")) for place in
               {line.split(maxsplit=5)[5] for line in lines
                if line.endswith(f"/{name}")})


def is_ours(path):
    """Is the library this plugin, and not FSAL_CEPH?"""
    try:
        return OUR_MARK in path.read_bytes()
    except OSError:
        return False
