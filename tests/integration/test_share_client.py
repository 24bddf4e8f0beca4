# SPDX-License-Identifier: LGPL-3.0-or-later
"""Share_Client = false: exports with the same Cmount_Path, user and file
system have a CephFS client each.
"""
import re
import threading
import time

import bus
from lab import LOGS, SECOND_PORT
from lab_program import Log, ceph, until
from nfs import nfs3, nfs4, rpc
import pytest
from refusals import NO_EXPORT, NO_UPDATE, REREAD
import test_cluster

ROUNDS = 200
SERVED_S = 20
PAUSE_S = 2

EXPORT = """EXPORT {{
    Export_Id = {number}; Path = /; Pseudo = /{name};
    Protocols = 3,4; Access_Type = RW; Squash = none; SecType = sys;
    Transports = TCP; Attr_Expiration_Time = 0;
    FSAL {{ Name = CEPH_ASYNC; Cmount_Path = "/"; {keys} }}
}}"""
NUMBERS = {"left": 31, "right": 32}
APART = "Share_Client = false;"
SHARED = "Share_Client = true;"


def exports(keys=""):
    return "\n".join(EXPORT.format(number=number, name=name, keys=keys)
                     for name, number in NUMBERS.items())


def start(lab, second, block="", keys=""):
    """Ganesha "b" with both exports, and with the lab's own."""
    lab.stop_second()
    return second(block=block, append=[exports(keys)],
                  export='Cmount_Path = "/";')


@pytest.fixture
def apart(lab, second):
    return start(lab, second, block=APART)


def client(name):
    return nfs4.Client(SECOND_PORT, f"{name}-{time.time_ns()}",
                       pseudo=f"/{name}")


def names_of_sessions(lab, pid):
    return {session["metadata"]["uuid"] for session in lab.sessions(pid)}


@pytest.mark.parametrize("block, keys, own", [
    ("", "", set()), (SHARED, "", set()),
    (APART, "", {"second", "left", "right"}),
    ("", APART, {"left", "right"}), (APART, SHARED, {"second"})])
def test_clients_of_exports(lab, second, block, keys, own):
    """The export's key counts, then the block's; the others share one."""
    started = start(lab, second, block, keys)
    names = names_of_sessions(lab, started.pid)
    assert len(names) == len(own) + (len(own) < 3), names
    mine = {int(number) for name in names
            for number in re.findall(r"-export-(\d+)$", name)}
    assert {NUMBERS[name] for name in own - {"second"}} <= mine
    assert len(mine) == len(own)


def test_what_one_writes_the_other_reads(apart, record):
    """Sizes, data and names, at once: the CephFS clients take each other's
    capabilities."""
    left, right = client("left"), client("right")
    name = f"shared-{time.time_ns()}"
    one = left.open(name, create=nfs4.UNCHECKED)
    other = right.open(name)
    began = time.monotonic()
    for number in range(ROUNDS):
        text = f"{number:64d}".encode()
        writer, reader = (one, other) if number % 2 else (other, one)
        writer.write(number * 64, text)
        assert reader.read(number * 64, 64) == text
        assert reader.client.change_and_size(reader.handle)[1] == \
            64 * (number + 1)
    record(f"a file used through two exports with a client each: "
           f"{(time.monotonic() - began) / ROUNDS * 1000:.1f} ms for a WRITE "
           "through one, a READ and a GETATTR through the other")
    other.close()
    one.close()
    left.remove(name)
    with pytest.raises(nfs4.Failed):
        right.lookup(name)
    left.leave()
    right.leave()


def test_locks_hold_across(apart):
    left, right = client("left"), client("right")
    name = f"locked-{time.time_ns()}"
    one = left.open(name, create=nfs4.UNCHECKED)
    other = right.open(name)
    one.lock(nfs4.WRITE_LOCK, 0, 10)
    with pytest.raises(nfs4.Failed) as denied:
        other.lock(nfs4.WRITE_LOCK, 5, 10)
    assert denied.value.status == nfs4.DENIED
    one.unlock(0, 10)
    other.lock(nfs4.WRITE_LOCK, 5, 10)
    # Ganesha 5.9 answers LOCKS_HELD to a CLOSE otherwise.
    other.unlock(5, 10)
    other.close()
    one.close()
    left.leave()
    right.leave()


def served(handles, text):
    """All exports answer for the handles that clients have kept."""
    try:
        connection = rpc.Concurrent(SECOND_PORT)
        try:
            return all(nfs3.read(connection, handle, 0, len(text)) == text
                       for handle in handles)
        finally:
            connection.close()
    except (OSError, rpc.Refused):
        return False


@pytest.mark.parametrize("before, after", [
    (SHARED, APART), (APART, APART), (APART, SHARED)])
@pytest.mark.parametrize("ended", ["kill9", "stop"])
def test_clients_stay_mounted_through_a_restart(lab, second, record, before,
                                                after, ended):
    """Their handles are the same, and no session of the former run keeps them
    waiting, but for one: that of an export alone, killed, when it is shared
    from then on.
    """
    if (before, after, ended) == (APART, SHARED, "kill9"):
        pytest.skip("the former sessions last for Session_Timeout "
                    "(docs/limits.md)")
    start(lab, second, block=before)
    text = b"acknowledged" * 100
    handles = []
    connection = rpc.Concurrent(SECOND_PORT)
    for name in NUMBERS:
        root = nfs3.root_of(f"/{name}", SECOND_PORT + 1)
        handles.append(nfs3.create(connection, root, f"{time.time_ns()}"))
        nfs3.write(connection, handles[-1], 0, text)
    connection.close()
    lab.run("ganesha", ended, "--name", "b")
    began = time.monotonic()
    again = second(block=after, append=[exports()],
                   export='Cmount_Path = "/";')
    until(lambda: served(handles, text), "both exports", SERVED_S)
    record(f"{before} {ended} {after} served after "
           f"{time.monotonic() - began:.1f} s")
    reclaimed = again.log.matching("reclaimed from a former run")
    if ended == "kill9":
        assert len(reclaimed) == (3 if before == APART else 0), reclaimed
        assert len(again.log.matching("of a former run shared, is ended")) \
            == (before == SHARED)


class Reader(threading.Thread):
    """READs one file again and again; keeps the longest pause."""

    def __init__(self, handle, text):
        super().__init__(daemon=True)
        self.handle, self.text = handle, text
        self.stop = threading.Event()
        self.count, self.longest_s, self.wrong = 0, 0.0, []

    def run(self):
        connection = rpc.Concurrent(SECOND_PORT)
        while not self.stop.wait(0.005):
            began = time.monotonic()
            try:
                data = nfs3.read(connection, self.handle, 0, len(self.text))
                if data != self.text:
                    self.wrong.append(data)
            except rpc.Refused as err:
                self.wrong.append(err)
            self.longest_s = max(self.longest_s, time.monotonic() - began)
            self.count += 1
        connection.close()


def test_a_lost_session_is_of_one_export(lab, cluster, till_end, apart, record):
    """The other exports go on; the lost one is back by itself."""
    till_end(cluster.may_lose())
    text = b"mine" * 256
    connection = rpc.Concurrent(SECOND_PORT)
    handles = {}
    for name in NUMBERS:
        root = nfs3.root_of(f"/{name}", SECOND_PORT + 1)
        handles[name] = nfs3.create(connection, root, f"{time.time_ns()}")
        nfs3.write(connection, handles[name], 0, text)
    reader = Reader(handles["right"], text)
    reader.start()
    lost = [session for session in lab.sessions(apart.pid)
            if session["metadata"]["uuid"].endswith(
                f"-export-{NUMBERS['left']}")]
    assert len(lost) == 1
    lab.evict_session(lost[0]["id"])
    until(lambda: served([handles["left"]], text), "the lost one", SERVED_S)
    reader.stop.set()
    reader.join(10)
    connection.close()
    assert not reader.wrong and reader.count > 10
    assert reader.longest_s < PAUSE_S
    record(f"the other export's longest READ while one lost its session: "
           f"{reader.longest_s * 1000:.0f} ms")
    assert len(names_of_sessions(lab, apart.pid)) == 3


def test_a_reload_does_not_change_it(cluster, till_end, second):
    """It decides who the client is: refused by a line that names it."""
    started = start(cluster, second)
    till_end(cluster.expects("reload refused.*Share_Client = false",
                             *NO_UPDATE, REREAD))
    cluster.run("ganesha", "reload", "--name", "b", "--export",
                f'Cmount_Path = "/"; {APART}')
    until(lambda: started.log.matching(
        r"reload refused.*need a new mount: Share_Client = false "
        r"\(was true\)"), "a line", 10)
    assert len(names_of_sessions(cluster, started.pid)) == 1


# --- no two clients of one name: each would end the other's session, for ever

FIGHT = "the CephFS session is lost"
FIGHT_S = 3         # a keeper notices a loss within 2 s


def test_a_second_client_of_one_name_is_refused(cluster, till_end, second):
    """A key in one export, and the same user's keyring in another."""
    secret = ceph("auth", "get-key", "client.admin").strip()
    till_end(cluster.expects(
        "export 31: Secret_Access_Key: not that of export", *NO_EXPORT))
    started = second(export='Cmount_Path = "/";', append=[EXPORT.format(
        number=31, name="left", keys=f'Secret_Access_Key = "{secret}";')])
    time.sleep(FIGHT_S)
    assert not started.log.matching(FIGHT)
    assert len(cluster.sessions(started.pid)) == 1
    told, = started.log.matching("export 31: Secret_Access_Key: not that of "
                                 r"export \d+, .* make them equal")
    assert secret not in told
    assert cluster.exported("/second") and not cluster.exported("/left")


def test_an_older_name_is_not_used_twice(cluster, second):
    """It is of the export that made the client, which others use on when that
    export is removed, and comes back with another folder."""
    own = f'Cmount_Path = "/"; {APART}'
    started = second(block="Use_Old_Uuid = true;", export=own,
                     append=[exports()])
    before = names_of_sessions(cluster, started.pid)
    folder = f"/elsewhere-{time.time_ns()}"
    client("left").create(nfs4.DIRECTORY, folder[1:])
    right, left = (EXPORT.format(number=NUMBERS[name], name=name, keys="")
                   for name in ("right", "left"))
    moved = left.replace("Path = /;", f"Path = {folder};") \
        .replace('Path = "/"', f'Path = "{folder}"')
    for append in (right, right + moved):
        cluster.run("ganesha", "reload", "--name", "b", "--export", own,
                    "--append", append)
        until(lambda there=folder in append:
              cluster.exported("/left") == there, "the reload", 10)
    time.sleep(FIGHT_S)
    assert not started.log.matching(FIGHT)
    assert len(before) == 2
    after = names_of_sessions(cluster, started.pid)
    assert len(after) == 3 and before < after
    assert cluster.exported("/right")


def test_the_oldest_export_decides_for_the_client(cluster, second):
    """Also after the one that made the client was removed.  The log says what
    was taken over."""
    own = f'Cmount_Path = "/"; {APART}'
    started = second(export=own, append=[exports()])

    def reload(names, keys):
        log = Log(started.log.path)
        cluster.run("ganesha", "reload", "--name", "b", "--export", own,
                    "--append", "\n".join(EXPORT.format(
                        number=NUMBERS[name], name=name,
                        keys=keys if name == "right" else "")
                        for name in names))
        until(lambda: log.matching("export 32: Reconnect = "), "a line", 10)
        return log.matching("export 32: Reconnect = ")[0]
    assert "= false (was true), not in force: its CephFS client has the " \
        "value of export 31" in reload(NUMBERS, "Reconnect = false;")
    # Ganesha removes an export after it has read the others.
    assert "not in force" in reload(["right"], "Reconnect = true;")
    until(lambda: not cluster.exported("/left"), "it is removed", 10)
    assert "not in force" not in reload(["right"], "Reconnect = false;")
    shared, = [session for session in cluster.sessions(started.pid)
               if "-export-" not in session["metadata"]["uuid"]]
    cluster.evict_session(shared["id"])
    time.sleep(FIGHT_S)
    assert not started.log.matching(FIGHT)


@pytest.fixture
def nodes(cluster, second):
    """Two gateways of one cluster, with a client for each export."""
    yield from test_cluster.two_nodes(
        cluster, second, block=APART, append=[exports()],
        export='Cmount_Path = "/";')


class OfOneExport:
    """A client of the node that will die: a file of its own with a lock."""

    def __init__(self, name):
        self.name = name
        self.client = nfs4.Client(SECOND_PORT, f"heir-of-{name}",
                                  pseudo=f"/{name}")
        self.path = f"taken-over-{time.time_ns()}"

    def opens(self):
        return test_cluster.opens(self.client, self.path)

    def work(self):
        self.file = self.client.open(self.path)
        self.file.write(0, b"acknowledged")
        until(lambda: test_cluster.locks(self.file), "the lock", 10)

    def comes_over(self):
        """To the other gateway: the same handle, open and lock."""
        client = nfs4.Client(2049, f"heir-of-{self.name}", reclaim=True,
                             pseudo=f"/{self.name}",
                             verifier=self.client.verifier)
        again = client.reclaim_open(self.file.handle, owner=self.file.owner)
        again.lock(nfs4.WRITE_LOCK, 0, 10, reclaim=True)
        client.reclaim_complete()
        assert again.read(0, 100) == b"acknowledged"
        return client, again


def test_a_take_over_ends_all_sessions(nodes, record):
    """Those of a dead node, one for each export; their clients have opens and
    locks again.  Both nodes have the same Share_Client (docs/limits.md)."""
    log = Log(LOGS / "ganesha-a.log")
    victim = nodes.stat()["ganesha"]["b"]["pid"]
    mine = nodes.stat()["ganesha"]["a"]["pid"]
    clients = [OfOneExport(name) for name in NUMBERS]
    for one in clients:
        until(one.opens, "no grace", test_cluster.GRACE_S + 15)
        one.work()
    assert len(names_of_sessions(nodes, victim)) == 3
    kept = names_of_sessions(nodes, mine)
    assert len(kept) == 3

    nodes.ganesha("kill9", "--name", "b")
    for one in clients:
        one.client.die()
    assert len(names_of_sessions(nodes, victim)) == 3, "they went by themselves"
    began = time.monotonic()
    bus.call("grace", "admin", f"{test_cluster.TAKE_NODEID}:2", of="admin")
    until(lambda: not nodes.sessions(victim), "the sessions are ended", 20)
    record("three sessions of a dead node are ended "
           f"{time.monotonic() - began:.1f} s after the take-over began")
    assert len(log.matching("takeover of node 'node2': session .*: ended")) \
        == 3
    assert names_of_sessions(nodes, mine) == kept

    for one in clients:
        client, again = one.comes_over()
        again.unlock(0, 10)
        again.close()
        client.leave()
