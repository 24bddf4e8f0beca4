# SPDX-License-Identifier: LGPL-3.0-or-later
"""Runs child processes with a limit of time; tells of what takes long."""
import subprocess
import sys
import time

SAY_AFTER_S = 2


def say(line):
    """A line of progress, on stderr."""
    print(line, file=sys.stderr, flush=True)


def run(words, what, limit_s, given=None):
    """Status (None: the time was up), stdout and stderr of a child.

    A child that does not end is killed: nothing here may hang.
    """
    with subprocess.Popen(
            words, text=True, errors="replace", stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        began = time.monotonic()
        told = False
        while True:
            left = began + limit_s - time.monotonic()
            wait = min(left, SAY_AFTER_S) if not told else left
            try:
                out, err = child.communicate(given, timeout=max(wait, 0))
                return child.returncode, out, err
            except subprocess.TimeoutExpired:
                given = None
            if time.monotonic() >= began + limit_s:
                child.kill()
                out, err = child.communicate()
                return None, out, err
            if not told:
                say(f"{what}: waiting, {limit_s:g} s at most")
                told = True
