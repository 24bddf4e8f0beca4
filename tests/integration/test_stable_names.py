# SPDX-License-Identifier: LGPL-3.0-or-later
"""Stable_Metadata: what is answered while the MDS cannot write its journal,
because its OSDs stand still, and while it stands still itself."""
import contextlib
import os
import signal
import threading
import time

import pytest

from lab_program import LOGS, Log, has_reread, until
from nfs import nfs3, nfs4, rpc
from test_stalled_osd import RUN, stopped_osds

PATIENCE_S = 8          # for what does not wait
WAITS_S = 1.5           # this long without an answer: it waits
SETTLED_S = 0.5         # what was made before is in the journal by then
SENT_MAX = 64           # CASYNC_FLUSH_SENT_MAX
CHANGES = 300
MODE, OWNER, SIZE, MTIME = 0o751, 4711, 12345, 10**18
NAMES = {"create", "mkdir", "symlink", "mknod", "remove", "rmdir", "rename",
         "link", "OPEN of v4.2"}
FILES = 100
SENT = {"chmod", "chown", "utimes", "chmod of v4.2"}
NEVER_SENT = {"size", "chmod of a directory"}


class Asked:
    """Requests under way at once: the status of each that is answered, by its
    name."""

    def __init__(self, lab):
        self.lab = lab
        self.connection = rpc.Concurrent(2049)
        root = nfs3.root_of("/ceph", 2050)
        name = f"stable-{time.time_ns()}"
        self.top = nfs3.make_directory(self.connection, root, name)
        self.client = nfs4.Client(2049, name)
        self.top_v4 = self.client.lookup(name)
        self.answers = {}

    def keys(self, text):
        """These keys, by a reload."""
        log = Log(LOGS / "ganesha-a.log")
        self.lab.ganesha("reload", "--export", text)
        until(lambda: has_reread(log), "the configuration is read")

    def folder(self, name):
        return nfs3.make_directory(self.connection, self.top, name)

    def by_v4(self, name):
        """The handle of what is in our folder."""
        return self.client.lookup(name, self.top_v4)

    def file(self, name, folder=None):
        return nfs3.create(self.connection, folder or self.top, name)

    def send(self, what, procedure, arguments):
        def answered(reader):
            self.answers[what] = reader.number()
        self.connection.send(procedure, arguments, answered)

    def send_v4(self, what, call, *arguments, **more):
        """Its one request at a time, from a thread."""
        def ask():
            call(*arguments, **more)
            self.answers[what] = 0
        threading.Thread(target=ask, daemon=True).start()

    def are_answered(self, names):
        until(lambda: names <= self.answers.keys(),
              f"{sorted(names)} are answered", PATIENCE_S, 0.02)
        assert not any(self.answers[name] for name in names), self.answers

    def attributes(self, handle):
        """By a new connection."""
        connection = rpc.Connection(2049)
        try:
            return nfs3.get_attributes(connection, handle)
        finally:
            connection.close()

    def close(self):
        self.connection.close()
        self.client.leave()


@pytest.fixture
def asked(lab):
    asked = Asked(lab)
    yield asked
    asked.close()


def prepared_names(asked):
    """Arguments of send(), in a folder for each: of one directory they would
    share what they wait for."""
    to = {kind: asked.folder(kind) for kind in
          ("create", "mkdir", "symlink", "mknod", "remove", "rmdir", "rename",
           "link")}
    for kind in ("remove", "rename"):
        asked.file("old", to[kind])
    linked = asked.file("old", to["link"])
    nfs3.make_directory(asked.connection, to["rmdir"], "old")
    return {
        "create": (nfs3.CREATE, nfs3.create_arguments(to["create"], "new")),
        "mkdir": (nfs3.MKDIR, nfs3.directory_arguments(to["mkdir"], "new")),
        "symlink": (nfs3.SYMLINK,
                    nfs3.symlink_arguments(to["symlink"], "new")),
        "mknod": (nfs3.MKNOD, nfs3.fifo_arguments(to["mknod"], "new")),
        "remove": (nfs3.REMOVE, nfs3.named(to["remove"], "old")),
        "rmdir": (nfs3.RMDIR, nfs3.named(to["rmdir"], "old")),
        "rename": (nfs3.RENAME, nfs3.rename_arguments(
            to["rename"], "old", to["rename"], "new")),
        "link": (nfs3.LINK, nfs3.link_arguments(linked, to["link"], "new")),
    }


def prepared_attributes(asked):
    """The handles, and arguments of send(); a file for each."""
    to = {what: asked.file(what)
          for what in (SENT | NEVER_SENT) - {"chmod of a directory"}}
    to["chmod of a directory"] = asked.folder("directory")
    set_to = {"chmod": {"mode": MODE}, "chown": {"uid": OWNER, "gid": OWNER},
              "utimes": {"mtime": MTIME}, "size": {"size": SIZE},
              "chmod of a directory": {"mode": MODE}}
    return to, {what: (nfs3.SETATTR, nfs3.setting(to[what], **values))
                for what, values in set_to.items()}


@pytest.mark.parametrize("value", ("mds", "journal"))
def test_a_name_waits_for_the_journal_with_journal_alone(asked, value):
    asked.keys(f"Stable_Metadata = {value};")
    requests = prepared_names(asked)
    asked.folder("v4.2")
    folder = asked.by_v4("v4.2")
    time.sleep(SETTLED_S)
    with stopped_osds():
        for what, arguments in requests.items():
            asked.send(what, *arguments)
        asked.send_v4("OPEN of v4.2", asked.client.open, "new",
                      create=nfs4.UNCHECKED, directory=folder)
        if value == "mds":
            asked.are_answered(NAMES)
        else:
            time.sleep(WAITS_S)
            assert not asked.answers, "answered before it was journaled"
    asked.are_answered(NAMES)


@pytest.mark.parametrize("value", ("journal", "mds"))
def test_attributes_of_a_file_wait_with_journal_alone(asked, value):
    """A size waits with both, and so does what is no file."""
    asked.keys(f"Stable_Metadata = {value};")
    handles, requests = prepared_attributes(asked)
    file = asked.by_v4("chmod of v4.2")
    sent = SENT if value == "mds" else set()
    time.sleep(SETTLED_S)
    with stopped_osds():
        for what, arguments in requests.items():
            asked.send(what, *arguments)
        asked.send_v4("chmod of v4.2", asked.client.set, file, mode=MODE)
        asked.are_answered(sent)
        time.sleep(WAITS_S)
        assert set(asked.answers) == sent
    asked.are_answered(SENT | NEVER_SENT)
    now = {what: asked.attributes(handle) for what, handle in handles.items()}
    assert {now[what].mode & 0o777 for what in now if "chmod" in what} == {MODE}
    assert (now["chown"].uid, now["chown"].gid) == (OWNER, OWNER)
    assert (now["utimes"].mtime, now["size"].size) == (MTIME, SIZE)


@contextlib.contextmanager
def stopped_mds():
    pid = int((RUN / "mds.a.pid").read_text())
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_attributes_wait_for_the_mds_with_mds(asked):
    asked.keys("Stable_Metadata = mds;")
    handles, requests = prepared_attributes(asked)
    time.sleep(SETTLED_S)
    # Its capabilities are here: only the answer to SETATTR needs the MDS.
    for handle in handles.values():
        asked.attributes(handle)
    names = {"chmod", "chown", "utimes"}
    with stopped_mds():
        for what in names:
            asked.send(what, *requests[what])
        time.sleep(WAITS_S)
        assert not asked.answers, "answered without the MDS"
    asked.are_answered(names)


def test_after_64_sent_changes_of_a_file_one_waits(asked):
    """What libcephfs keeps until it is journaled stays bounded."""
    asked.keys("Stable_Metadata = mds;")
    file = asked.file("file")
    time.sleep(SETTLED_S)
    done = []

    def next_change():
        asked.connection.send(nfs3.SETATTR, nfs3.setting(
            file, mode=mode_of(len(done))), answered)

    def answered(reader):
        done.append(reader.number())
        if len(done) < CHANGES:
            next_change()
    with stopped_osds():
        next_change()
        until(lambda: len(done) >= SENT_MAX, f"{SENT_MAX} are answered",
              PATIENCE_S, 0.02)
        time.sleep(WAITS_S)
        assert len(done) == SENT_MAX
    until(lambda: len(done) == CHANGES, "all are answered")
    assert not any(done)
    assert asked.attributes(file).mode & 0o777 == mode_of(CHANGES - 1)


def mode_of(number):
    """Each another than the one before."""
    return number % 511 + 1


def test_a_mode_outlives_the_gateway(asked):
    """The MDS has it, in its memory."""
    asked.keys("Stable_Metadata = mds;")
    file = asked.file("file")
    time.sleep(SETTLED_S)
    with stopped_osds():
        asked.send("chmod", nfs3.SETATTR, nfs3.setting(file, mode=MODE))
        asked.are_answered({"chmod"})
        asked.lab.ganesha("kill9")
    asked.lab.ganesha("start")
    assert asked.attributes(file).mode & 0o777 == MODE


def test_removed_files_leave_no_capabilities(asked):
    """What a sent change has opened is forgotten with its file."""
    asked.keys("Stable_Metadata = mds;")
    pid = str(asked.lab.stat()["ganesha"]["a"]["pid"])

    def capabilities():
        return sum(session["num_caps"]
                   for session in asked.lab.stat()["mds"]["sessions"]
                   if session["metadata"].get("pid") == pid)
    before = capabilities()
    for number in range(FILES):
        file = asked.file(f"file-{number}")
        nfs3.give(asked.connection, file, 0, MODE)
    assert capabilities() >= before + FILES
    for number in range(FILES):
        nfs3.remove(asked.connection, asked.top, f"file-{number}")
    until(lambda: capabilities() < before + FILES / 2,
          "capabilities of removed files are given back", seconds=30)
