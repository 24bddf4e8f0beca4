# SPDX-License-Identifier: LGPL-3.0-or-later
"""Reads a ganesha.conf by Ganesha's own parser, in a process of its own."""
import errno
import json
import sys
from pathlib import Path

from . import installed, progress
from .config import Config
from .finding import ERROR, Finding, Place

CHILD = Path(__file__).with_name("read_child.py")


class CannotCheck(Exception):
    """Nothing can be said of this file; the findings say why."""

    def __init__(self, *findings):
        super().__init__()
        self.findings = list(findings)


def _failed(code, path, what, way_out=""):
    return CannotCheck(Finding(ERROR, code, Place(path), what, way_out))


def _last_lines(text):
    return " / ".join(line for line in text.splitlines()[-3:] if line.strip())


def _call(function, path, compat, limit_s):
    """What a function of our library wrote; None if it did not end."""
    library = installed.ganesha_library()
    status, out, err = progress.run(
        [sys.executable, "-B", CHILD, library, installed.our_library(compat),
         function, path], f"reading {path}", limit_s)
    if status is None:
        raise _failed(
            "file-slow", path,
            f"the file was not read within {limit_s:g} s",
            "A %url is read from RADOS: see that the monitors answer, or "
            "give more time by --timeout.")
    if status < 0:
        err = f"signal {-status}, as ganesha.nfsd would. {err}"
    try:
        return json.loads(out), err
    except ValueError:
        return None, err


def _needs(path):
    """What has to be there before anything is read."""
    try:
        if Path(path).is_fifo():        # it is read several times
            raise OSError(errno.EINVAL, "it is a pipe")
        with open(path, "rb"):
            pass
    except OSError as err:
        raise _failed("file-unreadable", path,
                      f"the file cannot be read: {err.strerror}",
                      "Give the path by -f; run this program as root.") \
            from None
    if installed.ganesha_library() is None:
        raise _failed("no-ganesha", path,
                      "Ganesha's library libganesha_nfsd.so is not installed",
                      "Install nfs-ganesha; this program uses its parser.")
    if not installed.our_library(False).exists():
        raise _failed("no-reader", path,
                      f"{installed.our_library(False)} is not installed",
                      "Install nfs-ganesha-ceph-async again.")


def _read(path, compat, limit_s):
    read, err = _call("casync_check_read", path, compat, limit_s)
    if read is None:
        library = installed.ganesha_library()
        raise _failed(
            "reader-failed", path,
            f"the parser of Ganesha {installed.ganesha_version(library)} "
            f"ended without a result: {_last_lines(err)}",
            "A %url needs RADOS_URLS { } above it, an %include must name a "
            "file: without, Ganesha 9.14 crashes. And the package must be "
            "the one for this version of Ganesha.")
    if "blocks" not in read:
        raise _failed("file-unreadable", path,
                      " / ".join(line["text"] for line in read["said"]))
    return read


def _compat_serves(read, parameters):
    """Is the file that serves Name = CEPH this plugin?"""
    folder = parameters.get("parameters", {}).get("Plugins_Dir")
    return bool(folder) and \
        installed.is_ours(installed.plugin(folder, "CEPH"))


def read_config(path, limit_s):
    """A list of one Config, or of two where -compat is installed too: a
    file may have exports of both names."""
    path = str(path)
    _needs(path)
    read = _read(path, False, limit_s)
    parameters = {}
    # Of another Ganesha the parameters are elsewhere in memory.
    if not read["versions"]["refused"]:
        parameters = _call("casync_check_ganesha", path, False,
                           limit_s)[0] or {}
        if not parameters.get("good", True):
            # Not all were read; the version is known.
            parameters["parameters"] = {
                "Fsal_Api": parameters["parameters"]["Fsal_Api"]}
        try:
            # Names of clients are looked up, which may take long.
            parameters["exports_said"] = (_call(
                "casync_check_exports", path, False, limit_s)[0] or
                {}).get("said", [])
        except CannotCheck:
            pass
    configs = [Config(read, parameters, path, False)]
    if _compat_serves(read, parameters):
        config = Config(_read(path, True, limit_s), parameters, path, True)
        if config.our_exports() or config.block("CEPH"):
            configs.append(config)
    return configs
