# SPDX-License-Identifier: LGPL-3.0-or-later
"""The command line of `lab`."""
from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from . import (client, cluster, conf, crash, faults, ganesha, nfs_cluster,
               services, stat, vstart)
from .util import LOGS, STATE, LabError, locked, say, tail

LIST_KEYS = ("export", "block", "core", "nfsv4", "export_block", "append")


def _ganesha_options(parser: argparse.ArgumentParser) -> None:
    """What describes an instance; whatever is not given stays as it was."""
    def keys(option: str, text: str) -> None:
        parser.add_argument(option, action="append", metavar="'KEY = VALUE;'",
                            help=text + " (repeatable; '' for none)")
    parser.add_argument("--name", default="a",
                        help="which Ganesha (default a)")
    parser.add_argument("--fresh", action="store_true",
                        help="whatever is not given is as at its first start")
    parser.add_argument("--fsal", choices=conf.FSALS)
    parser.add_argument("--port", type=int, help="NFS port (default 2049)")
    parser.add_argument("--pseudo", help="pseudo root (default /ceph)")
    keys("--export", "more for the export's FSAL block")
    keys("--block", "more for the FSAL's own block")
    keys("--core", "more for NFS_CORE_PARAM")
    keys("--nfsv4", "more for NFSv4")
    keys("--export-block", "more for the EXPORT block itself")
    parser.add_argument("--append", action="append", metavar="TEXT",
                        help="whole blocks, appended to ganesha.conf")
    parser.add_argument("--conf", metavar="FILE",
                        help="use this ganesha.conf instead ('' to go back)")
    parser.add_argument("--log-level", metavar="NIV_…")
    parser.add_argument("--wrapper", metavar="CMD",
                        help="run ganesha.nfsd under CMD (e.g. valgrind)")
    parser.add_argument("--faults", action="store_true",
                        help="the plugin that injects faults "
                        "(tests/faults/README.md); not kept between commands")
    parser.add_argument("--timeout", type=float, default=60,
                        help="seconds to wait for a mount, or for an end")
    parser.add_argument("--no-wait", action="store_true",
                        help="do not wait until a mount answers")


def _given(args: argparse.Namespace) -> dict[str, Any]:
    """The instance options that were given, None for the others."""
    given = {key: getattr(args, key) for key in
             ("fsal", "port", "pseudo", "conf", "log_level", "wrapper",
              "faults", "fresh")}
    for key in LIST_KEYS:
        values = getattr(args, key)
        given[key] = None if values is None else [v for v in values if v]
    if given["conf"]:
        given["conf"] = os.path.abspath(given["conf"])
    for key in ("export", "block", "core", "nfsv4", "export_block"):
        conf.parse_keys(given[key] or [])
    return given


def cmd_up(args: argparse.Namespace) -> None:
    _cluster_up(args.store, args.osds, args.auth)
    services.up()
    given = _given(args)
    if ganesha.pid(args.name):
        ganesha.stop(args.name)
    ganesha.start(args.name, given, args.timeout, not args.no_wait)


def _cluster_up(store: str | None, osds: int | None, auth: str | None,
                mds: int = 1, mgr: int = 1, mons: int = 1,
                options: list[str] | None = None,
                addr: str | None = None) -> None:
    build = vstart.build_dir()
    if build and not cluster.state():
        if options:
            raise LabError("-o is for the lab's own clusters, not for the "
                           "vstart.sh of CEPH_BUILD_DIR")
        vstart.start(build, store or "memstore", {
            "MON": mons, "OSD": osds or 1, "MDS": mds, "MGR": mgr})
        return
    cluster.up(store, osds, auth, mds, mgr, mons, options, addr)


def cmd_cluster(args: argparse.Namespace) -> None:
    """vstart.sh's environment, as far as one small cluster can honour it."""
    build = vstart.build_dir()      # an unusable one ends it here
    count = {}
    for name, most in (("MON", 3), ("MGR", 1), ("FS", 1), ("MDS", 3),
                       ("OSD", 16)):
        text = os.environ.get(name, "1")
        if not text.isdigit() or \
                (int(text) > most and not build) or \
                (name in ("MON", "OSD", "MDS", "FS") and int(text) < 1):
            raise LabError(f"{name}={text}: this launcher starts at most "
                           f"{most}; set CEPH_BUILD_DIR to a Ceph build "
                           "tree for its own vstart.sh")
        count[name] = int(text)
    if args.new and cluster.state():
        ganesha.down()
        cluster.down()
    store = "bluestore" if args.bluestore else \
        "memstore" if args.memstore else None
    _cluster_up(store, count["OSD"] if "OSD" in os.environ else None, None,
                count["MDS"], count["MGR"], count["MON"], args.option, args.ip)


# What a process has from its start.
AT_START = ("port", "wrapper", "log_level", "faults")


def _refuse_unused(args: argparse.Namespace) -> None:
    """An option that an action has no use for would be ignored."""
    unused = {"start": (), "restart": (), "reload": AT_START}.get(
        args.action, tuple(ganesha.DEFAULTS))
    given = _given(args)
    if names := [key for key in unused if given[key]]:
        raise LabError(f"lab ganesha {args.action}: it does not heed "
                       f"{', '.join(names)}; `restart` does")


def cmd_ganesha(args: argparse.Namespace) -> None:
    _refuse_unused(args)
    if args.action in ("start", "restart"):
        cluster.known()
        services.up()
        given = _given(args)
        if args.action == "restart" and ganesha.pid(args.name):
            ganesha.stop(args.name, args.timeout)
        ganesha.start(args.name, given, args.timeout, not args.no_wait)
    elif args.action == "stop":
        ganesha.stop(args.name, args.timeout)
    elif args.action == "kill9":
        ganesha.kill9(args.name)
    elif args.action == "stacks":
        ganesha.spec_of(args.name)
        print(ganesha.stacks(args.name))
    elif args.action == "reload":
        spec = ganesha.update_spec(args.name, _given(args))
        ganesha.write_conf(spec)
        ganesha.save(ganesha.DIR / args.name / "spec.json", spec)
        ganesha.reload(args.name)


def cmd_nfs_cluster(args: argparse.Namespace) -> None:
    cluster.known()
    services.up()
    given = {key: [v for v in getattr(args, key) if v]
             for key in ("core", "nfsv4")}
    place = None
    if args.host:
        place = nfs_cluster.Place(
            args.host, args.address, args.rank, args.offline, args.wrapper,
            tuple(args.haproxy_hosts))
    nfs_cluster.start(args.cluster, args.port, args.fsal, args.nfsv3,
                      args.timeout, given, place=place,
                      installed=args.installed, wait=not args.no_wait)


def cmd_ingress(args: argparse.Namespace) -> None:
    cluster.known()
    nfs_cluster.ingress(args.cluster, args.virtual_ip, args.port, args.address,
                        args.ranks, not args.no_proxy_protocol,
                        args.plain_checks, args.wrapper)


def cmd_daemon(args: argparse.Namespace) -> None:
    if args.action == "kill9":
        faults.kill9(args.command, args.which)
    else:
        faults.start(args.command, args.which, not args.no_wait)


def cmd_crash(args: argparse.Namespace) -> None:
    crash.crash(args.name, args.storage)


def cmd_recover(args: argparse.Namespace) -> None:
    crash.recover(args.name)


def cmd_slow(args: argparse.Namespace) -> None:
    faults.slow(args.ms)


def cmd_stat(_args: argparse.Namespace) -> None:
    cluster.known()
    print(json.dumps(stat.collect(), indent=1))


def cmd_evict(_args: argparse.Namespace) -> None:
    faults.evict()


def cmd_conf(args: argparse.Namespace) -> None:
    if (ganesha.DIR / args.name / "ganesha.conf").exists():
        print((ganesha.DIR / args.name / "ganesha.conf").read_text(), end="")
        return
    spec = ganesha.update_spec(args.name, _given(args))
    print(conf.render(spec, ganesha.DIR / args.name), end="")


def cmd_logs(args: argparse.Namespace) -> None:
    files = sorted(path for path in LOGS.glob("*") if path.is_file())
    if args.collect:
        target = Path(args.collect)
        target.mkdir(parents=True, exist_ok=True)
        extra = list(ganesha.DIR.glob("*/ganesha.conf")) + [cluster.CONF]
        for path in files:
            shutil.copy2(path, target / path.name)
        for path in extra:
            if path.exists():
                owner = "" if path == cluster.CONF else f"-{path.parent.name}"
                shutil.copyfile(path, target / f"{path.stem}{owner}.conf")
        say(f"logs are in {target}")
        return
    for path in files:
        if path.stat().st_size and (args.all or "ganesha" in path.name):
            print(f"==> {path} <==\n{tail(path, args.lines)}\n")
    if not files:
        raise LabError(f"no logs in {LOGS}")


def cmd_down(_args: argparse.Namespace) -> None:
    nfs_cluster.end_ingress()
    ganesha.down()
    cluster.down()
    services.down()
    shutil.rmtree(STATE, ignore_errors=True)
    say(f"everything is down; logs stay in {LOGS}")


def cmd_client(args: argparse.Namespace) -> int:
    cmd = args.cmd[1:] if args.cmd[:1] == ["--"] else args.cmd
    if not cmd:
        raise LabError("lab client … -- CMD: no command was given")
    if args.fs == "ceph" and args.server:
        raise LabError("--server is of NFS: CephFS has its monitors")
    return client.run_command(
        cmd, name=args.name, vers=args.vers, opts=args.opts, kind=args.fs,
        mem=args.mem, server=args.server, timeout=args.timeout)


def _ceph_option(text: str) -> str:
    if not re.fullmatch(r"\w[\w ]*\s*=\s*\S.*", text):
        raise argparse.ArgumentTypeError(f"'{text}' is not KEY = VALUE")
    return text


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="lab", description=__doc__)
    sub = parser.add_subparsers(dest="command", required=True)

    def add(name: str, run: Any, text: str) -> argparse.ArgumentParser:
        one = sub.add_parser(name, help=text, description=text)
        one.set_defaults(run=run)
        return one

    one = add("up", cmd_up, "cluster and Ganesha up; 0 when a mount answers. "
              "A cluster that runs is kept, its Ganesha restarted")
    one.add_argument("--store", choices=("memstore", "bluestore"))
    one.add_argument("--osds", type=int, choices=range(1, 17), metavar="N")
    one.add_argument("--auth", choices=("cephx", "none"))
    _ganesha_options(one)
    one = add("cluster", cmd_cluster, "the cluster alone, as vstart.sh: MON, "
              "OSD, MDS, MGR, FS from the environment; hands over to "
              "vstart.sh where CEPH_BUILD_DIR names a build tree")
    one.add_argument("-n", "--new", action="store_true", help="start afresh")
    one.add_argument("-d", "--debug", action="store_true", help="as vstart")
    one.add_argument("-i", "--ip", help="this host's address that the daemons "
                     "have, as vstart's -i; IPv4 or IPv6")
    one.add_argument("--bluestore", action="store_true")
    one.add_argument("--memstore", action="store_true")
    one.add_argument("-o", dest="option", action="append",
                     metavar="'KEY = VALUE'", type=_ceph_option,
                     help="a line for ceph.conf's [global], as vstart's -o; "
                     "may be given again")
    one = add("ganesha", cmd_ganesha, "one Ganesha; options not given stay "
              "as they were (another --fsal drops --export and --block)")
    one.add_argument("action", choices=("start", "stop", "restart", "kill9",
                                        "reload", "stacks"))
    _ganesha_options(one)
    one = add("nfs-cluster", cmd_nfs_cluster, "a cluster of `ceph nfs` and "
              "its Ganesha, configured by cephadm's template; may be run "
              "again.  Then: ceph nfs export create cephfs --cluster-id NAME "
              "--pseudo-path /vol --fsname cephfs")
    one.add_argument("cluster", metavar="NAME", help="of cluster and Ganesha")
    one.add_argument("--port", type=int, default=12049, help="default 12049")
    one.add_argument("--fsal", choices=conf.FSALS, default="CEPH",
                     help="CEPH (default): the stand-in serves the exports "
                     "that the manager writes.  CEPH_ASYNC: those of the "
                     "user's configuration")
    one.add_argument("--nfsv3", action="store_true",
                     help="as enable_nfsv3 of cephadm's service")
    one.add_argument("--installed", action="store_true",
                     help="with CEPH: the installed libfsalceph.so serves, "
                     "FSAL_CEPH's or that of the package -compat; and the lab "
                     "adds no MDCACHE { } for Ganesha 5.9")
    for key, block in (("core", "NFS_CORE_PARAM"), ("nfsv4", "NFSv4")):
        one.add_argument(f"--{key}", action="append", default=[],
                         metavar="'KEY = VALUE;'", help=f"more for {block}")
    one.add_argument("--timeout", type=float, default=60,
                     help="seconds to wait for its start, or its end")
    one.add_argument("--host", help="the next generation of a rank, as cephadm "
                     "makes one: the Ganesha NAME-HOST, with a cephx user of "
                     "its own.  The one before is removed, and its key")
    one.add_argument("--address", default="127.0.0.1", help="of that host")
    one.add_argument("--rank", type=int, default=0)
    one.add_argument("--offline", action="store_true", help="the host where "
                     "that rank was is out of reach: its Ganesha stays")
    one.add_argument("--wrapper", default="", metavar="CMD",
                     help="run ganesha.nfsd under CMD (e.g. nsenter)")
    one.add_argument("--haproxy-hosts", nargs="+", default=[],
                     metavar="ADDRESS", help="hosts whose PROXY header counts")
    one.add_argument("--no-wait", action="store_true",
                     help="do not wait until it serves")
    one = add("ingress", cmd_ingress, "haproxy before the ranks that "
              "`nfs-cluster NAME --host` made, configured by cephadm's "
              "template.  Run again, it is restarted: so after each move")
    one.add_argument("cluster", metavar="NAME")
    one.add_argument("--virtual-ip", required=True, help="where it listens")
    one.add_argument("--port", type=int, default=2049, help="default 2049")
    one.add_argument("--address", required=True, help="its host's own")
    one.add_argument("--ranks", type=int, help="how many (default: all)")
    one.add_argument("--no-proxy-protocol", action="store_true",
                     help="cephadm's mode haproxy-standard, its default: "
                     "Ganesha sees the proxy's address")
    one.add_argument("--plain-checks", action="store_true", help="health "
                     "checks without a PROXY header, which crashes Ganesha")
    one.add_argument("--wrapper", default="", metavar="CMD",
                     help="run haproxy under CMD (e.g. nsenter)")
    for kind in ("osd", "mds", "mon", "mgr"):
        one = add(kind, cmd_daemon, f"kill or start an {kind.upper()}")
        one.add_argument("action", choices=("kill9", "start"))
        one.add_argument("which", nargs="?", help="default: the first")
        one.add_argument("--no-wait", action="store_true",
                         help="started is enough; it need not serve")
    one = add("crash", cmd_crash, "SIGKILL Ganesha; with --storage all OSDs "
              "and metadata servers in the same moment")
    one.add_argument("--name", default="a", help="which Ganesha (default a)")
    one.add_argument("--storage", action="store_true")
    one = add("recover", cmd_recover, "start all that is dead, at once, and "
              "wait for a mount")
    one.add_argument("--name", default="a", help="which Ganesha (default a)")
    one = add("slow", cmd_slow, "delay each OSD operation by 0 to MS "
              "milliseconds; 0 = off.  Connections begun before stay fast: "
              "(re)start Ganesha")
    one.add_argument("ms", type=float)
    add("stat", cmd_stat, "counters as JSON")
    add("evict", cmd_evict, "evict Ganesha's CephFS sessions")
    one = add("conf", cmd_conf, "show the generated ganesha.conf")
    _ganesha_options(one)
    one = add("logs", cmd_logs, "the end of Ganesha's logs")
    one.add_argument("--all", action="store_true", help="the cluster's too")
    one.add_argument("--lines", type=int, default=25)
    one.add_argument("--collect", metavar="DIR", help="copy all of them")
    add("down", cmd_down, "everything down, data gone, logs kept")
    one = add("client", cmd_client, "run CMD in a Linux kernel client with "
              "the export at /mnt/nfs (or CephFS at /mnt/ceph); 124 = timed "
              "out, 125 = no client or no mount")
    one.add_argument("--name", default="a", help="which Ganesha (default a)")
    one.add_argument("--vers", default="4.2",
                     choices=("3", "4.0", "4.1", "4.2"))
    one.add_argument("--opts", default="", help="more mount options")
    one.add_argument("--server", metavar="ADDRESS", help="where that Ganesha "
                     "is, if not in the lab's own network namespace")
    one.add_argument("--fs", default="nfs", choices=("nfs", "ceph"))
    one.add_argument("--mem", default="1G", help="its memory (default 1G)")
    one.add_argument("--timeout", type=float, default=600, metavar="SECONDS")
    one.add_argument("cmd", nargs=argparse.REMAINDER, metavar="-- CMD")
    return parser


UNLOCKED = ("client", "stat", "conf", "logs")


def main() -> int:
    args = _parser().parse_args()
    try:
        if args.command in UNLOCKED:
            return args.run(args) or 0
        with locked():
            return args.run(args) or 0
    except LabError as err:
        print(f"lab: {args.command}: {err}", file=sys.stderr)
        return client.FAILED if args.command == "client" else 1
    except KeyboardInterrupt:
        return 130
