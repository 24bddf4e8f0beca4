# SPDX-License-Identifier: LGPL-3.0-or-later
"""The configuration read again while clients are served.

By SIGHUP all of ganesha.conf, by UpdateExport (DBus) one export.  Tuning keys
are in force at once, on the export as it runs; what cannot change is refused
in one line, and the export goes on as it was.
"""
import functools
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import dbus
import pytest

import bus
from fuse import Fuse
from lab import (LOGS, REFERENCES, SECOND_PORT, SECOND_PSEUDO, Log,
                 resident_kib)
from lab_program import has_reread
from nfs import nfs4
from nfs.xdr import number, wide
from refusals import NO_EXPORT, NO_UPDATE, REREAD
from test_bad_input import export

SOAK = Path(__file__).resolve().parents[1] / "soak" / "reload.py"
PATIENCE_S = 15
UNSTABLE, FILE_SYNC = 0, 2
MAX_READ, MAX_WRITE = 30, 31

# Key, new value, and the line that tells of it.
LIVE = (
    ("Stable_Write", "full", "full (was data)"),
    ("Stable_Metadata", "journal", "journal (was mds)"),
    ("Promote_Unstable", "false", "false (was true)"),
    ("Max_Inflight", "33", "33 (was 8192)"),
    ("Max_Inflight_Bytes", "2097152", "2097152 (was 1073741824)"),
    ("Max_Read", "65536", "65536 (was 67108864)"),
    ("Max_Write", "131072", "131072 (was 67108864)"),
    ("Gather_Bytes", "8192", "8192 (was 65536)"),
    ("Object_Size", "1048576", "1048576 (was 0)"),
    ("Stripe_Unit", "524288", "524288 (was 0)"),
    ("Stripe_Count", "2", "2 (was 0)"),
    ("Data_Pool", "POOL", '"POOL" (was not set)'),
    ("Reconnect", "false", "false (was true)"),
    ("Reconnect_Timeout", "600", "600 (was 0)"),
    ("Drain_Timeout", "7", "7 (was 30)"),
    ("Slow_Op_Warn", "1234", "1234 (was 10000)"),
    ("Stats_Interval", "3600", "3600 (was 0)"),
)

IDENTITY = (
    ("User_Id", '"somebody"', 'User_Id = "somebody" (was not set)'),
    ("Secret_Access_Key", '"hushhush"', r"Secret_Access_Key (not shown)"),
    ("Filesystem", '"other"', 'Filesystem = "other" (was not set)'),
    ("Cmount_Path", '"/elsewhere"', 'Cmount_Path = "/elsewhere" (was not set)'),
    ("Sec_Label_Xattr", '"user.label"',
     'Sec_Label_Xattr = "user.label" (was "security.selinux")'),
    ("Mount_Timeout", "61", "Mount_Timeout = 61 (was 120)"),
    ("Session_Timeout", "77", "Session_Timeout = 77 (was 300)"),
    ("Ceph_Option", '"client_cache_size = 7"',
     'Ceph_Option = "client_cache_size=7" (was not set)'),
)


class Reloaded:
    """Ganesha "b", whose configuration is read again and again."""

    def __init__(self, cluster, second):
        self.cluster = cluster
        self.begun = second()
        self.log = self.begun.log

    def reload(self, *options):
        """What it logged meanwhile."""
        log = Log(self.log.path)
        self.cluster.run("ganesha", "reload", "--name", "b", *options)
        until(lambda: has_reread(log), "it has been read", log)
        return log

    def keys(self, *keys):
        return self.reload("--export", " ".join(
            f"{name} = {value};" for name, value in keys))

    def expects(self, *lines):
        """Of a reload that is not all right."""
        return self.cluster.expects(*lines, REREAD)

    def serves(self):
        assert self.cluster.exported(SECOND_PSEUDO), self.log.text()
        assert len(self.cluster.sessions(self.begun.pid)) == 1
        assert not self.log.matching("reclaimed from a former run")


def until(true, what, log):
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline, f"not: {what}\n{log.text()}"
        time.sleep(0.05)


@pytest.fixture
def reloaded(cluster, second):
    return Reloaded(cluster, second)


@pytest.fixture
def client(reloaded):
    client = nfs4.Client(SECOND_PORT, f"reload-{time.time_ns()}")
    yield client
    client.leave()


@pytest.fixture
def fuse():
    mount = Fuse()
    yield mount
    mount.end()


def told(log, text):
    """The line is there, once."""
    lines = [line for line in log.text().splitlines() if text in line]
    assert len(lines) == 1, f"{len(lines)} lines with {text!r}:\n{log.text()}"
    return lines[0]


def committed(file):
    """What an unstable WRITE is answered."""
    data = b"x" * 4096
    return file.client.compound(nfs4.put(file.handle), (
        38, file.stateid + wide(0) + number(UNSTABLE) +
        number(len(data)) + data,
        lambda reply: (reply.skip(4), reply.number(), reply.skip(8))[1]))[-1]


def most(client, attribute):
    return int.from_bytes(client.get(client.root, attribute)[0])


def layout(fuse, name):
    text = os.getxattr(fuse.folder / name, "ceph.file.layout").decode()
    return dict(word.split("=", 1) for word in text.split())


# --- keys that change

def test_tuning_keys_change_on_the_live_export(cluster, reloaded, client,
                                               fuse):
    """One open file and one client see all of it; nothing is mounted anew."""
    names = [f"reload-{time.time_ns()}-{n}" for n in range(3)]
    file = client.open(names[0], create=nfs4.UNCHECKED)
    assert committed(file) == FILE_SYNC
    assert most(client, MAX_READ) == most(client, MAX_WRITE) == 64 << 20
    pool = layout(fuse, names[0])["pool"]

    log = reloaded.keys(*((name, value.replace("POOL", pool))
                          for name, value, _ in LIVE))
    for name, _, words in LIVE:
        told(log, f"export 2: {name} = {words.replace('POOL', pool)}")
    assert not log.matching(":CRIT|:MAJ|session '")
    assert committed(file) == UNSTABLE
    assert most(client, MAX_READ) == 64 << 10
    assert most(client, MAX_WRITE) == 128 << 10
    client.open(names[1], create=nfs4.UNCHECKED).close()
    got = layout(fuse, names[1])
    assert (got["object_size"], got["stripe_unit"], got["stripe_count"]) == (
        "1048576", "524288", "2")

    # A file without them: back to the defaults.
    log = reloaded.reload("--export", "")
    for name, _, words in LIVE:
        value, was = re.fullmatch(r"(.*) \(was (.*)\)", words).groups()
        told(log, f"export 2: {name} = {was} (was "
                  f"{value.replace('POOL', pool)})")
    assert committed(file) == FILE_SYNC
    assert most(client, MAX_READ) == most(client, MAX_WRITE) == 64 << 20
    client.open(names[2], create=nfs4.UNCHECKED).close()
    assert layout(fuse, names[2])["object_size"] == str(4 << 20)
    file.close()
    reloaded.serves()

    # The same once more changes nothing.
    assert not reloaded.reload().matching(r"export \d+: \w+ = ")


def test_stable_write_decides_on_the_journal(cluster, reloaded, client):
    """data: no journal entry a write; full: one each."""
    file = client.open(f"reload-{time.time_ns()}", create=nfs4.UNCHECKED)
    for mode, wanted in (("full", True), ("data", False), ("full", True)):
        reloaded.keys(("Stable_Write", mode))
        for _ in range(5):
            client.write(file.handle, 0, b"y" * 4096, file.stateid)
        before = cluster.journal_events()
        for _ in range(40):
            client.write(file.handle, 0, b"y" * 4096, file.stateid)
        events = cluster.journal_events() - before
        assert (events >= 40) is wanted, f"{mode}: {events} journal events"
    file.close()


# --- what is refused

def test_refused_is_all_of_the_export(till_end, reloaded, client):
    """What Ganesha itself reads in EXPORT { } as well."""
    till_end(reloaded.expects("export 2: reload refused", *NO_UPDATE))
    file = client.open(f"reload-{time.time_ns()}", create=nfs4.UNCHECKED)
    log = reloaded.reload("--export-block", "MaxRead = 131072;",
                          "--export", 'User_Id = "x";')
    told(log, "reload refused")
    assert most(client, MAX_READ) == 64 << 20
    assert len(client.read(file.handle, 0, 1)) == 0
    file.write(0, b"z" * (256 << 10))
    assert len(client.read(file.handle, 0, 256 << 10)) == 256 << 10
    reloaded.reload("--export-block", "MaxRead = 131072;", "--export", "")
    assert len(client.read(file.handle, 0, 256 << 10)) == 128 << 10
    file.close()
    reloaded.reload("--export-block", "")


def test_keys_of_the_mount_are_refused(till_end, reloaded, client):
    """Each in one line, with nothing else of the block taken."""
    till_end(reloaded.expects("export 2: reload refused", *NO_UPDATE))
    name = f"reload-{time.time_ns()}"
    file = client.open(name, create=nfs4.UNCHECKED)
    for key, value, words in IDENTITY:
        log = reloaded.keys((key, value), ("Stable_Write", "full"),
                            ("Max_Read", "65536"))
        line = told(log, "reload refused")
        assert ":CRIT :export 2: reload refused, all old values stay; " \
            f"these keys need a new mount: {words}; restore them, or remove " \
            "the export and add it again" in line, line
        assert not log.matching(r"export 2: \w+ = .* \(was ")
        assert "hushhush" not in log.text()
        assert committed(file) == FILE_SYNC
        assert most(client, MAX_READ) == 64 << 20
    file.close()
    # Put back, all is well.
    log = reloaded.reload("--export", "Stable_Write = full;")
    told(log, "export 2: Stable_Write = full (was data)")
    assert not log.matching(":CRIT")
    reloaded.serves()


@pytest.mark.parametrize("keys, words", [
    ("Stable_Write = never; Max_Read = 65536;",
     "Stable_Write = never is refused: it must be one of"),
    ("Max_Inflight = 0; Max_Read = 65536;",
     "Max_Inflight = 0 is refused: it must be a number of requests"),
    ("Object_Size = 131072; Stripe_Unit = 196608; Max_Read = 65536;",
     "Object_Size = 131072 with Stripe_Unit = 196608: "),
    ("Colour = red; Max_Read = 65536;", "export 2: FSAL { } is refused"),
    ("Data_Pool = nowhere; Max_Read = 65536;",
     "export 2: Data_Pool 'nowhere': Ceph has no pool of that name")])
def test_a_wrong_value_leaves_the_old_ones(till_end, reloaded, client, keys,
                                           words):
    till_end(reloaded.expects(re.escape(words), *NO_UPDATE))
    log = reloaded.reload("--export", keys)
    told(log, words)
    assert not log.matching(r"export 2: \w+ = .* \(was ")
    assert most(client, MAX_READ) == 64 << 20
    reloaded.serves()


def test_what_ganesha_refuses_does_not_end_the_export(till_end, reloaded,
                                                      client):
    """Its own SIGHUP removes an export that it could not update."""
    till_end(reloaded.expects("Error count", "Tag for export update"))
    log = reloaded.reload("--export-block", 'Tag = "other";')
    assert log.matching("Tag for export update 2")
    assert client.get(client.root, MAX_READ)
    reloaded.serves()
    reloaded.reload("--export-block", "")
    reloaded.serves()


# --- CEPH_ASYNC { }

def test_defaults_are_read_again(till_end, reloaded):
    till_end(reloaded.expects(r"CEPH_ASYNC \{ \}: reload refused",
                              "Max_Inflight = 0 is refused: "))
    log = reloaded.reload("--block", "Max_Inflight = 77; Slow_Op_Warn = 5;")
    told(log, "CEPH_ASYNC { }, for exports read later: "
              "Max_Inflight = 77 (was 8192)")
    told(log, "export 2: Max_Inflight = 77 (was 8192)")
    told(log, "export 2: Slow_Op_Warn = 5 (was 10000)")

    # Over them the export's own.
    log = reloaded.reload("--export", "Max_Inflight = 78;")
    told(log, "export 2: Max_Inflight = 78 (was 77)")
    log = reloaded.reload("--export", "", "--block",
                          "Max_Inflight = 79; Umask = 022; NodeId = x;")
    told(log, "CEPH_ASYNC { }: reload refused, all old values stay; "
              'these keys need a restart of Ganesha: Umask = 022 (was 0), '
              'NodeId = "x" (was not set)')
    # The export is read all the same, with the old defaults.
    told(log, "export 2: Max_Inflight = 77 (was 78)")
    log = reloaded.reload("--block", "Max_Inflight = 0;")
    told(log, "Max_Inflight = 0 is refused: it must be ")
    assert not log.matching(r"export 2: \w+ = ")
    # Without the block nothing is set any more.
    log = reloaded.reload("--block", "")
    told(log, "export 2: Max_Inflight = 8192 (was 77)")
    told(log, "export 2: Slow_Op_Warn = 10000 (was 5)")
    reloaded.serves()


def test_cache_bytes_are_in_force_at_once(reloaded):
    log = reloaded.reload("--block", "Cache_Bytes = 1048576;")
    told(log, "the read cache has 1048576 bytes from now on (was 268435456)")
    log = reloaded.reload("--block", "Cache_Bytes = 0;")
    told(log, "the read cache has 0 bytes from now on (was 1048576), "
              "0 are in use")
    log = reloaded.reload("--block", "Cache_Bytes = 0; Max_Inflight = 77;")
    assert not log.matching("the read cache has")
    log = reloaded.reload("--block", "")
    told(log, "the read cache has 268435456 bytes from now on (was 0)")
    reloaded.serves()


def test_a_default_that_takes_a_mount_holds_for_new_exports(till_end,
                                                            reloaded):
    till_end(reloaded.expects("export 2: reload refused", *NO_UPDATE))
    log = reloaded.reload("--block", "Mount_Timeout = 59;")
    told(log, "CEPH_ASYNC { }, for exports read later: "
              "Mount_Timeout = 59 (was 120)")
    told(log, "export 2: reload refused, all old values stay; these keys "
              "need a new mount: Mount_Timeout = 59 (was 120); ")
    reloaded.serves()
    reloaded.reload("--block", "")


def test_a_refused_block_voids_all_exports(cluster, till_end, second):
    """Not only the first one that is read: the others had no threads."""
    till_end(cluster.expects(
        "Max_Inflight = 0 is refused: ",
        r"export 78 is refused: CEPH_ASYNC \{ \} was refused",
        r"Failed to initialize FSAL", *NO_EXPORT))
    result = second("CEPH", append=[
        "CEPH_ASYNC { Max_Inflight = 0; }", export(pseudo="/one", number=77),
        export(pseudo="/two", number=78)])
    told(result.log, "export 78 is refused: CEPH_ASYNC { } was refused")
    assert not cluster.exported("/one")
    assert not cluster.exported("/two")
    # Once it is right, a reload brings them.
    cluster.run("ganesha", "reload", "--name", "b", "--append",
                export(pseudo="/one", number=77), "--append",
                export(pseudo="/two", number=78))
    until(lambda: cluster.exported("/one") and cluster.exported("/two"),
          "both are there", result.log)


# --- exports that come and go, and DBus

def test_exports_come_and_go_with_keys_that_change(reloaded, client):
    reloaded.cluster.client("mkdir", "-p", "/mnt/nfs/another")
    reloaded.reload("--append", export("/another", pseudo="/one", number=77))
    assert reloaded.cluster.exported("/one")
    log = reloaded.reload(
        "--export", "Stable_Write = full;", "--append",
        export("/another", pseudo="/two", number=78,
               keys="Max_Inflight = 5;"))
    told(log, "export 2: Stable_Write = full (was data)")
    assert reloaded.cluster.exported("/two")
    assert not reloaded.cluster.exported("/one")
    log = reloaded.reload("--append", export("/another", pseudo="/two",
                                             number=78))
    told(log, "export 78: Max_Inflight = 8192 (was 5)")
    reloaded.reload("--append", "")
    assert not reloaded.cluster.exported("/two")
    until(lambda: len(reloaded.cluster.sessions(reloaded.begun.pid)) == 1,
          "one session is left", log)
    reloaded.serves()


def update_export(file, number):
    return str(bus.call("UpdateExport", "exportmgr", str(file),
                        f"EXPORT(Export_Id={number})"))


def test_update_export_by_dbus(lab, till_end, tmp_path):
    """On "a", which has the bus' name."""
    till_end(lab.expects(
        "export 77: reload refused", *NO_UPDATE,
        r"gsh_export_update_export :EXPORT :CRIT :",
        r"Method \(UpdateExport\) .* failed: ", REFERENCES))
    lab.ganesha("restart", "--append", export(pseudo="/second"))
    log = Log(LOGS / "ganesha-a.log")
    file = tmp_path / "conf"
    file.write_text(export(pseudo="/second", keys="Max_Inflight = 12;"))
    assert "1 exports updated" in update_export(file, 77)
    told(log, "export 77: Max_Inflight = 12 (was 8192)")

    # The block is not in that file: nothing of it changes.
    assert not log.matching("CEPH_ASYNC { }")
    file.write_text(export(pseudo="/second",
                           keys='Max_Inflight = 13; User_Id = "x";'))
    with pytest.raises(dbus.DBusException):
        update_export(file, 77)
    told(log, 'these keys need a new mount: User_Id = "x" (was not set); ')
    assert not log.matching("Max_Inflight = 13")
    assert lab.exported("/second", 2049)

    # With the block its defaults hold, for the exports that are read.
    file.write_text("CEPH_ASYNC { Slow_Op_Warn = 9; }\n" +
                    export(pseudo="/second"))
    update_export(file, 77)
    told(log, "export 77: Max_Inflight = 8192 (was 12)")
    told(log, "export 77: Slow_Op_Warn = 9 (was 10000)")
    assert not log.matching("export 1: ")
    lab.ensure_default()        # its end says what the updates have left


# --- memory

def test_reloads_leave_no_memory_behind(reloaded, record):
    """Ganesha's parser keeps some 300 bytes each time, whatever the FSAL."""
    reloaded.keys(("Max_Inflight", "77"), ("Object_Size", "1048576"))
    conf = Path("/var/lib/casync-lab/ganesha/b/ganesha.conf")
    text = conf.read_text()
    other = text.replace("= 77;", "= 78;").replace("= 1048576;",
                                                   "= 2097152;")

    def again(turns):
        for turn in range(turns):
            log = Log(reloaded.log.path)
            conf.write_text(text if turn % 2 else other)
            os.kill(reloaded.begun.pid, signal.SIGHUP)
            until(functools.partial(has_reread, log), "it has been read", log)
            told(log, "export 2: Max_Inflight = ")
            told(log, "export 2: Object_Size = ")
    again(50)
    before = resident_kib(reloaded.begun.pid)
    again(200)
    grown = resident_kib(reloaded.begun.pid) - before
    record(f"200 reloads with two other values each: {grown} KiB more")
    assert grown < 1024
    reloaded.serves()


# --- under load

@pytest.mark.parametrize("vers", (
    "4.2", pytest.param("3", marks=pytest.mark.nightly)))
def test_reloads_under_load(lab, till_end, record, vers):
    """Ten of what ci/job.sh reload does two hundred times: the fifth and the
    tenth are refused."""
    till_end(lab.expects("Max_Inflight = 0 is refused: ",
                         "reload refused", *NO_UPDATE, REREAD))
    lab.altered = True
    done = subprocess.run(
        [sys.executable, "-B", SOAK, "--no-up", "--vers", vers, "10"],
        text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, timeout=300, check=False)
    for line in re.findall(r"^reload: (?:after|fio).*", done.stdout, re.M):
        record(f"v{vers}, {line}")
    assert done.returncode == 0, done.stdout
