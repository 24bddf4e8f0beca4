# SPDX-License-Identifier: LGPL-3.0-or-later
"""Names and attributes changed over several NFSv3 connections until the
server is gone.

Each Chain has one request in flight: the answer to it sends the next.  It
keeps what was acknowledged, and nothing is sent twice.
"""
import time

from history import History
from nfs import nfs3, rpc

NOENT, STALE = 2, 70
FOLDERS = ("x", "y", "z")
MANY = 24               # names of a chain: then it rather removes


class Chain:
    def __init__(self, load, connection):
        self.load = load
        self.rng = load.rng
        self.connection = connection
        self.history = History()

    def step(self):
        """Send the next request."""
        kind, change, procedure, arguments, done = self.next()
        self.history.sent(change)

        def answered(reader):
            try:
                done(nfs3.check(reader, procedure))
            except nfs3.Refused as err:
                self.load.refused.append(
                    f"{kind} {change}: {err}; before it: "
                    f"{self.history.changes[-3:]}")
                return              # and no more of this chain
            self.history.acknowledged(kind, change, time.monotonic())
            self.step()
        try:
            self.connection.send(procedure, arguments, answered)
        except rpc.Gone:
            pass                    # what has come already is still read


class Names(Chain):
    """All kinds of changes to names of its own."""

    def __init__(self, load, connection, number):
        super().__init__(load, connection)
        self.number = number
        self.made = 0
        self.there = {}             # name: [type, fileid], and its handle

    def next(self):
        some = self.rng.sample(list(self.there), len(self.there))
        kind = self.rng.choice(("create", "mkdir", "symlink", "mknod", "remove",
                                "rmdir", "rename", "link"))
        if len(some) > MANY:
            kind = "remove"
        name = next((name for name in some if self._fits(kind, name)), None)
        if name is None and kind in {"remove", "link"}:
            kind = "create"
        elif name is None and kind == "rmdir":
            kind = "mkdir"
        elif name is None and kind == "rename":
            kind = "symlink"
        return getattr(self, "_" + kind)(name)

    def _fits(self, kind, name):
        number = self.there[name][0][0]
        return {"remove": number != nfs3.DIRECTORY,
                "rmdir": number == nfs3.DIRECTORY,
                "link": number == nfs3.REGULAR}.get(kind, True)

    def _new(self):
        self.made += 1
        return f"{self.rng.choice(FOLDERS)}/{self.number}-{self.made}"

    def _at(self, name):
        """Handle of its folder, and its name there."""
        folder, base = name.split("/")
        return self.load.folders[folder], base

    def _make(self, kind, number, procedure, arguments):
        name = self._new()
        value = [number, None]

        def done(reader):
            handle = nfs3.new_handle(reader)
            attributes = nfs3.optional_attributes(reader)
            value[1] = attributes and attributes.fileid
            self.there[name] = value, handle
        return kind, {name: value}, procedure, arguments(*self._at(name)), done

    def _create(self, _):
        return self._make("create", nfs3.REGULAR, nfs3.CREATE,
                          nfs3.create_arguments)

    def _mkdir(self, _):
        return self._make("mkdir", nfs3.DIRECTORY, nfs3.MKDIR,
                          nfs3.directory_arguments)

    def _symlink(self, _):
        return self._make("symlink", nfs3.SYMBOLIC_LINK, nfs3.SYMLINK,
                          nfs3.symlink_arguments)

    def _mknod(self, _):
        return self._make("mknod", nfs3.FIFO, nfs3.MKNOD, nfs3.fifo_arguments)

    def _link(self, name):
        value, handle = self.there[name]
        new = self._new()

        def done(_):
            self.there[new] = value, handle
        return "link", {new: value}, nfs3.LINK, nfs3.link_arguments(
            handle, *self._at(new)), done

    def _rename(self, name):
        entry = self.there[name]
        new = self._target(entry[0]) or self._new()

        def done(_):
            del self.there[name]
            self.there[new] = entry
        return "rename", {name: None, new: entry[0]}, nfs3.RENAME, \
            nfs3.rename_arguments(*self._at(name), *self._at(new)), done

    def _target(self, value):
        """One rename in four replaces another name.  Of two links to one file
        a rename leaves both."""
        if self.rng.random() > 0.25 or value[0] == nfs3.DIRECTORY:
            return None
        return next((name for name, (other, _) in self.there.items()
                     if other[0] != nfs3.DIRECTORY and
                     None not in (other[1], value[1]) and
                     other[1] != value[1]), None)

    def _remove(self, name):
        return self._unlink("remove", name, nfs3.REMOVE)

    def _rmdir(self, name):
        return self._unlink("rmdir", name, nfs3.RMDIR)

    def _unlink(self, kind, name, procedure):
        def done(_):
            del self.there[name]
        return kind, {name: None}, procedure, nfs3.named(
            *self._at(name)), done

    def found(self, connection):
        """The state as a new client sees it."""
        return {name: find(connection, *self._at(name))
                for name in self.history.known()}


def find(connection, folder, name):
    """[type, fileid], or None."""
    try:
        reader = nfs3.call(connection, nfs3.LOOKUP, nfs3.named(folder, name))
    except nfs3.Refused as err:
        if err.status not in (NOENT, STALE):
            raise
        return None
    handle = reader.opaque()
    attributes = nfs3.optional_attributes(reader) or \
        nfs3.get_attributes(connection, handle)
    return [attributes.type, attributes.fileid]


class Attributes(Chain):
    """Owner, mode and modification time of a file of its own."""

    def __init__(self, load, connection, number):
        super().__init__(load, connection)
        self.handle = nfs3.create(
            connection, load.folders[self.rng.choice(FOLDERS)],
            f"file-{number}")
        self.steps = 0
        self.history = History(self.found(connection))

    def next(self):
        self.steps += 1
        change = {
            "chmod": {"mode": self._mode()},
            "chown": {"uid": self.steps, "gid": self.steps + 1},
            "utimes": {"mtime": 10**18 + self.steps},
        }
        kind = self.rng.choice(list(change))
        return kind, change[kind], nfs3.SETATTR, nfs3.setting(
            self.handle, **change[kind]), lambda _: None

    def _mode(self):
        """511 of them, each another than those before."""
        return self.steps % 511 + 1

    def found(self, connection):
        try:
            now = nfs3.get_attributes(connection, self.handle)
        except nfs3.Refused as err:
            if err.status not in (NOENT, STALE):
                raise
            return dict.fromkeys(self.history.known())
        return {"mode": now.mode & 0o777, "uid": now.uid, "gid": now.gid,
                "mtime": now.mtime}


class NameLoad:
    """KIND, Names or Attributes, over CONNECTIONS with CHAINS each."""

    def __init__(self, kind, folders, port, rng, connections, chains):
        self.folders = folders      # name: handle
        self.rng = rng
        self.refused = []       # whose chain went no further
        self.connections = [rpc.Concurrent(port) for _ in range(connections)]
        self.chains = [
            kind(self, connection, f"{number}-{chain}")
            for number, connection in enumerate(self.connections)
            for chain in range(chains)]

    def begin(self):
        for chain in self.chains:
            chain.step()

    def answers(self):
        """The number of them, of each chain."""
        return [len(chain.history.kinds) for chain in self.chains]

    def each_has_more_than(self, before):
        """Or was refused, and goes no further."""
        more = sum(now > then for now, then in zip(self.answers(), before))
        return more + len(self.refused) >= len(self.chains)

    def end(self):
        """When the server is gone, and all its answers are read."""
        for connection in self.connections:
            connection.thread.join(60)
            if connection.thread.is_alive():
                raise SystemExit("a connection outlives the gateway")
            connection.close()
