# SPDX-License-Identifier: LGPL-3.0-or-later
"""The load of Linux's own client, as the crash test sees it."""
import time
from pathlib import Path

from kernel_program import KernelProgram
from ledger import BLOCK, Blocks, Tail
from nfs import nfs4, rpc

HERE = Path(__file__).resolve().parent
FILES = {"blocks": 1, "direct": 2, "synced": 3}     # as kernel_writer.py
BLOCKS = 1024
PATIENCE = 90


class CrashProgram(KernelProgram):
    """A program of this folder.  It says "ready" when it got going."""

    def __init__(self, program, directory, signals, seed, vers="4.2"):
        super().__init__(signals, "python3", "-B", HERE / program, directory,
                         signals, seed, vers=vers, timeout=180)

    def wait_ready(self):
        end = time.monotonic() + PATIENCE
        while not (self.signals / "ready").exists():
            if self.has_ended():
                raise SystemExit(f"the kernel client ended: {self.words()}")
            if time.monotonic() > end:
                self.end()
                raise SystemExit("the kernel client does not get ready")
            time.sleep(0.02)

    def last_words(self):
        """No request begins any more after stop(); those in the air are sent
        again."""
        status = self.wait(200)
        if status != 0:
            raise SystemExit("the kernel client does not end"
                             if status is None else
                             f"the kernel client: {self.words()}")
        return self.told()


class KernelLoad(CrashProgram):
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

    def settle(self, files):
        """Wait for the client; what it had acknowledged goes to FILES."""
        told = self.last_words()
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
