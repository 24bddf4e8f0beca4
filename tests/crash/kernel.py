# SPDX-License-Identifier: LGPL-3.0-or-later
"""The load of Linux's own client, as the crash test sees it."""
import json
import subprocess
import time
from pathlib import Path

from lab_program import client_command
from ledger import BLOCK, Blocks, Tail
from nfs import nfs4, rpc

HERE = Path(__file__).resolve().parent
FILES = {"blocks": 1, "direct": 2, "synced": 3}     # as kernel_writer.py
BLOCKS = 1024
PATIENCE = 90


class KernelProgram:
    """A program of this folder in Linux's client.  It says "ready" in the
    folder SIGNALS, ends when there is "stop", and prints JSON."""

    def __init__(self, program, directory, signals, seed, vers="4.2"):
        self.signals = signals
        self.process = subprocess.Popen(
            client_command("python3", "-B", HERE / program, directory,
                           signals, seed, vers=vers, timeout=180),
            stdin=subprocess.DEVNULL, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)

    def wait_ready(self):
        end = time.monotonic() + PATIENCE
        while not (self.signals / "ready").exists():
            if self.process.poll() is not None:
                raise SystemExit("the kernel client ended: " +
                                 self.process.communicate()[1])
            if time.monotonic() > end:
                self.process.terminate()
                raise SystemExit("the kernel client does not get ready")
            time.sleep(0.02)

    def stop(self):
        """No request begins any more; those in the air are sent again."""
        (self.signals / "stop").touch()

    def told(self):
        """Wait for the client: what it printed."""
        try:
            output, words = self.process.communicate(timeout=200)
        except subprocess.TimeoutExpired:
            self.process.terminate()
            raise SystemExit("the kernel client does not end") from None
        if self.process.returncode:
            raise SystemExit(f"the kernel client: {words}")
        return json.loads(output.splitlines()[-1])


class KernelLoad(KernelProgram):
    def __init__(self, directory, signals, seed):
        super().__init__("kernel_writer.py", directory, signals, seed)
        self.writes = self.bytes = self.looks = 0
        self.slowest = 0.0
        self.complaints = []

    def look(self, port, files, seconds):
        """Watch the change attribute for a while."""
        conn = rpc.Connection(port)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for file in files:
                self.complaints += file.saw(
                    nfs4.get_change(conn, file.handle4).change)
                self.looks += 1
            time.sleep(0.01)
        conn.close()

    def end(self, files):
        """Wait for the client; what it had acknowledged goes to FILES."""
        told = self.told()
        self.writes, self.slowest = told["writes"], told["slowest"]
        self.bytes = told["direct"] + told["synced"] + \
            len(told["blocks"]) * BLOCK
        for file in files:
            file.ledger = self._ledger(file.name, told)
            file.stamp = self.writes + 1
        return self.complaints + told["errors"]

    @staticmethod
    def _ledger(name, told):
        if name == "blocks":
            ledger = Blocks(FILES[name], BLOCKS)
            for block, stamp in told["blocks"].items():
                ledger.firm[int(block)] = stamp
            return ledger
        ledger = Tail(FILES[name])
        ledger.make_firm(ledger.sent(told[name]))
        return ledger
