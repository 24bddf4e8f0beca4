# SPDX-License-Identifier: LGPL-3.0-or-later
"""The shim in a running Ganesha: its rules written, its events read."""
import json
import os
import time
from pathlib import Path

import cephfs

from calls import OBJECT
from lab import Log

FOLDER = Path("/var/lib/casync-lab/ganesha/a/faults")
PATIENCE = 10


class Faults:
    def __init__(self):
        self.log = Log(FOLDER / "events")

    def set(self, *rules):
        """In force when this returns; events are counted from here on."""
        self.log = Log(FOLDER / "events")
        new = FOLDER / "rules.new"
        new.write_text("".join(f"{rule}\n" for rule in rules))
        os.replace(new, FOLDER / "rules")
        self.wait(lambda: self.events("rules", "refused"), "word of the rules")
        refused = self.events("refused")
        assert not refused, refused
        assert self.events("rules")[-1]["count"] == len(
            [rule for rule in rules
             if rule.split()[0] not in ("seed", "release")])

    def clear(self):
        """No rules, nothing held; events count on from where they did."""
        log = self.log
        self.set("release")
        self.log = log

    def events(self, *names):
        text = self.log.text()
        whole = text[:text.rfind("\n") + 1]
        events = [json.loads(line) for line in whole.splitlines()]
        return [event for event in events if event["event"] in names]

    def hits(self, action=None, kind=None):
        """The calls to which something happened, since set()."""
        returned = self.events("returned")
        assert not returned, returned
        return [hit for hit in self.events("hit")
                if action in (None, hit["action"])
                and kind in (None, hit["kind"])]

    @staticmethod
    def wait(probe, what, seconds=PATIENCE):
        end = time.monotonic() + seconds
        while not probe():
            assert time.monotonic() < end, f"no {what} within {seconds} s"
            time.sleep(0.02)


def start(lab, export="", append="", core=""):
    """Ganesha "a" with the shim and no rules.  An error that is injected is
    no loss of the session, and shall arrive."""
    lab.ganesha("restart", "--faults", "--fsal", "CEPH_ASYNC", "--export",
                export, "--block", "Reconnect = false;", "--append", append,
                "--core", core)
    return Faults()


def small_objects():
    """The name of a new folder at the top whose files have such objects."""
    name = f"small-{time.time_ns()}"
    fs = cephfs.LibCephFS(conffile="/etc/ceph/ceph.conf")
    fs.mount()
    try:
        fs.mkdir(f"/{name}", 0o777)
        fs.setxattr(f"/{name}", "ceph.dir.layout", (
            f"stripe_unit={OBJECT} stripe_count=1 object_size={OBJECT}"
            ).encode(), 0)
    finally:
        fs.shutdown()
    return name
