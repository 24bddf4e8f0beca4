# SPDX-License-Identifier: LGPL-3.0-or-later
"""Command line of ganesha-ceph-async-check."""
import argparse
import dataclasses
import json
import sys
from pathlib import Path

from . import host, installed, keys, surroundings
from .config import PRESET_PATH
from .finding import NOT_CHECKED, as_objects, in_order, status, table
from .reader import CannotCheck, read_config
from .redact import Redactor


def _seconds(text):
    value = float(text)
    if not 1 <= value <= 3600:
        raise argparse.ArgumentTypeError("from 1 to 3600")
    return value


def _arguments(words):
    parser = argparse.ArgumentParser(
        prog="ganesha-ceph-async-check",
        description="Says what is wrong with a ganesha.conf that uses FSAL "
                    "CEPH_ASYNC, and whether the cluster serves its exports.",
        epilog="Exit status: 0 nothing or notes, 1 warnings, 2 errors, 3 it "
               "could not be checked.")
    parser.add_argument("-f", "--file", default=PRESET_PATH, metavar="FILE",
                        help=f"the configuration ({PRESET_PATH})")
    parser.add_argument("--offline", action="store_true",
                        help="do not ask the cluster")
    parser.add_argument("--timeout", type=_seconds, default=10,
                        metavar="SECONDS",
                        help="longest wait for each answer (10)")
    parser.add_argument("--write-test", action="store_true",
                        help="make, write, sync and remove a file in each "
                             "Path; without it nothing is written")
    parser.add_argument("--gateways", type=int, default=1, metavar="N",
                        help="how many gateways serve the same exports (1)")
    parser.add_argument("--json", action="store_true",
                        help="print the findings as JSON")
    parser.add_argument("--collect", metavar="FILE.tar.gz",
                        help="make an archive for a report, without secrets")
    parser.add_argument("--log", default="/var/log/ganesha/ganesha.log",
                        metavar="FILE", help="Ganesha's log, for --collect")
    parser.add_argument("--log-lines", type=int, default=2000, metavar="N",
                        help="how much of its end (2000)")
    return parser.parse_args(words)


def check(config, arguments):
    """All findings of one reading of the file."""
    yield from keys.findings(config)
    yield from surroundings.findings(config, arguments.gateways)
    yield from host.findings(config)
    if not arguments.offline:
        from . import cluster  # noqa: PLC0415: needs Ceph's Python
        yield from cluster.findings(config, arguments)


def _without_secrets(finding, redactor):
    """Outputs are shown to others: a refused value may be a key."""
    return dataclasses.replace(finding, what=redactor.text(finding.what))


def _of_all(configs, arguments):
    """With -compat the file is read under both names: one may have exports."""
    served = any(config.our_exports() for config in configs)
    for config in configs:
        for finding in check(config, arguments):
            if not (served and finding.code == "no-export"):
                yield finding


def _everything(arguments):
    """Configurations, findings, the exit status, and what removes secrets."""
    try:
        configs = read_config(arguments.file, arguments.timeout)
    except CannotCheck as failure:
        return [], failure.findings, NOT_CHECKED, Redactor()
    redactor = Redactor(secret for config in configs
                        for secret in config.secrets.values())
    found = in_order(_without_secrets(finding, redactor)
                     for finding in _of_all(configs, arguments))
    return configs, found, status(found), redactor


def main(libraries, words=None):
    """LIBRARIES is the folder of our two; the exit status."""
    installed.Ours.folder = Path(libraries)
    arguments = _arguments(words)
    configs, found, result, redactor = _everything(arguments)
    if arguments.json:
        print(json.dumps({"file": arguments.file, "status": result,
                          "findings": as_objects(found)}, indent=1))
    else:
        print(table(found))
    if arguments.collect:
        from . import collect  # noqa: PLC0415: only then
        try:
            collect.write(arguments, configs, found, redactor)
        except OSError as err:
            print(f"{arguments.collect}: {err.strerror}", file=sys.stderr)
            result = NOT_CHECKED
    sys.stdout.flush()
    return result
