# SPDX-License-Identifier: LGPL-3.0-or-later
"""Handle_Keys = "rados://POOL/NAMESPACE/OBJECT", and the command that makes
and changes the object.
"""
import re
import subprocess
import threading
import time
from pathlib import Path

from lab import SECOND_PORT
from lab_program import ceph, until
from nfs import nfs3, rpc
import pytest
from refusals import NO_BLOCK, REREAD
from test_every_key import critical, export

POOL, SPACE = "cephfs_metadata", "keys"
DATA = b"only with a signature\n" * 100
STALE = 70
KEYS_READ = "Handle_Keys = .*: the first of {} keys signs"


def command(*words):
    return subprocess.run(["ganesha-ceph-async-config", *words], text=True,
                          stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=60, check=False)


def rados(*words, data=""):
    return subprocess.run(["rados", "-p", POOL, "-N", SPACE, *words],
                          text=True, input=data, capture_output=True,
                          timeout=60, check=False)


def step(name, url, *more):
    done = command("handle-keys", f"--{name}", url, *more)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def url(cluster):
    """Of an object that is not there yet."""
    return f"rados://{POOL}/{SPACE}/keys-{time.time_ns()}"


@pytest.fixture
def signing(second, url):
    step("create", url)
    return second(append=[export(100, "Sign_Handles = true;")],
                  block=f'Handle_Keys = "{url}";')


class Load(threading.Thread):
    """Reads a file by the handle that it got first, and looks it up anew."""

    def __init__(self, name):
        super().__init__(daemon=True)
        self.connection = rpc.Connection(SECOND_PORT)
        self.root = nfs3.root_of("/e100", SECOND_PORT + 1)
        self.name = name
        self.handle = nfs3.create(self.connection, self.root, name)
        nfs3.write(self.connection, self.handle, 0, DATA)
        self.stop = threading.Event()
        self.rounds, self.wrong, self.handles = 0, [], set()

    def run(self):
        while not self.stop.is_set():
            try:
                fresh = nfs3.lookup(self.connection, self.root, self.name)
                self.handles.add(bytes(fresh))
                for handle in (self.handle, fresh):
                    assert nfs3.read(self.connection, handle, 0,
                                     len(DATA)) == DATA
                self.rounds += 1
            except (OSError, AssertionError, nfs3.Refused) as err:
                self.wrong.append(repr(err))
                return

    def end(self):
        self.stop.set()
        self.join(20)
        assert not self.is_alive()
        return self.wrong


def test_rotation_under_load(cluster, signing, url, record):
    """No request fails until the old key is dropped; then those with an old
    handle get STALE."""
    load = Load(f"rotated-{time.time_ns()}")
    load.start()
    for name, count in (("add", 2), ("use", 2)):
        before = len(signing.log.matching(KEYS_READ.format(count)))
        step(name, url)
        cluster.run("ganesha", "reload", "--name", "b")
        until(lambda seen=before, count=count: len(signing.log.matching(
            KEYS_READ.format(count))) > seen, "the keys are read", 20)
        rounds = load.rounds        # only what begins now has the new key
        until(lambda rounds=rounds: load.wrong or load.rounds > rounds + 20,
              "the load goes on", 20)
    assert not load.end()
    assert len(load.handles) == 2, "a new key has signed"
    record(f"keys in RADOS changed under load: {load.rounds} rounds of LOOKUP "
           "and two READs, no error")

    step("drop", url)
    cluster.run("ganesha", "reload", "--name", "b")
    until(lambda: signing.log.matching(KEYS_READ.format(1))[1:],
          "the keys are read", 20)
    with pytest.raises(nfs3.Refused) as refused:
        nfs3.read(load.connection, load.handle, 0, 10)
    assert refused.value.status == STALE
    fresh = nfs3.lookup(load.connection,
                        nfs3.root_of("/e100", SECOND_PORT + 1), load.name)
    assert nfs3.read(load.connection, fresh, 0, len(DATA)) == DATA


def test_a_bad_object_at_a_reload_changes_nothing(cluster, till_end, signing,
                                                  url):
    load = Load(f"kept-{time.time_ns()}")
    till_end(cluster.expects("Handle_Keys = .* is refused", "reload refused",
                             REREAD))
    name = url.rpartition("/")[2]
    for text, why in (("no key", "line 1 is no key"), ("", "it has no key"),
                      ("#" * 5000, "cannot read it: File too large")):
        assert rados("put", name, "-", data=text).returncode == 0
        cluster.run("ganesha", "reload", "--name", "b")
        until(lambda why=why: signing.log.matching(
            f"{re.escape(url)} is refused: .*{why}"), why, 20)
    rados("rm", name)
    cluster.run("ganesha", "reload", "--name", "b")
    until(lambda: signing.log.matching("cannot read it: No such file"),
          "a line", 20)
    load.start()
    until(lambda: load.wrong or load.rounds > 20, "the load goes on", 20)
    assert not load.end()


@pytest.mark.parametrize("place, why", [
    ("rados://", "it must be rados://POOL/NAMESPACE/OBJECT"),
    ("rados://pool/object", "it must be rados://POOL/NAMESPACE/OBJECT"),
    ("rados://pool//", "it must be rados://POOL/NAMESPACE/OBJECT"),
    ("rados://pool/a/b/c", "it must be rados://POOL/NAMESPACE/OBJECT"),
    ("rados://nosuchpool/a/b", "user 'admin' cannot read it: No such file"),
    (f"rados://{POOL}/{SPACE}/nosuch",
     "user 'admin' cannot read it: No such file"),
])
def test_a_wrong_place_voids_the_block(cluster, till_end, second, place, why):
    """Of the block and of the command: the same places are wrong."""
    till_end(cluster.expects("Handle_Keys = .* is refused", *NO_BLOCK))
    log = second(fsal="CEPH", append=[
        f'CEPH_ASYNC {{ Handle_Keys = "{place}"; }}', export(100, "")]).log
    lines = critical(log, f"Handle_Keys = {place} is refused: ")
    assert len(lines) == 1 and why in lines[0], log.text()
    done = command("handle-keys", "--add", place)
    assert done.returncode == 1 and place in done.stderr, done
    # The command finds out what form the place has, or asks for the object.
    assert (why if "must be" in why else "user 'admin': ") in done.stderr
    assert ("nothing is changed" in done.stderr) == ("must be" not in why)


@pytest.fixture
def reader(cluster, tmp_path):
    """A user of Ceph who may read the namespace of keys and nothing else, and
    a ceph.conf whose keyring has that user too."""
    name = f"reader-{time.time_ns()}"
    conf = Path("/etc/ceph/ceph.conf").read_text(encoding="utf-8")
    old = re.search(r"^keyring = (.*)$", conf, re.M)[1]
    keyring, mine = tmp_path / "keyring", tmp_path / "ceph.conf"
    keyring.write_text(Path(old).read_text(encoding="utf-8") + ceph(
        "auth", "get-or-create", f"client.{name}", "mon", "allow r", "osd",
        f"allow r pool={POOL} namespace={SPACE}"), encoding="utf-8")
    # The section [client] has one too.
    mine.write_text(re.sub(r"^keyring = .*", f"keyring = {keyring}", conf,
                           flags=re.M), encoding="utf-8")
    yield name, mine
    ceph("auth", "rm", f"client.{name}")


def test_the_user_of_rados_urls_reads(cluster, second, url, reader):
    """The gateway's own user, not the exports'; a missing one is named."""
    step("create", url)
    reader, conf = reader

    def started(user):
        return second(fsal="CEPH", append=[
            f'RADOS_URLS {{ UserId = "{user}"; }} '
            f'CEPH_ASYNC {{ Handle_Keys = "{url}"; Ceph_Conf = "{conf}"; }}',
            export(100, "Sign_Handles = true;")]).log
    log = started(reader)
    assert cluster.exported("/e100"), log.text()
    assert not log.matching("cannot read it")
    cluster.stop_second()
    with cluster.expects("Handle_Keys = .* is refused: .*user 'nobody' cannot "
                         "read it", *NO_BLOCK):
        log = started("nobody")
        assert not cluster.exported("/e100"), log.text()
    # Another namespace of the pool is not the reader's.
    refused = command("handle-keys", "--create",
                      f"rados://{POOL}/other/keys", "--user", reader,
                      "--conf", conf)
    assert refused.returncode == 1 and "nothing is changed" in refused.stderr


def test_what_is_no_text_is_refused(url):
    name = url.rpartition("/")[2]
    done = subprocess.run(["rados", "-p", POOL, "-N", SPACE, "put", name, "-"],
                          input=bytes(range(256)), capture_output=True,
                          timeout=60, check=False)
    assert done.returncode == 0
    said = command("handle-keys", "--add", url)
    assert said.returncode == 1 and "remove it" in said.stderr, said


def test_steps_out_of_order_are_refused(url):
    step("create", url)
    for name, why in (("create", "exist"), ("use", "--add one first"),
                      ("drop", "--add one first")):
        done = command("handle-keys", f"--{name}", url)
        assert done.returncode == 1 and why in done.stderr, done
    step("add", url)
    done = command("handle-keys", "--add", url)
    assert done.returncode == 1 and "two keys already" in done.stderr
    name = url.rpartition("/")[2]
    keys = rados("get", name, "-").stdout.split()
    step("use", url)
    assert rados("get", name, "-").stdout.split() == keys[::-1]
    step("drop", url)
    assert rados("get", name, "-").stdout.split() == [keys[1]]


def test_a_user_without_rights_is_named(url):
    done = command("handle-keys", "--create", url, "--user", "nobody")
    assert done.returncode == 1
    assert "user 'nobody'" in done.stderr
    assert "nothing is changed" in done.stderr
