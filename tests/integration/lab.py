# SPDX-License-Identifier: LGPL-3.0-or-later
"""The lab as the tests see it: the `lab` program, and Ganesha's logs."""
import re
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

from lab_program import LOGS, Log, ceph, client_command, lab, stat

CLIENT_SCRIPTS = Path(__file__).parent / "client"
TESTS = Path(__file__).resolve().parents[1]
SECOND_PORT = 12049
SECOND_PSEUDO = "/second"


def resident_kib(pid):
    """What a process has in memory."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(re.search(r"VmRSS:\s+(\d+) kB", text)[1])


# Ganesha's words for "ask again" while a CephFS session is lost, for the error
# that a lost lock gets, and for a client of ours without a callback channel.
AFTER_A_LOSS = (r"Unable to (un)?lock FSAL, error=STATE_",
                r"ERR_IO but was set non-retryable", "nfs_rpc_get_chan failed")

# Ganesha takes a reference to the FSAL at each reload of an export, and does
# not give it back; a request that ends late holds one, too.  It tells when it
# ends.
REFERENCES = r"Extra fsal references \(\d+\) hanging around"


class Hang(AssertionError):
    """No end within the time that was given."""


class Lab:
    scripts = CLIENT_SCRIPTS

    def __init__(self):
        self.began = time.time()
        self.started = False
        self.altered = False
        self.expected = []      # patterns of log lines that tests provoke
        self.whole_logs = []

    # --- the lab program

    def run(self, *args, timeout=120, check=True):
        """`lab ARGS`; a failure shows what it said."""
        return lab(*args, timeout=timeout, check=check)

    def job(self, program, *args, limit_s):
        """What a program of tests/ printed; it must pass, and end in time."""
        try:
            done = subprocess.run(
                [sys.executable, "-B", TESTS / program, *args], text=True,
                cwd="/tmp", timeout=limit_s, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        except subprocess.TimeoutExpired as err:
            self.stacks()
            raise Hang(f"{program}: no end within {limit_s} s:\n"
                       f"{err.stdout}") from None
        assert done.returncode == 0, done.stdout
        return done.stdout

    def up(self):
        self.whole_logs = [Log(LOGS / f"ganesha-{name}.{kind}")
                           for name in "ab" for kind in ("log", "out")]
        self.run("up", "--fsal", "CEPH_ASYNC", "--export", "", "--block", "",
                 "--core", "", "--nfsv4", "", "--export-block", "",
                 "--append", "", "--wrapper", "", timeout=180)
        self.started = True

    def ganesha(self, action, *options, timeout=120, check=True):
        """Anything but a plain restart leaves "a" altered."""
        self.altered = True
        return self.run("ganesha", action, *options, timeout=timeout,
                        check=check)

    def ensure_default(self):
        """ "a" runs CEPH_ASYNC with default keys."""
        if self.altered or not self._pid("a"):
            self.run("ganesha", "restart", "--fsal", "CEPH_ASYNC",
                     "--export", "", "--block", "", "--core", "",
                     "--export-block", "", "--append", "", "--nfsv4", "")
            self.altered = False

    def start_second(self, fsal="CEPH_ASYNC", block="", append=(),
                     export_block="", nfsv4="", timeout=120, check=True,
                     export="", core="", wrapper=""):
        """Start Ganesha "b"; its log from here on, and how it went."""
        log = Log(LOGS / "ganesha-b.log")
        options = [f"--append={text}" for text in append or [""]]
        began = time.monotonic()
        done = self.run("ganesha", "start", "--name", "b", "--port",
                        SECOND_PORT, "--pseudo", SECOND_PSEUDO, "--fsal",
                        fsal, "--export", export, "--block", block,
                        "--core", core, "--wrapper", wrapper,
                        "--export-block", export_block, "--nfsv4", nfsv4,
                        *options,
                        timeout=timeout, check=check)
        return SimpleNamespace(
            log=log, status=done.returncode, words=done.stderr,
            seconds=time.monotonic() - began, pid=self._pid("b"))

    def stop_second(self):
        """It ends; FSAL_CEPH leaves its session behind, whose capabilities
        would keep everyone waiting until the session times out."""
        pid = self._pid("b")
        if pid:
            self.run("ganesha", "stop", "--name", "b")
            if self.stat()["ganesha"]["b"]["fsal"] == "CEPH":
                self.evict(pid)

    def evict(self, pid):
        """End the CephFS sessions of one process."""
        for session in self.sessions(pid):
            self.evict_session(session["id"])

    @staticmethod
    def evict_session(number):
        ceph("tell", "mds.0", "client", "evict", f"id={number}")

    def evict_all_but_a(self):
        """What a killed daemon or client holds would keep everyone waiting."""
        state = self.stat()
        for session in state["mds"]["sessions"]:
            if session["metadata"].get("pid") != \
                    str(state["ganesha"]["a"]["pid"]):
                self.evict_session(session["id"])

    def _pid(self, name):
        return self.stat()["ganesha"].get(name, {}).get("pid")

    @staticmethod
    def exported(pseudo, port=SECOND_PORT):
        """Does that Ganesha let a client mount it?"""
        done = subprocess.run(
            ["timeout", "10", "nfs-ls",
             f"nfs://127.0.0.1{pseudo}?version=4&nfsport={port}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, check=False)
        return done.returncode == 0

    # --- what it shows

    @staticmethod
    def stat():
        return stat()

    def journal_events(self):
        return self.stat()["mds"]["journal_events"]

    def sessions(self, pid):
        """The CephFS sessions of one process."""
        return [s for s in self.stat()["mds"]["sessions"]
                if s["metadata"].get("pid") == str(pid)]

    def tails(self, lines=40):
        """The end of what Ganesha logged in this run."""
        parts = []
        for log in self.whole_logs:
            text = log.text()
            if text:
                end = "\n".join(text.splitlines()[-lines:])
                parts.append(f"--- {log.path}\n{end}")
        return "\n".join(parts) or "(they are empty)"

    def stacks(self):
        """Every Ganesha's stacks, into the folder of logs."""
        for name, about in self.stat()["ganesha"].items():
            if about["pid"]:
                self.run("ganesha", "stacks", "--name", name, timeout=180,
                         check=False)

    # --- the kernel client

    def start_client(self, *cmd, vers="4.2", name="a", seconds=120,
                     options=()):
        """A command in a kernel client, running beside the test."""
        return subprocess.Popen(
            client_command(*cmd, vers=vers, timeout=seconds + 3,
                           options=("--name", name, *options)),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace")

    def end_client(self, process, seconds=120):
        """Its output; whoever takes longer than SECONDS is a hang."""
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.stacks()
            output, _ = process.communicate(timeout=60)
            raise Hang(
                f"no end within {seconds} s: Ganesha's stacks and the "
                f"client kernel's tasks are in {LOGS}\n{output}") from None
        assert process.returncode == 0, \
            f"status {process.returncode}:\n{output}"
        return output

    def client(self, *cmd, vers="4.2", name="a", seconds=120):
        """Run a command in a kernel client; it must succeed."""
        return self.end_client(
            self.start_client(*cmd, vers=vers, name=name, seconds=seconds),
            seconds)

    def script(self, script, *args, **options):
        """A Python file of client/ in the kernel client."""
        return self.client("python3", "-B", CLIENT_SCRIPTS / script, *args,
                           **options)
