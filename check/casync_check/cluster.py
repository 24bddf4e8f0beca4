# SPDX-License-Identifier: LGPL-3.0-or-later
"""Findings about the cluster: for each export, what probe.py could not do."""
import errno
import importlib.util
import json
import os
import re
import socket
import sys
from pathlib import Path

from . import capabilities, progress, recovery
from .config import export_name
from .exports import junctions, nested
from .finding import ERROR, WARNING, Finding, Place
from .surroundings import delegation_needs_s

PROBE = Path(__file__).with_name("probe.py")
CEPH_CONF = "/etc/ceph/ceph.conf"
NEARLY_FULL_PERCENT = 5

# Steps whose limit is the whole time of one answer.
STEPS_AT_MOST = 6

DENIED = (errno.EACCES, errno.EPERM)


class Answers:
    """What a probe printed: the end of each step, and where it stopped."""

    def __init__(self, out):
        self.ends = {}
        self.hangs_in = None
        for line in out.splitlines():
            try:
                words = json.loads(line)
            except ValueError:
                continue
            if "begin" in words:
                self.hangs_in = words["begin"]
            else:
                self.ends[words["end"]] = words
                self.hangs_in = None

    def result(self, step):
        """What a step found; None if it failed or did not run."""
        return self.ends.get(step, {}).get("result")

    def errno(self, step):
        """0: it went well; None: it did not run, or did not end."""
        return self.ends.get(step, {}).get("errno")

    def text(self, step):
        return self.ends.get(step, {}).get("text", "")


def probe(asked, what, limit_s):
    """Answers to a request; the child is killed after LIMIT_S."""
    _, out, err = progress.run([sys.executable, "-B", PROBE], what, limit_s,
                               json.dumps(asked))
    answers = Answers(out)
    answers.stderr = err
    return answers


class Export:
    """An export, the request for its probe, and its findings."""

    def __init__(self, config, export, values, arguments):
        self.config = config
        self.export = export
        self.fsal = export.block("FSAL")
        self.values = values
        self.name = export_name(export)
        self.user = values["User_Id"] or "admin"
        self.filesystem = values["Filesystem"] or ""
        self.preset = "cephfs"      # the default one's name, once it is known
        self.path = export.get("Path", "/")
        self.root_key = "Cmount_Path" if values["Cmount_Path"] else "Path"
        self.session = self.user, self.filesystem
        self.timeout = arguments.timeout
        self.writes = capabilities.writes(config, export)
        self.sets_layout = capabilities.sets_layout(values)
        self.asked = {
            "what": "export", "timeout": arguments.timeout,
            "ceph_conf": config.module.get("Ceph_Conf"), "user": self.user,
            "secret": config.secret_of(self.fsal),
            "ceph_options": values["Ceph_Option"],
            "filesystem": self.filesystem, "path": self.path,
            "root": capabilities.root(export, values),
            "data_pool": values["Data_Pool"] or "", "writes": self.writes,
            "sets_layout": self.sets_layout,
            "junctions": [folder for folder, _ in
                          junctions(config, export)],
            "write_test": arguments.write_test and self.writes}

    def place(self, key=""):
        return self.fsal.place(key)

    def finding(self, severity, code, key, what, way_out="", command=""):
        return Finding(severity, code, self.place(key),
                       f"{self.name}: {what}", way_out, command)

    def grant(self):
        return capabilities.grant(self.config, self.user, self.preset)

    def misses(self, name, what, severity=ERROR, way_out=""):
        """A finding that names a capability."""
        sentence, command = self.grant()
        return self.finding(
            severity, f"capability-{name}", "User_Id",
            f"client.{self.user} lacks the capability {name}: {what}",
            f"{way_out}{sentence}", command)


# --- connecting

def monitors(path):
    """Addresses in ceph.conf, as far as they are plain."""
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    match = re.search(r"^\s*mon[ _]host\s*=\s*(.+)$", text, re.M)
    if not match:
        return []
    found = []
    for part in re.split(r"[,\s]+", re.sub(r"[\[\]]", " ", match[1])):
        address = re.fullmatch(r"(?:v([12]):)?([\d.]+|[\w.-]+?)"
                               r"(?::(\d+))?(?:/\d+)?", part)
        if address and address[2]:
            found.append((address[2], int(address[3] or 3300)))
    return found


def _silent_monitors(path):
    """Monitors that take no TCP connection."""
    silent = []
    for host, port in monitors(path):
        try:
            socket.create_connection((host, port), 1).close()
        except OSError:
            silent.append(f"{host}:{port}")
    return silent


def _has_no_key(one, searched):
    """The file of another user must not be written over."""
    searched = searched if isinstance(searched, list) else []
    preset = f"/etc/ceph/ceph.client.{one.user}.keyring"
    own = next((path for path in searched
                if path.endswith(f".client.{one.user}.keyring")),
               None if searched else preset)
    if own:
        put = f"ceph auth get client.{one.user} -o {own}"
    else:
        put = f"add what ceph auth get client.{one.user} prints to " \
            f"{searched[0]}"
    return one.finding(
        ERROR, "no-key", "User_Id",
        f"there is no usable key for client.{one.user}"
        + (f" in {', '.join(searched)}" if searched else ""),
        f"Correct User_Id (ceph auth ls); or {put}; or set "
        "Secret_Access_Key. 'keyring' in ceph.conf names the file.")


def _not_connected(one, answers, ceph_conf):
    number = answers.errno("connect")
    if answers.hangs_in == "connect" or number == errno.ETIMEDOUT:
        silent = _silent_monitors(ceph_conf)
        yield Finding(
            ERROR, "no-monitor", Place(ceph_conf),
            f"no monitor answered within {one.timeout:g} s"
            + (f"; no connection to {', '.join(silent)}" if silent else ""),
            "See that the monitors run (ceph -s on one of their hosts), that "
            "mon_host in ceph.conf is right, and that no firewall is "
            "between (ports 3300 and 6789).")
    elif number == errno.ENOENT or (
            number in DENIED and isinstance(answers.result("key"), list)):
        yield _has_no_key(one, answers.result("key"))
    elif number in DENIED:
        key = "Secret_Access_Key" if one.asked["secret"] else "User_Id"
        given = " and Secret_Access_Key" if one.asked["secret"] else ""
        put = "correct Secret_Access_Key" if given else \
            f"put it into the keyring (ceph auth get client.{one.user})"
        sentence, command = one.grant()
        yield one.finding(
            ERROR, "not-accepted", key,
            f"the monitors refuse client.{one.user}{given}: the user does not "
            "exist, its key is another one, or it lacks the capability mon",
            f"ceph auth get client.{one.user} shows key and capabilities. If "
            "there is no such user, correct User_Id. If the key differs, "
            f"{put}. {sentence}", command)
    elif number:
        yield one.finding(ERROR, "not-connected", "User_Id",
                          f"connecting failed: {answers.text('connect')}")


def _conf_is_missing(one, answers, ceph_conf):
    return Finding(
        ERROR, "no-ceph-conf",
        one.config.place(one.config.fsal, "Ceph_Conf"),
        f"{ceph_conf} cannot be read: {os.strerror(answers.errno('conf'))}",
        "Put ceph.conf there (ceph config generate-minimal-conf), or set "
        "Ceph_Conf.")


# --- the file system

def _file_system(one, answers):
    """The file system of the export, in the answers; None: not there."""
    found = answers.result("filesystems") or []
    for filesystem in found:
        if one.filesystem == filesystem["name"] or (
                not one.filesystem and filesystem["preset"]):
            return filesystem
    return None


def _judge_monitors(one, answers):
    if answers.errno("filesystems") in DENIED:
        yield one.misses("mon", "the monitors do not tell it of file systems")
        return
    filesystem = _file_system(one, answers)
    if filesystem is None and answers.errno("filesystems") == 0:
        seen = [entry["name"] for entry in answers.result("filesystems")]
        sentence, command = one.grant()
        yield one.finding(
            ERROR, "no-file-system", "Filesystem",
            f"client.{one.user} sees no file system "
            f"'{one.filesystem or '(the default one)'}'; it sees "
            f"{', '.join(seen) or 'none'}",
            "Correct Filesystem (ceph fs ls). If it is there, the capability "
            f"mon does not allow it. {sentence}", command)
    if filesystem is None:
        return
    if not any(state == "up:active" for state in filesystem["states"]):
        yield one.finding(
            ERROR, "no-mds", "Filesystem",
            f"file system '{filesystem['name']}' has no active MDS",
            "ceph fs status; ceph health detail")
    yield from _judge_times(one, filesystem)


def _judge_times(one, filesystem):
    allowed = filesystem["session_autoclose"]
    needs = delegation_needs_s(one.config)
    if needs and needs >= allowed:
        yield Finding(
            WARNING, "lease-long",
            one.config.place("NFSv4", "Lease_Lifetime"),
            f"no delegations will be granted: it takes {needs} s (two "
            "leases and 10 s) to get one back, and Ceph allows "
            f"{allowed} s (session_autoclose of '{filesystem['name']}')",
            f"Set Lease_Lifetime to {max((allowed - 11) // 2, 1)} or less, "
            f"or ceph fs set {filesystem['name']} session_autoclose "
            f"{needs + 1}, or Delegations = false.")


def _judge_pools(one, answers):
    told = answers.result("pools")
    if not told:
        return
    if "full" in told["flags"]:
        yield one.finding(ERROR, "full", "", "the cluster is full: writes "
                          "fail", "ceph health detail; ceph df")
    filesystem = _file_system(one, answers) or {"pools": [], "name": "?"}
    named = one.values["Data_Pool"]
    pools = {pool["name"]: pool for pool in told["pools"]}
    if named and named not in pools:
        yield one.finding(ERROR, "no-pool", "Data_Pool",
                          f"Ceph has no pool '{named}'",
                          "Correct the key (ceph osd pool ls).")
    elif named and pools[named]["id"] not in filesystem["pools"]:
        yield one.finding(
            ERROR, "not-data-pool", "Data_Pool",
            f"pool '{named}' is no data pool of file system "
            f"'{filesystem['name']}'",
            f"ceph fs add_data_pool {filesystem['name']} {named}")
    layout = answers.result("layout") or {}
    for name in {named, layout.get("pool_name")} & pools.keys():
        flags = pools[name]["flags"]
        if "full" in flags or "full_quota" in flags:
            yield one.finding(
                ERROR, "pool-full", "Data_Pool" if name == named else "",
                f"pool '{name}' is full ({', '.join(flags)})",
                "ceph df; ceph osd pool get-quota " + name)
        elif "nearfull" in flags or "backfillfull" in flags:
            yield one.finding(WARNING, "pool-nearly-full", "",
                              f"pool '{name}' is nearly full", "ceph df")


# --- the mount

def _mount_hangs(one, answers):
    filesystem = _file_system(one, answers)
    if filesystem and "up:active" in filesystem["states"]:
        sentence, command = one.grant()
        return one.finding(
            ERROR, "mount-hangs", "User_Id",
            f"an MDS is active, and did not let client.{one.user} mount "
            f"within {one.timeout:g} s",
            "ceph health detail. If an MDS or OSD does not answer, help it. "
            + (f"Only if all are well does the user lack the capability mds. "
               f"{sentence}" if command else ""), command)
    return one.finding(ERROR, "mount-hangs", "",
                       f"no mount within {one.timeout:g} s",
                       "ceph fs status; ceph health detail")


def _judge_mount(one, answers):
    if answers.errno("filesystems") == 0 and \
            _file_system(one, answers) is None:
        return
    number = answers.errno("mount")
    root = one.asked["root"]
    if answers.hangs_in == "mount" or number == errno.ETIMEDOUT:
        yield _mount_hangs(one, answers)
    elif number in DENIED:
        yield one.misses("mds", f"it may not mount '{root}'", way_out=(
            f"Correct {one.root_key}, if it is misspelt: client."
            f"{one.user} may have another folder (ceph auth get "
            f"client.{one.user}). "))
    elif number == errno.ENOENT:
        yield Finding(ERROR, "no-path", one.export.place("Path"),
                      f"{one.name}: '{root}' does not exist in the file "
                      "system", "Make the folder, or correct the key.")
    elif number:
        yield one.finding(ERROR, "not-mounted", "",
                          f"mounting failed: {answers.text('mount')}")
    number = answers.errno("path")
    if number or answers.result("path") is False:
        yield Finding(
            ERROR, "no-path", one.export.place("Path"),
            f"{one.name}: '{one.path}' "
            + ("is no folder" if number is None or number == 0
               else f"cannot be used: {os.strerror(number)}"),
            "Make the folder, or correct the key.")
    for folder, other in junctions(one.config, one.export):
        if folder in (answers.result("junctions") or ()):
            yield nested(ERROR, one.export, folder, other)


def _judge_space(one, answers):
    space = answers.result("statfs")
    if space and space["f_blocks"] and one.writes:
        percent = 100 * space["f_bavail"] / space["f_blocks"]
        if percent < NEARLY_FULL_PERCENT:
            yield one.finding(
                WARNING, "space", "",
                f"{percent:.1f} % of the space is left: of the pool, or of "
                "the quota of the folder",
                "ceph df; getfattr -n ceph.quota.max_bytes")


def _judge_capabilities(one, answers):
    may = answers.result("mds-write")
    if may and not may["may"]:
        yield one.misses("mds", "it may not write below the export's Path")
    may = answers.result("mds-layout")
    if may and not may["may"]:
        yield one.misses(
            "mds", "it may not set layouts (p), which Object_Size and "
            "Data_Pool need: each create would fail")
    for step in ("osd", "data-pool"):
        yield from _judge_osd(one, answers, step)


def _judge_osd(one, answers, step):
    pool = one.values["Data_Pool"]
    if step == "osd":
        pool = (answers.result("layout") or {}).get("pool_name", "?")
    if answers.hangs_in == step or answers.errno(step) == errno.ETIMEDOUT:
        yield one.misses(
            "osd", f"no answer about pool '{pool}' within {one.timeout:g} s; "
            "if the capability is there, the OSDs hang (ceph health detail)")
        return
    may = answers.result(step)
    if not may:
        return
    if not may["read"]:
        yield one.misses("osd", f"it may not read pool '{pool}'")
    elif not may["write"] and one.writes:
        yield one.misses("osd", f"it may not write to pool '{pool}'")


def _judge_write_test(one, answers):
    number = answers.errno("write-test")
    if answers.hangs_in == "write-test":
        yield one.finding(ERROR, "write-test", "",
                          "writing a file did not end in time",
                          "ceph health detail")
    elif number or answers.result("write-test") is False:
        yield one.finding(
            ERROR, "write-test", "",
            "writing a file failed: "
            + (answers.text("write-test") or "what was read is not what was "
               "written"), "ceph health detail; see the other findings.")


def _judge_health(one, answers):
    health = answers.result("health") or {}
    for name, check in health.get("checks", {}).items():
        if name in ("MON_CLOCK_SKEW", "FS_DEGRADED", "PG_AVAILABILITY",
                    "MDS_ALL_DOWN", "OSD_FULL", "POOL_FULL",
                    "MDS_SLOW_METADATA_IO", "SLOW_OPS"):
            yield Finding(WARNING, "health", Place(),
                          f"Ceph says {name}: {check['summary']['message']}",
                          "ceph health detail")


def _judge_silence(one, answers):
    """A step that did not end, and of which no other says so."""
    step = answers.hangs_in
    if step and step not in ("mount", "osd", "data-pool", "write-test"):
        yield one.finding(
            ERROR, "no-answer", "",
            f"the cluster did not end the step '{step}' in time",
            "ceph health detail; ceph fs status. If Ganesha crashed, its "
            "session holds files until Session_Timeout is over: start "
            "Ganesha, or wait, and ask again.")


JUDGES = (_judge_monitors, _judge_pools, _judge_mount, _judge_space,
          _judge_capabilities, _judge_write_test, _judge_health,
          _judge_silence)


def judged(one, answers):
    ceph_conf = one.asked["ceph_conf"] or CEPH_CONF
    if answers.errno("conf"):
        return [_conf_is_missing(one, answers, ceph_conf)]
    if answers.errno("connect") != 0:
        found = list(_not_connected(one, answers, ceph_conf))
        return found or [one.finding(
            ERROR, "probe-failed", "", "the cluster could not be asked: "
            + (answers.stderr.strip().splitlines() or ["no answer"])[-1])]
    one.preset = next((entry["name"] for entry in
                       answers.result("filesystems") or ()
                       if entry["preset"]), one.preset)
    return [found for judge in JUDGES for found in judge(one, answers)]


def findings(config, arguments):
    """All findings; after a monitor that does not answer no more is asked."""
    missing = [name for name in ("rados", "cephfs")
               if importlib.util.find_spec(name) is None]
    if missing:
        yield Finding(
            WARNING, "no-python-ceph", Place(),
            f"the cluster is not asked: Python has no module "
            f"{' and '.join(missing)}",
            "Install python3-rados and python3-cephfs, or use --offline.")
        return
    limit_s = arguments.timeout * STEPS_AT_MOST
    hung = {}
    for export, values in config.our_exports():
        one = Export(config, export, values, arguments)
        if not one.path.startswith("/"):
            yield Finding(ERROR, "path-relative", export.place("Path"),
                          f"{one.name}: Path = {one.path} does not begin "
                          "with /", "Write the path from the file system's "
                          "root.")
            continue
        if one.session in hung:
            yield one.finding(
                WARNING, "not-tried", "",
                f"not tried: {hung[one.session]}, with the same user and "
                "file system, got no answer", "See there.")
            continue
        answers = _ask(one, limit_s)
        if answers.hangs_in:
            hung[one.session] = one.name
        found = judged(one, answers)
        yield from found
        if any(finding.code in ("no-monitor", "no-ceph-conf")
               for finding in found):
            return
    yield from recovery.findings(config, arguments, probe, limit_s)


def _ask(one, limit_s):
    """A mount that hangs is given one answer's time, and not all."""
    return probe(one.asked, f"{one.name}: asking the cluster as "
                            f"client.{one.user}", min(limit_s,
                                                      2 * one.timeout + 5))
