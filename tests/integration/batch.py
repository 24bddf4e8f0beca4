# SPDX-License-Identifier: LGPL-3.0-or-later
"""Many cases in one client boot, each with an outcome of its own.

A case that hangs or kills the client costs itself only: the rest goes on in
a new client.
"""
import json
import queue
import threading
import time

from lab import CLIENT_SCRIPTS

BOOT_SECONDS = 60
MOST_BOOTS = 4


class Batch:
    """The outcomes of NAMES over one NFS version, gathered when first
    asked for; below TOP, with more OPTIONS of `lab client`."""

    def __init__(self, lab, version, names, top="/mnt/nfs", options=()):
        self.lab = lab
        self.version = version
        self.top = top
        self.options = options
        self.left = list(names)
        self.outcomes = None
        self.seconds = {}
        self.running = None

    def outcome(self, name):
        """None, or why it failed."""
        if self.outcomes is None:
            self.outcomes = {}
            for boot in range(MOST_BOOTS):
                if self.left:
                    self._boot(boot)
        return self.outcomes.get(
            name, f"did not run: {MOST_BOOTS} clients ended before it")

    def _boot(self, boot):
        directory = f"{self.top}/v{self.version}-{time.time_ns()}"
        process = self.lab.start_client(
            "python3", "-B", CLIENT_SCRIPTS / "runner.py", directory,
            *self.left, vers=self.version, seconds=900,
            options=self.options)
        lines = queue.Queue()
        threading.Thread(target=_read, args=(process.stdout, lines),
                         daemon=True).start()
        self.running = None
        words = []
        try:
            self._follow(lines, words)
        except queue.Empty:
            self.lab.stacks()
            self._lost("hangs; Ganesha's stacks are in the folder of logs",
                       words)
        finally:
            process.terminate()
            process.wait(60)

    def _follow(self, lines, words):
        """Take each line until the client ends."""
        from registry import CASES
        seconds = BOOT_SECONDS
        while (line := lines.get(timeout=seconds)) is not None:
            try:
                event = json.loads(line)
            except ValueError:
                words.append(line)
                continue
            if "begin" in event:
                self.running = event["begin"]
                seconds = CASES[self.running].seconds
            else:
                self._ended(event, words)
                seconds = BOOT_SECONDS
        if self.left:
            self._lost("the client ended", words)

    def _ended(self, event, words):
        name = event["end"]
        self.left.remove(name)
        self.seconds[name] = event["seconds"]
        self.outcomes[name] = event["error"] and \
            event["error"] + "".join(words)
        self.running = None
        words.clear()

    def _lost(self, why, words):
        """The client is no use any more; who is to blame does not run
        again.  After the last case that is the unmount, and ours to answer
        for where it is of NFS."""
        if not self.left:
            if self.options:
                return
            name = list(self.outcomes)[-1]
        else:
            name = self.running or self.left[0]
            self.left.remove(name)
        self.outcomes[name] = f"{why}\n{''.join(words)}"


def _read(stream, lines):
    for line in stream:
        lines.put(line)
    lines.put(None)
