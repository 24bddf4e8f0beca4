# SPDX-License-Identifier: LGPL-3.0-or-later
"""Makes one archive for a report, without secrets."""
import collections
import io
import json
import os
import platform
import re
import shutil
import socket
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from . import progress
from .finding import as_objects, table

PACKAGES = ("ganesha", "ceph", "rados", "ntirpc")
USERS_AT_MOST = 3
METRICS_BYTES = 8 << 20
METRICS_S = 5
DAEMON = "ganesha.nfsd"
MONITORING_PORT = 9587
CEPH_CONF = "/etc/ceph/ceph.conf"


class Archive:
    """The files of the archive, each with a line in its README."""

    def __init__(self, redactor):
        self.redactor = redactor
        self.files = {}
        self.meanings = {}

    def add(self, name, meaning, text):
        """TEXT without secrets; an empty one is left out."""
        if text:
            self.files[name] = self.redactor.text(text)
            self.meanings[name] = meaning

    def add_json(self, name, meaning, value):
        if value:
            self.files[name] = json.dumps(self.redactor.tree(value), indent=1)
            self.meanings[name] = meaning

    def _readme(self):
        lines = ["Made by ganesha-ceph-async-check --collect.",
                 "Keys and passwords were removed. Names of hosts, users, "
                 "paths and addresses were not:",
                 "look through the files before you send them.", ""]
        lines += [f"{name}: {meaning}"
                  for name, meaning in self.meanings.items()]
        return "\n".join(lines) + "\n"

    def write(self, path, top):
        """To a new file that only its owner may read, then to PATH."""
        folder = Path(path).absolute().parent
        handle, name = tempfile.mkstemp(dir=folder, prefix=".collect-")
        try:
            with os.fdopen(handle, "wb") as out, \
                    tarfile.open(fileobj=out, mode="w:gz") as tar:
                for file, text in {"README": self._readme(),
                                   **self.files}.items():
                    data = text.encode("utf-8", "replace")
                    entry = tarfile.TarInfo(f"{top}/{file}")
                    entry.size = len(data)
                    entry.mtime = int(time.time())
                    entry.mode = 0o600
                    tar.addfile(entry, io.BytesIO(data))
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise


def _read(path):
    """A text file, or nothing."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _said(words, limit_s):
    """What a program prints, if there is such a program."""
    if shutil.which(words[0]) is None:
        return ""
    status, out, _ = progress.run(words, words[0], limit_s)
    return out if status == 0 else ""


def _packages(limit_s):
    text = (_said(["dpkg-query", "-W", "-f",
                   "${Package} ${Version} ${db:Status-Abbrev}\n"], limit_s)
            or _said(["rpm", "-qa"], limit_s))
    return [line for line in sorted(text.splitlines())
            if any(word in line for word in PACKAGES)]


def _versions(configs, limit_s):
    lines = [f"kernel {platform.release()} {platform.machine()}",
             f"python {platform.python_version()}",
             _said([DAEMON, "-v"], limit_s).strip()]
    for config in configs[:1]:
        lines += [f"{name} {value}"
                  for name, value in config.versions.items()]
    return "\n".join([*lines, "", *_packages(limit_s), "",
                      _read("/etc/os-release")])


def _tail(path, count):
    """The last lines of a file that may be large."""
    try:
        with open(path, "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(file.tell() - 512 * count, 0))
            data = file.read()
    except OSError:
        return ""
    lines = data.decode("utf-8", "replace").splitlines()
    return "\n".join(lines[-count:])


def _metrics(port):
    """One scrape of this host's Ganesha, or of whoever has its port: the whole
    has a deadline.  HTTP/1.0, so that the answer is in one piece."""
    end = time.monotonic() + METRICS_S
    data = bytearray()
    try:
        with socket.create_connection(("127.0.0.1", int(port)),
                                      METRICS_S) as server:
            server.sendall(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")
            while len(data) < METRICS_BYTES and time.monotonic() < end:
                server.settimeout(max(end - time.monotonic(), 0.001))
                piece = server.recv(1 << 16)
                if not piece:
                    break
                data += piece
    except (OSError, ValueError, OverflowError):
        return ""
    head, _, body = bytes(data).partition(b"\r\n\r\n")
    found = re.match(rb"HTTP/1\.\d 200 ", head)
    return body.decode("utf-8", "replace") if found else ""


def _daemons():
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and \
                _read(folder / "comm").strip() == DAEMON:
            yield folder


def _threads(folder):
    """How many threads have each name and state."""
    counts = collections.Counter()
    for task in (folder / "task").iterdir():
        words = _read(task / "stat").rpartition(")")
        state = words[2].split()[:1]
        counts[_read(task / "comm").strip(), *state] += 1
    return "\n".join(f"{count} {' '.join(key)}"
                     for key, count in sorted(counts.items()))


def _processes(archive):
    for folder in _daemons():
        where = f"process-{folder.name}"
        for name in ("status", "limits", "sched", "cgroup"):
            archive.add(f"{where}/{name}", f"/proc/{folder.name}/{name}",
                        _read(folder / name))
        archive.add(f"{where}/command",
                    "its command line",
                    _read(folder / "cmdline").replace("\0", " "))
        archive.add(f"{where}/threads",
                    "number, name and state of its threads",
                    _threads(folder))


def _configuration(archive, configs, arguments):
    files = {arguments.file: None}
    for config in configs:
        kind = "compat" if config.compat else "configuration"
        archive.add_json(
            f"{kind}.json",
            "the configuration as Ganesha's parser read it, with what came "
            "from %include and %url", {"read": config.read,
                                       "parameters": config.parameters})
        files.update(dict.fromkeys(config.files()))
    for number, file in enumerate(files):
        archive.add(f"configuration/{number}-{Path(file).name}", file,
                    _read(file))
    ceph_conf = configs[0].module.get("Ceph_Conf") if configs else None
    archive.add("ceph.conf", ceph_conf or CEPH_CONF,
                _read(ceph_conf or CEPH_CONF))


def _cluster(archive, configs, arguments):
    if arguments.offline:
        return
    from . import cluster  # noqa: PLC0415: needs Ceph's Python
    exports = [(config, *pair) for config in configs
               for pair in config.our_exports()]
    for config, export, values in exports[:USERS_AT_MOST]:
        one = cluster.Export(config, export, values, arguments)
        answers = cluster.probe({**one.asked, "what": "cluster"},
                                "asking for the cluster's state",
                                arguments.timeout * 3)
        archive.add_json("cluster.json",
                         f"what client.{one.user} may know of the cluster",
                         answers.ends)
        if answers.result("status"):
            return


def write(arguments, configs, findings, redactor):
    """The archive that --collect names."""
    archive = Archive(redactor)
    archive.add("findings.txt", "what this program found", table(findings))
    archive.add_json("findings.json", "the same", as_objects(findings))
    _configuration(archive, configs, arguments)
    archive.add("versions", "versions and packages",
                _versions(configs, arguments.timeout))
    archive.add("ganesha.log", f"the end of {arguments.log}",
                _tail(arguments.log, arguments.log_lines))
    port = configs[0].parameter("Monitoring_Port", MONITORING_PORT) \
        if configs else MONITORING_PORT
    archive.add("metrics", "one scrape of Ganesha's metrics", _metrics(port))
    _processes(archive)
    _cluster(archive, configs, arguments)
    top = f"ganesha-ceph-async-report-{time.strftime('%Y%m%d-%H%M%S')}"
    archive.write(arguments.collect, top)
    print(f"{arguments.collect}: {len(archive.files) + 1} files",
          file=sys.stderr)
