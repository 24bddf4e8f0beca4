# SPDX-License-Identifier: LGPL-3.0-or-later
"""The machine that packages are installed on, and what is seen on it."""
import hashlib
import json
import os
import re
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

from lab import LOGS, Lab, Log
from nfs import nfs3, rpc

PACKAGES = Path("/packages")
MOUNT_PORT = 2050
CONFIGURATION = "/var/lib/casync-lab/ganesha/a/ganesha.conf"


def command(*words, check=True, env=None):
    """Its output; a failure shows it."""
    done = subprocess.run(
        [str(word) for word in words], stdin=subprocess.DEVNULL, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", **(env or {})},
        check=False)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, words))}: status "
                             f"{done.returncode}\n{done.stdout}")
    return done.stdout


def status(*words):
    return subprocess.run([str(word) for word in words], check=False,
                          stdin=subprocess.DEVNULL, timeout=300,
                          stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode


def plugins():
    """Where this Debian's Ganesha looks for FSALs."""
    found = list(Path("/usr/lib").glob("*/ganesha/libfsalceph.so"))
    assert len(found) == 1, found
    return found[0].parent


def ganesha():
    """The version of this machine's Ganesha."""
    return re.search(r"V(\d[\d.]*\d)", command("ganesha.nfsd", "-v"))[1]


def api(version):
    """The FSAL API of that Ganesha."""
    return "12.0" if version.startswith("5.") else "14.0"


def digest(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def tree(*tops):
    """{path: what it is} of all below; of a link where it leads."""
    found = {}
    for top in tops:
        for path in [Path(top), *Path(top).rglob("*")]:
            if path.is_symlink():
                found[path] = os.readlink(path)
            elif path.is_file():
                found[path] = digest(path)
            elif path.is_dir():
                found[path] = "folder"
    return found


def what_packages_own():
    """All that a package of ours might leave behind, dpkg's lists included."""
    return {path: what for path, what in tree(
        "/etc/ganesha", "/usr/lib64", "/usr/lib/debug", "/usr/share/doc",
        "/usr/libexec", "/usr/sbin", "/usr/share/nfs-ganesha-ceph-async",
        "/usr/share/man/man8", "/usr/share/licenses", "/usr/lib/.build-id",
        "/usr/share/lintian", plugins(), "/var/lib/dpkg/info",
        "/var/lib/dpkg/diversions", "/usr/lib/ganesha").items()
        if path.name != "format"}


def links_that_lead_nowhere(pages):
    """Of all installed pages below; pictures are links, too."""
    found = list(Path(pages).rglob("*.md"))
    assert Path(pages, "README.md") in found
    assert Path(pages, "docs/quick-start.md") in found
    return [f"{page.relative_to(pages)}: {link}" for page in found
            for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)",
                                   page.read_text(encoding="utf-8"))
            if not (page.parent / link).exists()]


class Machine(Lab):
    def __init__(self):
        super().__init__()
        self.fsal = "CEPH"
        self.settings = []

    def up(self):
        self.run("up", "--fsal", "CEPH", timeout=180)
        self.started = True

    def log_end(self):
        return "\n".join(Log(LOGS / "ganesha-a.log").path.read_text(
            errors="replace").splitlines()[-40:])

    def serve(self, fsal, *options):
        """Ganesha, started again with that FSAL; its log from there on."""
        log = Log(LOGS / "ganesha-a.log")
        self.run("ganesha", "restart", "--fsal", fsal, *options)
        return log

    @contextmanager
    def open_files(self, folder, vers="4.2"):
        """A client keeps files open over what happens within."""
        name = f"/mnt/nfs/kept-{time.time_ns()}"
        process = self.start_client("python3", "-B",
                                    self.scripts / "keep_open.py", name,
                                    folder, vers=vers, seconds=150)
        try:
            end = time.monotonic() + 60
            while not (folder / "ready").exists():
                assert process.poll() is None, process.communicate()[0]
                assert time.monotonic() < end, "the client is not ready"
                time.sleep(0.1)
            yield
            (folder / "go").touch()
            assert "all well" in self.end_client(process, seconds=120)
        finally:
            process.terminate()
            process.wait(30)

    @staticmethod
    def check():
        """What ganesha-ceph-async-check finds in the running configuration,
        with the cluster: severities and codes."""
        done = subprocess.run(
            ["ganesha-ceph-async-check", "--json", "-f", CONFIGURATION],
            text=True, timeout=60, stdin=subprocess.DEVNULL,
            capture_output=True, check=False)
        assert done.returncode in (0, 1, 2), done.stdout + done.stderr
        return {(found["severity"], found["code"])
                for found in json.loads(done.stdout)["findings"]}

    def handle_of(self, name):
        """The NFSv3 handle of a name below the pseudo root, which is made if
        it is not there."""
        root = nfs3.root_of("/ceph", MOUNT_PORT)
        connection = rpc.Concurrent(2049)
        try:
            try:
                return nfs3.lookup(connection, root, name)
            except nfs3.Refused:
                return nfs3.create(connection, root, name)
        finally:
            connection.close()

    @staticmethod
    def ours(log, name):
        """The line of our plugin's start under that name, if there is one."""
        lines = log.matching(rf"FSAL {name} [0-9.]+: FSAL API")
        assert len(lines) <= 1, lines
        return lines[0] if lines else None
