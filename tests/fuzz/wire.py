#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Right and wrong requests of NFSv3, 4.0, 4.1 and 4.2, sent to a ganesha.nfsd.

    wire.py [--minutes N] [--seed S] [--sanitizer address|thread]
        [--fsal FSAL] [--round R] [--steps N]

Goes on for N (10) minutes, in rounds: a folder with some files is made, a
number of requests is sent by several clients, thousands of one kind among
them, and all of it is removed.  A round depends on the seed and its number
alone; --round sends that one only, with no more than --steps steps.

--sanitizer builds the plugin with it, and runs that.  With --fsal CEPH it is
for what Ganesha's core copies and frees: that FSAL is not instrumented.

Fails if ganesha.nfsd ends, or a sanitizer reports anything, for a reason that
KNOWN does not have; if a request that is well formed has no answer, a client
that does nothing wrong none within 5 s; or if memory, threads or descriptors
grow.  Ganesha is started again after its end.  What was sent last is in
fuzz-wire-*.txt in the folder of logs.
"""
import argparse
import collections
import contextlib
import random
import struct
import sys
import time
from pathlib import Path

sys.path += [str(Path(__file__).resolve().parents[1] / folder)
             for folder in ("", "integration", "sanitize")]

import wire_calls as calls
from lab_program import LOGS, say
from nfs import nfs3, nfs4, rpc
from nfs.xdr import number, opaque, wide
from wire_clients import SEQUENCE, SLOTS, Client3, Client4, Line, NoAnswer
from wire_target import Target
from wire_values import Found, Values
from wire_watch import Watch

PORT, PSEUDO = 2049, "/ceph"
STEPS = 1500                # of a round
FLOOD = 2000                # requests of one kind, in a round
LAST = 300                  # requests that are kept for the one who looks
WILD = (0.0, 0.02, 0.05, 0.1, 0.3, 0.7)
BAD_SEQID, MISORDERED = 10026, 10063
STATUS = {0: "OK", 1: "PERM", 2: "NOENT", 5: "IO", 6: "NXIO", 13: "ACCES",
          17: "EXIST", 20: "NOTDIR", 21: "ISDIR", 22: "INVAL", 27: "FBIG",
          28: "NOSPC", 63: "NAMETOOLONG", 66: "NOTEMPTY", 70: "STALE",
          10001: "BADHANDLE", 10003: "BAD_COOKIE", 10004: "NOTSUPP",
          10005: "TOOSMALL", 10006: "SERVERFAULT", 10008: "DELAY",
          10010: "DENIED", 10013: "GRACE", 10015: "SHARE_DENIED",
          10018: "RESOURCE", 10020: "NOFILEHANDLE", 10022: "STALE_CLIENTID",
          10023: "STALE_STATEID", 10024: "OLD_STATEID", 10025: "BAD_STATEID",
          10026: "BAD_SEQID", 10032: "ATTRNOTSUPP", 10036: "BADXDR",
          10037: "LOCKS_HELD", 10038: "OPENMODE", 10039: "BADOWNER",
          10040: "BADCHAR", 10041: "BADNAME", 10044: "ILLEGAL",
          10052: "BADSESSION", 10053: "BADSLOT", 10063: "SEQ_MISORDERED",
          10071: "OP_NOT_IN_SESSION"}


class Crashed(Exception):
    """The process is gone."""


class Message:
    """A call: ARGUMENTS of PROCEDURE by CLIENT."""

    def __init__(self, client, procedure, arguments):
        self.client, self.procedure = client, procedure
        self.arguments = arguments
        self.proper = True          # decodes: an answer has to come
        self.whole = False          # no other operation may come out of it
        self.again = False          # may be sent again
        self.slot = None            # whose sequence goes on if it is taken


class Round:
    """All that one folder sees."""

    def __init__(self, run, order):
        self.run, self.order = run, order
        self.name = f"fuzz-wire-{run.seed}-{order}"
        self.helper = Line(PORT)
        self.top = nfs3.root_of(PSEUDO, PORT + 1)
        try:                    # of a run that was killed
            remove_tree(self.helper, self.top, self.name)
        except nfs3.Refused as err:
            assert err.status == nfs4.NOENT, err
        self.folder = nfs3.make_directory(self.helper, self.top, self.name)
        self.found = Found(self._files(), self._handles4())
        self.clients = []
        for client in ((Client3, "a", 0), (Client3, "b", 1000)):
            self.clients.append(client[0](PORT, *client[1:]))
        for name, minor in (("a", 0), ("b", 0), ("c", 1), ("d", 2),
                            ("e", 2)):
            self.clients.append(Client4(PORT, name, minor,
                                        f"{run.seed} {order}"))
        for client in self.clients[2:]:
            self.found.clientids.add(client.clientid)
            self.found.sessions.add(client.session)
        self.answered = {}         # what may be sent again, by slot
        self.bad_sequences = collections.Counter()

    def _files(self):
        helper, folder = self.helper, self.folder
        found = [folder]
        for n in range(4):
            found.append(nfs3.create(helper, folder, f"f{n}"))
            nfs3.write(helper, found[-1], 0, b"%d" % n * 65536)
        for n in range(3):
            found.append(nfs3.make_directory(helper, folder, f"d{n}"))
        for n in range(40):
            nfs3.create(helper, found[-1], f"n{n}")
        for procedure, arguments in (
                (nfs3.SYMLINK, nfs3.symlink_arguments(folder, "l0")),
                (nfs3.MKNOD, nfs3.fifo_arguments(folder, "n0"))):
            found.append(nfs3.new_handle(nfs3.call(
                helper, procedure, arguments)))
        return found

    def _handles4(self):
        path = f"{PSEUDO}/{self.name}"
        return [nfs4.handle_of(self.helper, path + name) for name in (
            "", "/f0", "/f1", "/f2", "/f3", "/d0", "/d1", "/d2", "/l0",
            "/n0")]

    # --- steps

    def go(self, steps, end):
        """STEPS of them, or until END."""
        flood = self.run.random(self.order, "flood")
        flood_at = flood.randrange(STEPS)
        for n in range(steps):
            if time.monotonic() > end or self.run.watch.complaints:
                break
            if n == flood_at:
                self.flood(flood)
            self.step(n)

    def step(self, n):
        rng = self.run.random(self.order, n)
        way = rng.choices(("one", "several", "rpc"), (80, 15, 5))[0]
        if way == "rpc":
            self.wrong_rpc(rng)
            return
        count = 1 if way == "one" else rng.randrange(2, len(self.clients))
        messages = [self.message(rng, client, n)
                    for client in rng.sample(self.clients, count)]
        waiting = []
        for message in messages:
            try:
                waiting.append((message, self.send(message)))
            except rpc.Gone:
                self.gone(message)
        for message, xid in waiting:
            self.receive(message, xid)

    def message(self, rng, client, n):
        values = Values(rng, self.found, rng.choice(WILD), client.stateids)
        make = self.message3 if client.version == 3 else self.message4
        message = make(values, client, n)
        if rng.random() < 0.08:
            self.spoil(rng, message)
        return message

    def message3(self, values, client, _):
        return Message(client, *calls.call3(values))

    def message4(self, values, client, n):
        rng = values.rng
        count = rng.randrange(1, 7) if rng.random() < 0.985 else rng.choice(
            (40, 78, 79, 80, 99, 100, 101, 1024, 1025))
        some = calls.operations(values, client, count)
        chosen = {one for one, _ in some}
        ends_it = bool(calls.ENDS_IT & chosen)
        if ends_it:
            some = [one for one in some if one[0] not in calls.TAKES_HANDLE]
        if rng.random() < 0.93 or ends_it:
            some.insert(0, (22, opaque(values.handle(4))))
        slot, sequence, again = self.sequence(values, client, n)
        if again:
            return Message(client, nfs4.COMPOUND, again)
        if sequence:
            some.insert(0, (SEQUENCE, sequence))
        minor = client.minor if rng.random() < 0.99 else rng.choice(
            (0, 1, 2, 3, 2**31, 2**32 - 1))
        tag = b"" if rng.random() < 0.9 else values.text()
        arguments = opaque(tag) + number(minor) + number(len(some)) + b"".join(
            number(one) + body for one, body in some)
        message = Message(client, nfs4.COMPOUND, arguments)
        message.slot = slot
        message.whole = ends_it
        message.again = not calls.NEVER_AGAIN & chosen
        if not client.minor:
            self.answered[client, None] = arguments
        # What of it decodes is not known here: strings may be too long, counts
        # may not fit.
        message.proper = values.wild == 0.0 and count < 100
        return message

    def sequence(self, values, client, n):
        """The slot, the SEQUENCE, and what is to be sent instead."""
        rng = values.rng
        slot = n % SLOTS
        how = rng.choices(("next", "again", "false", "ahead", "far", "none"),
                          (90, 3, 2, 2, 1, 2))[0]
        if how == "again":
            return None, None, self.answered.get(
                (client, slot if client.minor else None))
        if not client.minor or how == "none" or (
                how == "false" and not self.answered.get((client, slot))):
            return None, None, None
        if how == "far":
            return None, client.session + struct.pack(
                ">IIII", 1, values.number(SLOTS, 64), values.number(), 1), None
        ahead = {"next": 1, "false": 0, "ahead": rng.choice((2, 3, 2**31))}
        return slot if how == "next" else None, client.next_sequence(
            slot, ahead[how], rng.randrange(2)), None

    @staticmethod
    def spoil(rng, message):
        """What is sent does not decode, or not as it was meant."""
        body = message.arguments
        way = rng.randrange(2 if message.whole else 4)
        message.proper = message.again = False
        if way == 0:
            body = body[:rng.randrange(len(body) + 1)]
        elif way == 1:
            body += rng.randbytes(rng.choice((1, 4, 64, 5000)))
        else:
            for _ in range(rng.randrange(1, 4)):
                at = 4 * rng.randrange(len(body) // 4 + 1)
                body = body[:at] + number(rng.choice(
                    (0, 1, 2**31, 2**32 - 1, rng.getrandbits(32),
                     rng.randrange(1, 51)))) + body[at + 4:]
        message.arguments = body

    # --- sending and receiving

    def send(self, message):
        self.run.keep(message.client, message.procedure, message.arguments)
        return message.client.line.send(message.procedure, message.arguments,
                                        version=message.client.version)

    def receive(self, message, xid):
        run, client = self.run, message.client
        try:
            reader = client.line.answer(xid)
        except rpc.Rejected as err:
            run.count(client, "RPC", str(err))
            return
        except NoAnswer:
            run.count(client, "no answer",
                      "proper" if message.proper else "improper")
            if message.proper:
                run.hangs(f"{client.name}: no answer to procedure "
                          f"{message.procedure}")
            self.renew(client)
            return
        except rpc.Gone:
            self.gone(message)
            return
        try:
            self.harvest(message, reader)
        except (struct.error, EOFError) as err:
            run.count(client, "answer cut short", type(err).__name__)

    def harvest(self, message, reader):
        run, client = self.run, message.client
        if client.version == 3:
            status = calls.harvest3(self.found, message.procedure,
                                    message.arguments, reader)
            if status is not None:
                run.count(client, calls.NAMES3[message.procedure], status)
            return
        seen = calls.harvest4(self.found, reader, client.stateids)
        for operation, status in seen:
            name = calls.OPERATIONS.get(operation, (str(operation),))[0]
            run.count(client, name, status)
        if message.slot is not None and seen and seen[0] == (SEQUENCE, 0):
            client.done(message.slot)
            self.answered[client, message.slot] = \
                message.arguments if message.again else None
        statuses = {status for _, status in seen}
        if BAD_SEQID in statuses:
            self.bad_sequences[client] += 1
        if client.lost(seen) or self.bad_sequences[client] > 30 or (
                message.slot is not None and MISORDERED in statuses):
            self.bad_sequences[client] = 0
            self.renew(client)

    def gone(self, message):
        self.run.count(message.client, "connection closed", "")
        self.renew(message.client)

    def renew(self, client):
        """Until the server takes it, or is no more."""
        end = time.monotonic() + 30
        while True:
            try:
                client.renew()
                return
            except (rpc.Gone, NoAnswer, nfs4.Failed, OSError) as err:
                if not self.run.watch.alive():
                    raise Crashed from err
                if time.monotonic() > end:
                    self.run.hangs(f"{client.name}: no new session: {err!r}")
                    raise
                time.sleep(0.1)

    # --- what is wrong below NFS

    def wrong_rpc(self, rng):
        """On a connection of its own, which nobody misses."""
        try:
            line = Line(PORT)
        except rpc.Gone as err:
            if not self.run.watch.alive():
                raise Crashed from err
            return
        way = rng.randrange(8)
        body = nfs4.compound_arguments([(24, b"", None), (10, b"", None)])
        head = [rng.getrandbits(32), 0, 2, rpc.NFS, 4, nfs4.COMPOUND]
        if way == 0:
            head[rng.randrange(1, 6)] = rng.choice(
                (0, 1, 2, 3, 5, 100005, 2**31, 2**32 - 1))
        credential = rpc.auth_sys(0, 0)
        if way == 1:
            credential = rng.choice((
                number(rng.choice((0, 1, 2, 3, 6, 7, 390000))) + opaque(
                    rng.randbytes(rng.choice((0, 4, 20, 400)))),
                number(1) + opaque(bytes(401)),
                number(1) + number(2**32 - 1),
                number(1) + opaque(number(0) + opaque(b"m" * 255) +
                                   bytes(8) + number(17) + bytes(68))))
        call = struct.pack(">IIIIII", *head) + credential + rpc.AUTH_NONE + \
            body
        if way == 2:
            call = call[:rng.randrange(len(call))]
        mark = rpc.LAST_FRAGMENT
        if way == 3:                # a longer one than comes
            data = number(mark | rng.choice(
                (len(call) + 4, 1 << 20, (1 << 31) - 1))) + call
        elif way == 4:              # fragments, empty ones among them
            step = rng.choice((1, 4, 7, 40))
            pieces = [call[at:at + step] for at in range(0, len(call), step)]
            data = b"".join(number(len(piece)) + piece
                            for piece in pieces) + number(mark)
        elif way == 5:
            data = number(mark) * rng.choice((1, 1000))
        elif way == 6:
            data = number(mark | 400) + rng.randbytes(400)
        else:
            data = number(mark | len(call)) + call
        self.run.keep(None, way, data)
        try:
            line.raw(data)
            if way not in (0, 2, 3, 5, 6):
                line.answer(head[0])
            self.run.count(None, f"RPC {way}", "")
        except (rpc.Gone, rpc.Rejected, NoAnswer, EOFError, struct.error,
                AssertionError) as err:
            self.run.count(None, f"RPC {way}", type(err).__name__)
        finally:
            line.close()

    # --- many of one kind

    def flood(self, rng):
        kind = rng.choice(("opens", "locks", "xattrs", "names", "acls",
                           "clients", "opens of one"))
        client = self.clients[-1]
        self.run.count(None, "flood", kind)
        made = getattr(self, "flood_" + kind.replace(" ", "_"))
        try:
            self.pump(client, made(rng, client))
        except (rpc.Gone, NoAnswer) as err:
            self.run.count(None, "flood ended", type(err).__name__)
            self.renew(client)

    def pump(self, client, requests):
        """Each of REQUESTS, operations, in the next slot; as many in flight
        as there are slots."""
        waiting = collections.deque()

        def take():
            slot, message, xid = waiting.popleft()
            message.slot = slot
            self.receive(message, xid)

        session = client.session
        for n, some in enumerate(requests):
            slot = n % SLOTS
            if len(waiting) == SLOTS:
                take()
            if client.session != session:
                return              # the answers to the others are lost
            arguments = nfs4.compound_arguments(
                [(SEQUENCE, client.next_sequence(slot), None), *(
                    (*one, None) for one in some)], client.minor)
            message = Message(client, nfs4.COMPOUND, arguments)
            waiting.append((slot, message, self.send(message)))
        while waiting and client.session == session:
            take()

    def _named(self, place):
        return self.found.handles[4].first[place]

    def _opening(self, client, owner, name):
        return 18, number(0) + struct.pack(">II", 3, 0) + wide(
            client.clientid) + opaque(owner) + struct.pack(
                ">II", 1, 0) + nfs4.attributes(mode=0o644) + number(
                    0) + opaque(name)

    def flood_opens(self, _, client):
        for n in range(FLOOD):
            yield [(22, opaque(self._named(0))),
                   self._opening(client, b"flood %d" % n, b"f%d" % (n % 12)),
                   (10, b"")]

    def flood_opens_of_one(self, _, client):
        for n in range(FLOOD):
            yield [(22, opaque(self._named(0))),
                   self._opening(client, b"flood %d" % n, b"f0")]

    def flood_locks(self, _, client):
        yield [(22, opaque(self._named(0))),
               self._opening(client, b"flood", b"f0")]
        for n in range(FLOOD):
            yield [(22, opaque(self._named(1))),
                   (12, struct.pack(">IIQQII", 2, 0, 2 * n, 1, 1, 0) +
                    self.found.opened + number(0) + wide(client.clientid) +
                    opaque(b"flood %d" % n))]

    def flood_xattrs(self, rng, client):
        for n in range(FLOOD):
            name = opaque(b"%s%d" % (b"x" * rng.choice((1, 20, 200)), n))
            if n % 50 == 49:
                yield [(22, opaque(self._named(1))),
                       (74, wide(rng.randrange(n)) + number(
                           rng.choice((20, 200, 1 << 20))))]
            yield [(22, opaque(self._named(1))),
                   (73, number(0) + name + opaque(b"v" * (n % 40)))
                   if n % 5 else (75, name)]

    def flood_names(self, rng, client):
        for n in range(FLOOD // 2):
            yield [(22, opaque(self._named(5))),
                   (6, number(2) + opaque(b"many %d" % n) + nfs4.attributes(
                       mode=0o755))]
            if n % 20 == 19:
                cookie = self.found.cookies.pick(rng.getrandbits(6))
                yield [(22, opaque(self._named(5))),
                       (26, wide(cookie) + bytes(8) + number(4096) + number(
                           rng.choice((100, 8192, 1 << 20))) +
                        nfs4.bitmap(1, 3, 4, 12, 20)),
                       (28, opaque(b"many %d" % rng.randrange(n)))]

    def flood_acls(self, rng, client):
        for n in range(60):
            entries = b"".join(
                struct.pack(">III", 0, 0, 0x1f01ff) + opaque(b"%d" % (
                    1000 + rng.randrange(500)))
                for _ in range(rng.choice((1, 50, 400, 1000))))
            count = entries.count(struct.pack(">III", 0, 0, 0x1f01ff))
            body = opaque(number(count) + entries)
            yield [(22, opaque(self._named(1 + n % 4))),
                   (34, nfs4.ANONYMOUS + nfs4.bitmap(12) + body),
                   (9, nfs4.bitmap(12, 33)), (3, number(0x3f))]

    def flood_clients(self, rng, client):
        for n in range(400):
            yield [(42, rng.randbytes(8) + opaque(b"wire many %d" % (
                n % 100)) + number(0) * 3)]

    # --- the end

    def end(self):
        """Nothing of it is left."""
        for client in self.clients:
            try:
                client.end()
            except (rpc.Refused, NoAnswer):
                # Sessions that it was made to make: they expire.
                client.line.close()
        self.helper.close()
        self.helper = Line(PORT)
        remove_tree(self.helper, self.top, self.name)
        self.helper.close()


def remove_tree(line, directory, name):
    """With all that is in it, its snapshots first."""
    handle = nfs3.lookup(line, directory, name)
    try:
        snapshots = nfs3.lookup(line, handle, b".snap")
    except nfs3.Refused:
        snapshots = None
    if snapshots:
        for one in _entries(line, snapshots):
            if not one.startswith(b"_"):        # of a folder above
                patiently(nfs3.remove, line, snapshots, one, nfs3.RMDIR)
    for one in _entries(line, handle):
        try:
            patiently(nfs3.remove, line, handle, one)
        except nfs3.Refused:
            remove_tree(line, handle, one)
    patiently(nfs3.remove, line, directory, name, nfs3.RMDIR)


def patiently(call, *arguments):
    """A server that asks to be asked again is asked again."""
    end = time.monotonic() + 30
    while True:
        try:
            return call(*arguments)
        except nfs3.Refused as err:
            if err.status != nfs4.DELAY or time.monotonic() > end:
                raise
            time.sleep(0.1)


def _entries(line, handle):
    names, cookie, verifier, eof = [], 0, bytes(8), False
    while not eof:
        entries, eof, verifier = nfs3.readdir(line, handle, cookie, verifier,
                                              1 << 16)
        names += [name for name, _ in entries if name not in (b".", b"..")]
        cookie = entries[-1][1] if entries else cookie
        eof = eof or not entries
    return names


class Run:
    def __init__(self, args):
        self.args, self.seed = args, args.seed
        self.target = Target(args.sanitizer, args.fsal)
        self.seen = collections.Counter()
        self.requests = 0
        self.last = collections.deque(maxlen=LAST)
        self.watch = None
        self.crashes = []
        self.rounds = 0

    def random(self, *words):
        return random.Random(" ".join(map(str, (self.seed, *words))))

    def count(self, client, what, status):
        kind = "" if client is None else "v3 " if client.version == 3 \
            else f"v4.{client.minor} "
        self.seen[kind + what, STATUS.get(status, status)] += 1

    def keep(self, client, procedure, data):
        self.requests += 1
        self.last.append((client.name if client else "-", getattr(
            client, "minor", 3), procedure, data))

    def write_last(self, kind):
        """What was sent before it, the latest at the end."""
        path = LOGS / f"fuzz-wire-{kind}-{int(time.time())}.txt"
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"seed {self.seed} round {self.rounds}\n")
            file.writelines(
                f"{name} {minor} {procedure} {data[:4096].hex()}\n"
                for name, minor, procedure, data in self.last)
        return path

    def hangs(self, what):
        """Nobody answers.  If that is known, Ganesha is ended."""
        if self.watch.alive() and self.target.goes_round():
            self.watch.hold()
            self.target.kill()
            raise Crashed(what)
        if self.watch.alive():
            self.target.stacks()
            self.watch.complaints.append(
                f"{what}; requests in {self.write_last('hang')}")

    def crashed(self):
        """Says why, and starts it again."""
        why = self.target.why_it_ended()
        self.crashes.append(why)
        say(f"ganesha.nfsd has ended: {why}; requests in "
            f"{self.write_last('crash')}")
        self.watch.hold()
        self.target.start_again()
        self.watch.go_on(self.target.pid())

    def go(self):
        self.target.start()
        helper = Line(PORT)
        top = nfs3.root_of(PSEUDO, PORT + 1)
        canary = f"fuzz-wire-canary-{self.seed}"
        handle = nfs3.create(helper, top, canary)
        before = sorted(_entries(helper, top))
        helper.close()
        self.watch = Watch(self.target.pid(), PORT, handle, self.args.minutes,
                           self.args.sanitizer)
        self.watch.start()
        end = time.monotonic() + self.args.minutes * 60
        try:
            self.all_rounds(end)
        finally:
            self.watch.stopped.set()
            self.watch.join(20)
        if self.watch.alive():
            helper = Line(PORT)
            left = sorted(_entries(helper, top))
            if left != before:
                self.watch.complaints.append(
                    f"left behind: {sorted({*left} ^ {*before})}")
            nfs3.remove(helper, top, canary)
            helper.close()
        self.watch.judge()

    def all_rounds(self, end):
        order = self.args.round or 0
        while time.monotonic() < end and not self.watch.complaints:
            self.rounds = order
            self.one_round(order, end)
            self.target.look(say)
            if self.args.round is not None:
                break
            order += 1

    def one_round(self, order, end):
        one = None
        try:
            one = Round(self, order)
            one.go(self.args.steps, end)
            one.end()
        except (Crashed, rpc.Gone, NoAnswer, ConnectionError) as err:
            if self.watch.complaints:
                return
            time.sleep(1)           # it may be about to end
            if self.watch.alive():
                with contextlib.suppress(Crashed):
                    self.hangs(f"no round: {err!r}")
                if self.watch.complaints:
                    return
            self.crashed()
            if one:
                helper = Line(PORT)
                remove_tree(helper, one.top, one.name)
                helper.close()

    # --- figures

    def figures(self):
        say(f"{self.requests} requests in {self.rounds + 1} rounds")
        by_status = collections.Counter()
        for (_, status), count in self.seen.items():
            by_status[status] += count
        say("statuses: " + ", ".join(
            f"{count} {status}" for status, count in by_status.most_common(30)
            if status != ""))
        if self.args.verbose:
            for (what, status), count in sorted(
                    self.seen.items(), key=lambda pair: -pair[1]):
                say(f"  {count:8} {what}: {status}")
        for line in self.watch.figures():
            say(line)
        for why, count in collections.Counter(self.crashes).items():
            say(f"ganesha.nfsd ended {count} times: {why}")
        return self.target.verdict(say, self.crashes)


def options():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--sanitizer", choices=("address", "thread"))
    parser.add_argument("--fsal", default="CEPH_ASYNC",
                        choices=("CEPH_ASYNC", "CEPH"))
    parser.add_argument("--round", type=int)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    if args.seed is None:
        args.seed = random.randrange(2**32)
    return args


def main():
    args = options()
    say(f"seed {args.seed}")
    run = Run(args)
    run.go()
    bad = run.figures()
    for what in [*run.watch.complaints, *bad]:
        say(f"WRONG: {what}")
    return 1 if run.watch.complaints or bad else 0


if __name__ == "__main__":
    sys.exit(main())
