# SPDX-License-Identifier: LGPL-3.0-or-later
"""The lab as the tests see it: the `lab` program, and Ganesha's logs."""
import contextlib
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


# Lines that test_logs.py looks for.
BAD = re.compile(r":(FATAL|CRIT|MAJ|EMER|ALERT) ?:|[Aa]ssert|"
                 r"Caught signal|SIGSEGV|stack smashing|double free|"
                 r"corrupted|Segmentation")


# Ganesha tells at its end which references to an FSAL were not given back.  It
# takes one at each reload of an export, and keeps it.  An export has one of its
# own: that one is left if a request, or a recall of a delegation, still has the
# export.  test_logs.py accepts those of reloads; the others need a block.
REFERENCES = r"Extra fsal references \(\d+\) hanging around"


class Hang(AssertionError):
    """No end within the time that was given."""


class Lab:
    scripts = CLIENT_SCRIPTS

    def __init__(self):
        self.began = time.time()
        self.started = False
        self.altered = False
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
        self.run("up", "--fresh", timeout=180)
        self.started = True

    def ganesha(self, action, *options, timeout=120, check=True):
        """Anything but a plain restart leaves "a" altered."""
        self.altered = True
        return self.run("ganesha", action, *options, timeout=timeout,
                        check=check)

    def ensure_default(self):
        """ "a" runs CEPH_ASYNC with default keys."""
        if self.altered or not self._pid("a"):
            self.stop_for_good("a")
            self.run("ganesha", "start", "--fresh")
            self.altered = False

    def start_second(self, fsal="CEPH_ASYNC", block="", append=(),
                     export_block="", nfsv4="", timeout=120, check=True,
                     export="", core="", wrapper=""):
        """Start Ganesha "b"; its log from here on, and how it went."""
        log = Log(LOGS / "ganesha-b.log")
        options = [f"--append={text}" for text in append]
        began = time.monotonic()
        done = self.run("ganesha", "start", "--name", "b", "--fresh", "--port",
                        SECOND_PORT, "--pseudo", SECOND_PSEUDO, "--fsal",
                        fsal, "--export", export, "--block", block,
                        "--core", core, "--wrapper", wrapper,
                        "--export-block", export_block, "--nfsv4", nfsv4,
                        *options, timeout=timeout, check=check)
        return SimpleNamespace(
            log=log, status=done.returncode, words=done.stderr,
            seconds=time.monotonic() - began, pid=self._pid("b"))

    def stop_second(self):
        if self._pid("b"):
            self.stop_for_good("b")

    def stop_for_good(self, name):
        """It ends, and all that gateways have left."""
        if self._pid(name):
            self.run("ganesha", "stop", "--name", name)
        self.evict_left()

    def evict(self, pid):
        """End the CephFS sessions of one process."""
        for session in self.sessions(pid):
            self.evict_session(session["id"])

    def evict_left(self):
        """A gateway of several leaves its sessions behind at its end, and
        FSAL_CEPH always does: the capabilities would keep everyone waiting
        until they time out."""
        state = self.stat()
        alive = {str(about["pid"]) for about in state["ganesha"].values()}
        for session in (state["mds"] or {"sessions": []})["sessions"]:
            if session["ganesha"] and \
                    session["metadata"].get("pid") not in alive:
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

    def serving_sessions(self, pid):
        """Those with a name.  Whoever asks whether its name is free has one
        without for a moment, or one that is being refused."""
        return [s for s in self.sessions(pid)
                if s["state"] == "open" and "uuid" in s["metadata"]]

    @contextlib.contextmanager
    def expects(self, *patterns, seconds=10):
        """This block provokes bad lines (BAD) with each of these patterns, or
        SECONDS after it: it fails without them, and test_logs.py does not see
        them."""
        since = [(log, log.end()) for log in self.whole_logs]

        def missing():
            lines = [line for _, _, _, line in self._provoked(since, patterns)]
            return [pattern for pattern in patterns
                    if not any(re.search(pattern, line) for line in lines)]
        try:
            yield
            end = time.monotonic() + seconds
            while missing() and time.monotonic() < end:
                time.sleep(0.05)
            assert not missing(), f"no bad line has come with {missing()}"
        finally:
            self._leave_out(since, patterns)

    @contextlib.contextmanager
    def may_log(self, why, *patterns):
        """The same for bad lines that come or not.  WHY says what decides."""
        assert why
        since = [(log, log.end()) for log in self.whole_logs]
        try:
            yield
        finally:
            self._leave_out(since, patterns)

    def may_lose(self):
        """A block in which "a" or "b" loses its CephFS session: Ganesha's words
        for "ask again" meanwhile, and for the error that a lost lock gets."""
        return self.may_log(
            "what clients ask for while there is no session decides",
            r"Unable to (un)?lock FSAL, error=STATE_",
            r"ERR_IO but was set non-retryable")

    def may_delegate(self):
        """A Ganesha that has delegations, and ends in this block.  The lab's
        own look at a mount, by NFSv4.0, has no way back to it.  A recall has
        the export until Ganesha looks at it again, within a second, also if
        the delegation is back; at its end Ganesha drops that work, and does
        not give the export back."""
        return self.may_log(
            "whether it is looked at meanwhile, and how old a recall is",
            "setclid confirm: Callback channel is down", REFERENCES)

    def may_have_news(self):
        """A Ganesha with a recovery database in RADOS ends."""
        return self.may_log(
            "whether the database has news for it just then",
            "Attempt to wake stopped/paused fridge reaper")

    def _leave_out(self, since, patterns):
        for log, begin, end, _ in self._provoked(since, patterns):
            log.leave_out(begin, end)

    @staticmethod
    def _provoked(since, patterns):
        """(log, begin, end, line) of each bad line with one of PATTERNS."""
        return [(log, *place, line) for log, begin in since
                for *place, line in log.lines_since(begin)
                if BAD.search(line)
                and any(re.search(pattern, line) for pattern in patterns)]

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

    def end_client(self, process, seconds=120, status=0):
        """Its output; whoever takes longer than SECONDS is a hang.  It has to
        end with STATUS."""
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.stacks()
            output, _ = process.communicate(timeout=60)
            raise Hang(
                f"no end within {seconds} s: Ganesha's stacks and the "
                f"client kernel's tasks are in {LOGS}\n{output}") from None
        assert process.returncode == status, \
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
