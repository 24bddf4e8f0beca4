# SPDX-License-Identifier: LGPL-3.0-or-later
"""What libcephfs wants Ganesha's cache to let go of, and how soon changes
past this gateway are seen.
"""
import itertools
import json
import os
import subprocess
import threading
import time

import dbus
import pytest

import bus
from fuse import Fuse
from lab import SECOND_PORT
from lab_program import ceph, until
from nfs import nfs4

FILES, SOME = 3000, 500
MOST_CAPS = 300         # 100 stay (mds_min_caps_per_client), and what is used
OTHER = 9
EXPIRES_S = 5
KEEPER_S = 2             # it looks for removed files that were in use
KEYS = {"shared": 'cmount_path = "/";', "separate": ""}


def other_export(kind):
    """A second export, of a folder; on the same mount or on its own."""
    return (f"EXPORT {{ Export_Id = {OTHER}; Path = /upcalls; "
            "Pseudo = /other; Protocols = 3,4; Access_Type = RW; "
            "Squash = none; SecType = sys; Attr_Expiration_Time = 0; "
            f"FSAL {{ Name = CEPH_ASYNC; {KEYS[kind]} }} }}")


@pytest.fixture(scope="module")
def folder(cluster):
    """3,000 files in CephFS, and for the other export some more."""
    mount = Fuse()
    for name, count in (("many", FILES), ("some", SOME)):
        path = mount.folder / "upcalls" / name
        path.mkdir(parents=True, exist_ok=True)
        for number in range(count):
            (path / f"file {number}").touch()
    yield mount.folder
    mount.end()


@pytest.fixture(params=("shared", "separate"))
def exports(cluster, folder, request):
    kind = request.param
    cluster.ganesha("restart", "--fsal", "CEPH_ASYNC", "--export",
                    KEYS[kind], "--block", "", "--core", "",
                    "--export-block", "", "--nfsv4", "", "--append",
                    other_export(kind))
    return kind


def listed(pseudo, path="upcalls/many", port=2049):
    """The names that a client sees, whose attributes were asked for too."""
    done = subprocess.run(
        ["timeout", "60", "nfs-ls",
         f"nfs://127.0.0.1{pseudo}/{path}?version=4&nfsport={port}"],
        text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout.splitlines()


def caps(cluster):
    pid = cluster.stat()["ganesha"]["a"]["pid"]
    return sum(session["num_caps"] for session in cluster.sessions(pid))


def drop_cache():
    ceph("tell", "mds.0", "cache", "drop", "20")


class Worker(threading.Thread):
    """A client that goes on: writes, reads back, looks up, removes."""

    def __init__(self, pseudo, directory):
        super().__init__(daemon=True)
        self.client = nfs4.Client(2049, f"worker {pseudo}", pseudo=pseudo)
        self.directory = self.client.root
        for name in directory.split("/"):
            self.directory = self.client.lookup(name, self.directory)
        self.stop = threading.Event()
        self.rounds, self.error, self.slowest = 0, None, 0
        self.start()

    def run(self):
        try:
            for number in itertools.count():
                if self.stop.is_set():
                    return
                began = time.monotonic()
                self._round(f"worked {number}", os.urandom(5000))
                self.slowest = max(self.slowest, time.monotonic() - began)
                self.rounds += 1
        except BaseException as err:  # noqa: BLE001 (told in `end`)
            self.error = err

    def _round(self, name, data):
        file = self.client.open(name, create=nfs4.GUARDED,
                                directory=self.directory)
        file.write(0, data)
        assert file.read(0, 6000) == data
        assert self.client.lookup(name, self.directory) == file.handle
        assert self.client.change_and_size(file.handle)[1] == len(data)
        file.close()
        self.client.remove(name, self.directory)

    def end(self):
        self.stop.set()
        self.join(60)
        assert not self.is_alive(), "the client's request has no answer"
        self.client.leave()
        if self.error:
            raise self.error


def test_cache_pressure_frees_capabilities(cluster, exports, record):
    """The MDS asks for them while a client works on, through both exports."""
    assert len(listed("/ceph")) == FILES
    # The same files: in a shared mount they are released when both let go.
    assert len(listed("/other", "many")) == FILES
    assert len(listed("/other", "some")) == SOME
    before = caps(cluster)
    assert before >= FILES + SOME
    workers = [Worker("/ceph", "upcalls"), Worker("/other", "some")]
    began = time.monotonic()
    try:
        while caps(cluster) > MOST_CAPS * (2 if exports == "separate" else 1):
            assert time.monotonic() - began < 60, caps(cluster)
            drop_cache()
        seconds = time.monotonic() - began
        after = caps(cluster)
    finally:
        for worker in workers:
            worker.end()
    record(f"{exports} mount: {before} capabilities are {after} "
           f"{seconds:.1f} s after a cache drop; meanwhile "
           f"{sum(w.rounds for w in workers)} files written and removed, "
           f"the slowest in {max(w.slowest for w in workers):.2f} s")
    assert all(worker.rounds for worker in workers)
    assert len(listed("/ceph")) == FILES


def test_an_export_goes_while_capabilities_are_asked_for(cluster, exports,
                                                         folder, tmp_path):
    """And comes back: upcalls on their way know it no more."""
    def call(name, *args):
        bus.call(name, "exportmgr", *args)
    conf = tmp_path / "export.conf"
    conf.write_text(other_export(exports), encoding="ascii")
    worker = Worker("/ceph", "upcalls")
    try:
        for _ in range(3):
            assert len(listed("/other", "some")) == SOME
            dropping = threading.Thread(target=drop_cache)
            dropping.start()
            for number in range(0, SOME, 20):       # and invalidations
                os.truncate(folder / "upcalls" / "some" / f"file {number}",
                            number)
            call("RemoveExport", dbus.UInt16(OTHER))
            dropping.join()
            call("AddExport", str(conf), f"EXPORT(Export_Id={OTHER})")
    finally:
        worker.end()
    assert len(listed("/other", "some")) == SOME
    assert len(cluster.sessions(cluster.stat()["ganesha"]["a"]["pid"])) == \
        (1 if exports == "shared" else 2)


class Changes:
    """A file and a folder that somebody else changes, and how a client of
    "a" sees them."""

    def __init__(self, folder, client):
        self.top = folder / "upcalls" / f"seen-{time.time_ns()}"
        self.top.mkdir()
        (self.top / "file").write_bytes(b"first")
        (self.top / "victim").touch()
        (self.top / "old").touch()
        self.client = client
        self.dir = client.lookup(self.top.name, client.lookup("upcalls"))
        self.file = client.lookup("file", self.dir)
        for name in ("victim", "old"):
            client.lookup(name, self.dir)
        client.change_and_size(self.file)
        self.gone("new")
        self.gone("made")
        listed("/ceph", f"upcalls/{self.top.name}")

    def gone(self, name):
        try:
            self.client.lookup(name, self.dir)
        except nfs4.Failed as err:
            assert err.status == nfs4.NOENT
            return True
        return False

    def mode(self):
        return int.from_bytes(self.client.get(self.file, 33)[0], "big")

    def names(self):
        return {line.split()[-1] for line in
                listed("/ceph", f"upcalls/{self.top.name}")}

    def each(self, change):
        """(what, do it, is it seen), done by CHANGE, who takes a path."""
        top = self.top
        yield ("a write", lambda: change("write", top / "file"),
               lambda: self.client.read_all(self.file) == b"second one")
        yield ("its size", lambda: None,
               lambda: self.client.change_and_size(self.file)[1] == 10)
        yield ("a chmod", lambda: change("chmod", top / "file"),
               lambda: self.mode() == 0o600)
        yield ("a new name", lambda: change("make", top / "made"),
               lambda: not self.gone("made"))
        yield ("a removal", lambda: change("remove", top / "victim"),
               lambda: self.gone("victim"))
        yield ("a rename", lambda: change("rename", top / "old", top / "new"),
               lambda: self.gone("old") and not self.gone("new"))
        yield ("the listing", lambda: None,
               lambda: self.names() == {"file", "made", "new"})


def by_ceph(what, path, to=None):
    if what == "write":
        path.write_bytes(b"second one")
    elif what == "chmod":
        path.chmod(0o600)
    elif what == "make":
        path.touch()
    elif what == "remove":
        path.unlink()
    else:
        path.rename(to)


def by_gateway(what, path, to=None):
    client = nfs4.Client(SECOND_PORT, "the other gateway's")
    folder = client.lookup(path.parent.name, client.lookup("upcalls"))
    if what == "write":
        file = client.open(path.name, directory=folder)
        client.set(file.handle, file.stateid, size=0)
        file.write(0, b"second one")
        file.close()
    elif what == "chmod":
        client.set(client.lookup(path.name, folder), mode=0o600)
    elif what == "make":
        client.open(path.name, create=nfs4.GUARDED, directory=folder).close()
    elif what == "remove":
        client.remove(path.name, folder)
    else:
        client.rename(folder, path.name, folder, to.name)
    client.leave()


@pytest.mark.parametrize("change", (by_ceph, by_gateway))
def test_nothing_is_stale_without_expiration(lab, second, folder, change):
    """Attr_Expiration_Time = 0: what is done is seen at the next look."""
    if change is by_gateway:
        second()
    client = nfs4.Client(2049, "looks")
    for what, do, seen in Changes(folder, client).each(change):
        do()
        assert seen(), f"{what} is not seen"
    client.leave()


@pytest.mark.parametrize("change", (by_ceph, by_gateway))
def test_with_expiration_all_is_seen_in_time(cluster, second, folder, change,
                                             record):
    """What libcephfs tells of is seen sooner."""
    cluster.ganesha("restart", "--fsal", "CEPH_ASYNC", "--export", "",
                    "--block", "", "--core", "", "--nfsv4", "", "--append",
                    "", "--export-block",
                    f"Attr_Expiration_Time = {EXPIRES_S};")
    if change is by_gateway:
        second()
    client = nfs4.Client(2049, "looks")
    took = {}
    for what, do, seen in Changes(folder, client).each(change):
        do()
        began = time.monotonic()
        while not seen():
            assert time.monotonic() - began < EXPIRES_S + 3, what
            time.sleep(0.1)
        took[what] = round(time.monotonic() - began, 1)
    record(f"Attr_Expiration_Time = {EXPIRES_S}, {change.__name__}: seen "
           f"after {json.dumps(took)} s")
    client.leave()


def strays():
    return int(json.loads(ceph("tell", "mds.0", "perf", "dump", "mds_cache"))[
        "mds_cache"]["num_strays"])


@pytest.mark.parametrize("how", ("closed", "open", "replaced", "seen later"))
def test_a_removed_file_gives_its_space_back(lab, folder, record, how):
    """Of whose name this gateway, or a client of CephFS, has disposed."""
    client = nfs4.Client(2049, f"removing-{time.time_ns()}")
    name, before = f"removed-{time.time_ns()}", strays()
    file = client.open(name, create=nfs4.GUARDED)
    file.write(0, b"content")
    if how != "open":
        file.close()
    if how == "seen later":
        client.remove(name)
        client.change_and_size(file.handle)
    elif how == "replaced":
        (folder / f"{name}x").touch()
        (folder / f"{name}x").rename(folder / name)
    else:
        (folder / name).unlink()
    if how == "open":
        time.sleep(2 * KEEPER_S)
        assert file.read(0, 7) == b"content"
        assert client.change_and_size(file.handle)[1] == 7
        file.close()
    began = time.monotonic()
    until(lambda: strays() <= before, "it is no stray any more")
    record(f"a removed file ({how}): no stray after "
           f"{time.monotonic() - began:.1f} s")
    client.leave()
