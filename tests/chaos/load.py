# SPDX-License-Identifier: LGPL-3.0-or-later
"""The clients of the chaos job: threads that each verify what they see.

A worker has one request in flight.  JUKEBOX, DELAY and GRACE are asked again,
NOSPC too while the pool is full.  An ended connection is made anew.  The time
that this takes is the pause that the client sees.  Any other error is a
complaint.
"""
import random
import struct
import threading
import time
import traceback

from crash.ledger import BLOCK, CELL, Blocks, Tail, describe, tail_bytes
from nfs import nfs3, nfs4, rpc
from nfs.xdr import number, opaque, wide

JUKEBOX, NOSPC = 10008, 28
AGAIN_S = 0.1           # before the same request is sent again
PAUSE_S = 0.05          # between two steps of a worker
NOTED_S = 0.1           # a step that took longer is noted as a pause
COHERENT_S = 3          # until the other gateway shows a name or a size
# A gateway that was away for its clients' lease may have dropped their state.
FORGIVEN_S = 60
LOST_STATE = {nfs4.EXPIRED, nfs4.BAD_STATEID, nfs4.STALE_STATEID,
              nfs4.OLD_STATEID, nfs4.ADMIN_REVOKED, 10022, 10052, 10053,
              10078}    # STALE_CLIENTID, BADSESSION, BADSLOT, DEADSESSION
BLOCKS = 128
UNSTABLE_S = 0.5        # how long unstable writes may wait for their COMMIT
LONGEST_APPEND = 24 << 10
COUNTER = struct.Struct(">9Q")      # the sum, and what each worker added


class Abandoned(Exception):
    """The run is over, the service is not back."""


class World:
    """What all workers share."""

    def __init__(self, folder):
        self.folder = folder            # its name, below the root
        self.stop = threading.Event()
        self.abandon = threading.Event()
        self.names_rest = threading.Event()
        self.complaints = []
        self.seen = dict.fromkeys(
            ("asked again", "told that the pool is full",
             "connections lost", "NFSv4 state lost",
             "told that a lock is lost", "names done twice",
             "unstable writes sent again"), 0)
        self.lock = threading.Lock()

    def complain(self, what):
        with self.lock:
            self.complaints.append(f"{time.strftime('%T')} {what}")

    def note(self, what):
        with self.lock:
            self.seen[what] += 1


class Worker(threading.Thread):
    """Steps until the end; each raises or returns."""

    protocol = "NFSv3"
    prompt = True           # a step ends at once if the service is there

    def __init__(self, name, world, gateway, seed):
        super().__init__(name=f"{name} ({self.protocol} by {gateway.name})",
                         daemon=True)
        self.world, self.gateway = world, gateway
        self.rng = random.Random(f"{name} {seed}")
        self.connection = None
        self.steps = 0
        self.begun = time.monotonic()   # the last step that is done
        self.pauses = []                # (from, to) of long steps
        self.unsure = False             # the last request was sent twice

    def run(self):
        try:
            self.prepare()
            while not self.world.stop.is_set():
                begun = time.monotonic()
                self.step()
                self.done(begun)
                time.sleep(PAUSE_S)
        except Abandoned:
            pass
        except Exception:  # noqa: BLE001 (told at the end)
            self.world.complain(f"{self.name}: {traceback.format_exc()}")

    def done(self, begun):
        ended = time.monotonic()
        if ended - begun > NOTED_S:
            self.pauses.append((begun, ended))
        self.steps += 1
        self.begun = begun

    def prepare(self):
        """Before the first step."""

    def again(self, what):
        """Wait before the next try."""
        self.unsure = True
        self.world.note(what)
        if self.world.abandon.wait(AGAIN_S):
            raise Abandoned

    def ask_again(self, err):
        """Wait, if this error allows the same request again."""
        if err.status == NOSPC and \
                time.monotonic() < self.gateway.full_until:
            self.again("told that the pool is full")
        elif err.status in (JUKEBOX, nfs4.GRACE):
            self.again("asked again")
        else:
            return False
        return True

    def until_answered(self, call):
        """What CALL of a connection gives."""
        self.unsure = False
        while True:
            try:
                if self.connection is None:
                    self.connection = self.gateway.connection()
                return call(self.connection)
            except (nfs3.Refused, nfs4.Failed) as err:
                if not self.ask_again(err):
                    raise
            except rpc.Gone:
                if self.connection:
                    self.connection.close()
                self.connection = None
                self.again("connections lost")

    def ask3(self, procedure, arguments):
        return self.until_answered(
            lambda conn: nfs3.call(conn, procedure, arguments))

    def ask4(self, *operations):
        """NFSv4.0, without a state."""
        return self.until_answered(lambda conn: nfs4.call(conn, *operations))

    def handle4(self, *names):
        path = "/".join((self.gateway.pseudo, self.world.folder, *names))
        return self.ask4(*nfs4.steps_to(path))[-1]

    def handle3(self, *names):
        handle = self.until_answered(lambda _: self.gateway.root())
        for name in (self.world.folder, *names):
            handle = self.ask3(nfs3.LOOKUP, nfs3.named(handle, name)).opaque()
        return handle

    def until_coherent(self, what, look):
        """LOOK gives a complaint, or None; it may be late."""
        end = time.monotonic() + COHERENT_S
        while wrong := look():
            if time.monotonic() > end:
                raise AssertionError(f"{what}: {wrong}")
            time.sleep(AGAIN_S)


class Stateful(Worker):
    """A worker whose client is one of NFSv4.1, with an open file."""

    protocol = "NFSv4.1"

    def __init__(self, name, world, gateway, seed, file):
        super().__init__(name, world, gateway, seed)
        self.file = file
        self.client = self.open = None

    def fresh(self):
        """A client of the same name that has forgotten all."""
        client = nfs4.Client(
            self.gateway.port, self.name, minor=1, host=self.gateway.host,
            pseudo=f"{self.gateway.pseudo}/{self.world.folder}")
        try:
            self.open = client.open(self.file, create=nfs4.UNCHECKED,
                                    want=nfs4.WANT_NO_DELEG)
        except BaseException:
            client.die()
            raise
        self.client = client

    def forget(self):
        if self.client:
            self.client.die()
        self.client = None

    def once(self, work):
        """WORK's result, or None: it may be tried again."""
        try:
            if self.client is None:
                self.fresh()
            return work()
        except nfs4.Conflict:
            raise
        except nfs4.Failed as err:
            if self.ask_again(err):
                return None
            if err.status not in LOST_STATE:
                raise
            away = time.monotonic() - self.gateway.disturbed
            if away > FORGIVEN_S:
                self.world.complain(
                    f"{self.name}: {err}, and the gateway was not disturbed "
                    f"for {away:.0f} s")
            self.forget()
            self.again("NFSv4 state lost")
        except OSError:         # Gone, TimeoutError
            self.forget()
            self.again("connections lost")
        return None

    def until_done(self, work):
        while (result := self.once(work)) is None:
            pass
        return result


# --- blocks

class BlockFile:
    """One writer, several readers."""

    def __init__(self, name, number_, stable=True):
        self.name = name
        self.ledger = Blocks(number_, BLOCKS)
        self.newest = [0] * BLOCKS
        self.stable = stable
        self.lock = threading.Lock()

    def sent(self, block, blocks, stamp):
        with self.lock:
            for at in range(block, block + blocks):
                self.newest[at] = stamp
            return self.ledger.sent(block, blocks, stamp)

    def floor(self, at):
        with self.lock:
            return self.ledger.firm[at]

    def check(self, data, at, floor):
        """The stamp of block AT; an AssertionError if it may not be."""
        file, block, stamp = CELL.unpack_from(data)
        with self.lock:
            newest = self.newest[at]
        whole = data == data[:CELL.size] * (BLOCK // CELL.size)
        assert whole and (file, block) == (self.ledger.file, at) and \
            floor <= stamp <= newest, \
            f"{self.name}, block {at}: {describe(data)}, wanted stamps " \
            f"{floor} to {newest}"
        return stamp


class Writer3(Worker):
    """Stable writes, or unstable ones and a COMMIT."""

    def __init__(self, name, world, gateway, seed, file):
        super().__init__(name, world, gateway, seed)
        self.file, self.stamp = file, 0

    def prepare(self):
        self.handle = self.handle3(self.file.name)

    def _write(self, one, stable):
        return nfs3.written(self.ask3(nfs3.WRITE, nfs3.write_arguments(
            self.handle, one.block * BLOCK, self.file.ledger.data(one),
            stable)))

    def _next(self):
        self.stamp += 1
        blocks = self.rng.randint(1, 4)
        block = self.rng.randrange(BLOCKS - blocks + 1)
        return self.file.sent(block, blocks, self.stamp)

    def step(self):
        if self.file.stable:
            self._stable(self._next())
        else:
            self._unstable()

    def _stable(self, one):
        reply = self._write(one, nfs3.FILE_SYNC)
        with self.file.lock:
            self.file.ledger.answered(one, reply)

    def _unstable(self):
        """As a client does: what another verifier covers is sent again."""
        ledger = self.file.ledger
        ones = [self._next() for _ in range(self.rng.randint(1, 6))]
        for one in ones:
            reply = self._write(one, nfs3.UNSTABLE)
            with self.file.lock:
                ledger.answered(one, reply)
        time.sleep(self.rng.uniform(0, UNSTABLE_S))
        with self.file.lock:
            covered = ledger.commit_sent()
        verifier = nfs3.committed(self.ask3(
            nfs3.COMMIT, nfs3.commit_arguments(self.handle)))
        with self.file.lock:
            again = ledger.committed(covered, verifier)
        if again:
            self.world.note("unstable writes sent again")
            for one in ones:
                self._stable(one)


class Writer41(Stateful):
    """Stable writes by the stateid of an open file."""

    def __init__(self, name, world, gateway, seed, file):
        super().__init__(name, world, gateway, seed, file.name)
        self.blocks, self.stamp = file, 0

    def step(self):
        self.stamp += 1
        at = self.rng.randrange(BLOCKS)
        one = self.blocks.sent(at, 1, self.stamp)
        data = self.blocks.ledger.data(one)
        count = self.until_done(
            lambda: self.open.write(at * BLOCK, data))
        assert count == BLOCK, "a short WRITE"
        with self.blocks.lock:
            self.blocks.ledger.make_firm(one)


class _Reader:
    """What readers of all versions share."""

    def look(self, file):
        at = self.rng.randrange(BLOCKS)
        floor = max(file.floor(at), self.newest[at])
        data = self.read(at * BLOCK, BLOCK)
        if not floor and not any(data):
            return
        stamp = file.check(data, at, floor)
        # A block that is not committed yet may go back once.
        if file.stable or stamp <= file.floor(at):
            self.newest[at] = stamp


class Reader3(_Reader, Worker):
    def __init__(self, name, world, gateway, seed, file):
        super().__init__(name, world, gateway, seed)
        self.file, self.newest = file, [0] * BLOCKS

    def prepare(self):
        self.handle = self.handle3(self.file.name)

    def step(self):
        self.look(self.file)

    def read(self, offset, count):
        return nfs3.found(self.ask3(nfs3.READ, nfs3.read_arguments(
            self.handle, offset, count)))[0]


class Reader40(Reader3):
    protocol = "NFSv4.0"

    def prepare(self):
        self.handle = self.handle4(self.file.name)

    def read(self, offset, count):
        return self.ask4(nfs4.put(self.handle), (
            25, nfs4.ANONYMOUS + wide(offset) + number(count),
            lambda reply: (reply.skip(4), reply.opaque())[1]))[-1]


class Reader41(_Reader, Stateful):
    def __init__(self, name, world, gateway, seed, file):
        super().__init__(name, world, gateway, seed, file.name)
        self.blocks, self.newest = file, [0] * BLOCKS

    def step(self):
        self.look(self.blocks)

    def read(self, offset, count):
        return self.until_done(lambda: self.open.read(offset, count))


# --- a file that grows

class Appender(Worker):
    def __init__(self, name, world, gateway, seed, file, ledger):
        super().__init__(name, world, gateway, seed)
        self.file, self.ledger = file, ledger

    def prepare(self):
        self.handle = self.handle3(self.file)

    def step(self):
        one = self.ledger.sent(self.rng.randint(1, LONGEST_APPEND))
        reply = nfs3.written(self.ask3(nfs3.WRITE, nfs3.write_arguments(
            self.handle, one.start, self.ledger.data(one))))
        self.ledger.answered(one, reply)


class TailReader(Appender):
    """The acknowledged end, seen through the other gateway."""

    def step(self):
        floor = self.ledger.firm_end

        def short():
            size = nfs3.attributes(self.ask3(
                nfs3.GETATTR, opaque(self.handle))).size
            return f"size {size}, acknowledged {floor}" \
                if size < floor else None
        self.until_coherent(self.file, short)
        start = max(0, floor - 2 * BLOCK)
        data = nfs3.found(self.ask3(nfs3.READ, nfs3.read_arguments(
            self.handle, start, floor - start)))[0] if floor else b""
        assert data == tail_bytes(self.ledger.file, start, floor), \
            f"{self.file}, {start} to {floor}: {describe(data)}"


# --- names

class Names3(Worker):
    """Files of one block are made, renamed, removed; the other gateway has
    to show it."""

    most = 20

    def __init__(self, name, world, gateway, seed, folder, other):
        super().__init__(name, world, gateway, seed)
        self.folder, self.other = folder, other
        self.there = {}         # name: file number
        self.last = "none", False
        self.births = 0

    def prepare(self):
        self.handle = self.handle3(self.folder)
        self.eyes = Worker(f"{self.folder}'s eyes", self.world, self.other, 0)
        self.seen_from = self.eyes.handle3(self.folder)

    def step(self):
        if self.world.names_rest.is_set():
            self.look(*self.last)
            return
        name, new = None, f"{self.folder}-{self.births}"
        if self.there:
            name = self.rng.choice(list(self.there))
        what = self.rng.choice(("create", "rename", "remove"))
        if name is None or (what == "create" and
                            len(self.there) < self.most):
            self.births += 1
            self.create(new, self.births)
            self.there[new] = self.births
            self.look(new, True)
        elif what == "rename":
            self.births += 1
            self.twice(nfs4.NOENT, lambda: self.rename(name, new))
            self.there[new] = self.there.pop(name)
            self.look(new, True)
            self.look(name, False)
        else:
            self.twice(nfs4.NOENT, lambda: self.remove(name))
            del self.there[name]
            self.look(name, False)

    def twice(self, status, work):
        """A request sent again finds that it had been done."""
        try:
            work()
        except (nfs3.Refused, nfs4.Failed) as err:
            if err.status != status or not self.unsure:
                raise
            self.world.note("names done twice")

    def create(self, name, number_):
        handle = nfs3.new_handle(self.ask3(
            nfs3.CREATE, nfs3.create_arguments(self.handle, name)))
        self.ask3(nfs3.WRITE, nfs3.write_arguments(
            handle, 0, Blocks(number_, 1).data(
                Blocks(number_, 1).sent(0, 1, 1))))

    def rename(self, name, new):
        self.ask3(nfs3.RENAME, nfs3.named(self.handle, name) +
                  nfs3.named(self.handle, new))

    def remove(self, name):
        self.ask3(nfs3.REMOVE, nfs3.named(self.handle, name))

    def look(self, name, wanted):
        self.last = name, wanted

        def wrong():
            try:
                self.eyes.ask3(nfs3.LOOKUP, nfs3.named(self.seen_from, name))
                found = True
            except nfs3.Refused as err:
                assert err.status == nfs4.NOENT, err
                found = False
            return None if found == wanted else \
                "it is still there" if found else "it is not there"
        self.until_coherent(f"{self.name}: {name} by gateway "
                            f"{self.other.name}", wrong)


class Names40(Names3):
    """Folders, by NFSv4.0."""

    protocol = "NFSv4.0"

    def prepare(self):
        super().prepare()
        self.handle = self.handle4(self.folder)

    def create(self, name, number_):
        self.twice(nfs4.EXIST, lambda: self.ask4(nfs4.put(self.handle), (
            6, number(nfs4.DIRECTORY) + opaque(name.encode()) +
            nfs4.attributes(mode=0o755), lambda reply: (
                reply.skip(20), nfs4.skip_bitmap(reply)))))

    def rename(self, name, new):
        self.ask4(nfs4.put(self.handle), (32, b"", None), (
            29, opaque(name.encode()) + opaque(new.encode()),
            lambda reply: reply.skip(40)))

    def remove(self, name):
        self.ask4(nfs4.put(self.handle), (
            28, opaque(name.encode()), lambda reply: reply.skip(20)))


# --- a counter under a lock

class Counter(Stateful):
    """Read, add one, write, under a lock that clients of both gateways take.

    The file has what each worker added, and the sum.  So each sees at once
    whether an update of its own, or one that it had seen, is lost.
    """

    owner = b"counter"

    def __init__(self, name, world, gateway, seed, slot):
        super().__init__(name, world, gateway, seed, "counter")
        self.slot = slot
        self.mine = 0           # acknowledged
        self.open_question = False      # whether one more came to pass
        self.seen = [0] * 8

    def step(self):
        while not self.once(self._increment):
            if self.world.abandon.wait(self.rng.uniform(0, PAUSE_S)):
                raise Abandoned
            if self.world.stop.is_set():
                return

    def _increment(self):
        """True: acknowledged."""
        try:
            self.open.lock(nfs4.WRITE_LOCK, 0, COUNTER.size, self.owner)
        except nfs4.Conflict:
            return False
        try:
            self._add_one()
            self.open.unlock(0, COUNTER.size, self.owner)
        except nfs4.Failed as err:
            if err.status != nfs4.IO:
                raise
            self.world.note("told that a lock is lost")
            self.forget()
            return False
        return True

    def _add_one(self):
        stateid = self.open.lock_stateids[self.owner]
        data = self.client.read(self.open.handle, 0, COUNTER.size, stateid)
        slots = self._judge(data)
        time.sleep(self.rng.uniform(0, PAUSE_S))
        slots[self.slot] += 1
        self.open_question = True
        self.client.write(self.open.handle, 0, COUNTER.pack(
            sum(slots), *slots), stateid)
        self.mine += 1
        self.open_question = False

    def _judge(self, data):
        """What is there, if nothing of it is lost."""
        total, *slots = COUNTER.unpack(data.ljust(COUNTER.size, b"\0"))
        allowed = {self.mine, self.mine + self.open_question}
        assert slots[self.slot] in allowed, \
            f"own updates: {slots[self.slot]}, wanted one of {allowed}"
        assert total == sum(slots), f"{total} is not the sum of {slots}"
        assert all(now >= before for now, before in zip(slots, self.seen)), \
            f"{slots} where {self.seen} had been seen"
        self.mine, self.open_question = slots[self.slot], False
        self.seen = slots[:]
        return slots


def workers(world, site, seed):
    """The threads, and the files that they leave: name, ledger."""
    a, b = site.a, site.b
    stable, of_41 = BlockFile("stable", 1), BlockFile("stable-41", 2)
    unstable = BlockFile("unstable", 3, stable=False)
    tails = {"tail-a": Tail(4), "tail-b": Tail(5)}
    root = a.root()
    with_a = a.connection()
    folder = nfs3.make_directory(with_a, root, world.folder)
    for name in ("stable", "stable-41", "unstable", "counter", *tails):
        nfs3.create(with_a, folder, name)
    for name in ("files", "folders", "kernel", "trees"):
        nfs3.make_directory(with_a, folder, name)
    with_a.close()
    threads = [
        Writer3("stable", world, a, seed, stable),
        Reader3("stable reader", world, b, seed, stable),
        Reader40("stable reader", world, a, seed, stable),
        Reader41("stable reader", world, b, seed, stable),
        Writer41("stable-41", world, b, seed, of_41),
        Reader41("stable-41 reader", world, a, seed, of_41),
        Reader40("stable-41 reader", world, b, seed, of_41),
        Writer3("unstable", world, b, seed, unstable),
        Reader3("unstable reader", world, a, seed, unstable),
        Appender("append", world, a, seed, "tail-a", tails["tail-a"]),
        TailReader("append reader", world, b, seed, "tail-a",
                   tails["tail-a"]),
        Appender("append", world, b, seed, "tail-b", tails["tail-b"]),
        TailReader("append reader", world, a, seed, "tail-b",
                   tails["tail-b"]),
        Names3("files", world, b, seed, "files", a),
        Names40("folders", world, a, seed, "folders", b),
        *(Counter(f"counter {slot}", world, (a, b)[slot % 2], seed, slot)
          for slot in range(4))]
    files = {file.name: file.ledger for file in (stable, of_41, unstable)}
    return threads, {**files, **tails}
