# SPDX-License-Identifier: LGPL-3.0-or-later
"""A ganesha.conf as Ganesha's parser has read it."""
import difflib
import re

from .finding import Place

LIKE = 0.8
TRUE = ("true", "yes", "1", "on", "t")


class Block:
    """A block: its keys, and the blocks in it.  Names match in any case."""

    def __init__(self, read):
        self.name = read["name"]
        self.file = read["file"]
        self.line = read["line"]
        self.keys = read["keys"]
        self.blocks = [Block(block) for block in read["blocks"]]

    def _last(self, key):
        found = None
        for statement in self.keys:
            if statement["name"].lower() == key.lower():
                found = statement
        return found

    def has(self, key):
        return self._last(key) is not None

    def values(self, key):
        """The values of a key; none if the block does not have it."""
        found = self._last(key)
        return found["values"] if found else []

    def get(self, key, preset=None):
        """The first value of a key, as it is written."""
        values = self.values(key)
        return values[0] if values else preset

    def truth(self, key, preset=False):
        value = self.get(key)
        return preset if value is None else value.lower() in TRUE

    def place(self, key=""):
        """Of a key, or of the block."""
        found = self._last(key)
        where = found or {"file": self.file, "line": self.line}
        return Place(where["file"], where["line"], self.name, key)

    def block(self, name):
        """The first block of a name in this one, or None."""
        return next(named(self.blocks, name), None)

    def secrets(self):
        """Statements of secret keys, here and below."""
        found = [key for key in self.keys if key["secret"]]
        for block in self.blocks:
            found += block.secrets()
        return found


def named(blocks, name):
    """The blocks of a name."""
    return (block for block in blocks if block.name.lower() == name.lower())


def take_secrets(blocks):
    """Take the values of secret keys out of what was read: by their place."""
    found = {}
    for block in blocks:
        for key in block["keys"]:
            if key["secret"]:
                for value in key["values"]:
                    found[key["file"], key["line"]] = value
                key["values"] = []
        found.update(take_secrets(block["blocks"]))
    return found


def is_like(name, known):
    """The one that was probably meant; None if NAME is one of them, too."""
    lower = {one.lower(): one for one in known}
    if name.lower() in lower:
        return None
    meant = difflib.get_close_matches(name.lower(), lower, 1, LIKE)
    return lower[meant[0]] if meant else None


# What ganesha.nfsd reads without -f.
PRESET_PATH = "/etc/ganesha/ganesha.conf"


class Config:
    """What reader.py returns.  Secrets are in .secrets and nowhere else."""

    def __init__(self, read, parameters, path, compat):
        self.path = path
        self.secrets = take_secrets(read.get("blocks", []))
        self.compat = compat
        self.read = read
        self.fsal = read["fsal"]
        self.versions = read["versions"]
        self.blocks = [Block(block) for block in read.get("blocks", [])]
        self.module = read.get("module", {}).get("values", {})
        # What Ganesha takes for its own keys, defaults included; empty if it
        # could not go on.
        self.parameters = parameters

    def block(self, name):
        """The first block of a name, or None."""
        return next(named(self.blocks, name), None)

    def place(self, name, key=""):
        """Of a key; of its block or of the file, if it is not there."""
        block = self.block(name)
        return block.place(key) if block else Place(self.path, 0, name, key)

    def exports(self):
        """All EXPORT blocks."""
        return list(named(self.blocks, "EXPORT"))

    def our_exports(self):
        """Exports of our FSAL: the block, and the values of its keys."""
        values = {(export["file"], export["line"]): export["values"]
                  for export in self.read.get("exports", [])}
        found = []
        for export in self.exports():
            fsal = export.block("FSAL")
            if fsal and (fsal.file, fsal.line) in values:
                found.append((export, values[fsal.file, fsal.line]))
        return found

    def numbered_exports(self):
        """Exports of our FSAL, each with its number as Ganesha reads it; none
        without one."""
        numbers = {(export["file"], export["line"]): export["export_id"]
                   for export in self.read.get("exports", [])}
        for export, _ in self.our_exports():
            fsal = export.block("FSAL")
            number = numbers[fsal.file, fsal.line]
            if number:
                yield export, number

    def our_keys(self):
        """The names of our keys: in the block of the module, in FSAL { }."""
        exports = self.read.get("exports", [])
        return list(self.module), list(exports[0]["values"]) if exports else []

    def told_of(self, file, line, text):
        """Block and key there of which TEXT, a message of the parser, tells;
        empty if that is not clear."""
        def of(blocks):
            for block in blocks:
                yield from ((block.name, key) for key in block.keys)
                yield from of(block.blocks)
        there = [pair for pair in of(self.blocks)
                 if (pair[1]["file"], pair[1]["line"]) == (file, line)]
        named_in = [pair for pair in there
                    if any(f"({word})" in text for word in
                           (pair[1]["name"], *pair[1]["values"]))]
        # A block that lacks something has its own line, too.
        if len(there) > 1 or text.startswith(("Unknown", "Mandatory")):
            there = named_in[:1]
        return (there[0][0], there[0][1]["name"]) if there else ("", "")

    def blocks_of_key(self, key):
        """Which blocks of ours have such a key; -compat reads them, too."""
        blocks = "CEPH_ASYNC { }", "FSAL { } of an EXPORT { }"
        return [block for block, keys in zip(blocks, self.our_keys())
                if key.lower() in map(str.lower, keys)]

    def of_export(self, export, key, preset=None):
        """A key of an EXPORT, or that of EXPORT_DEFAULTS."""
        defaults = self.block("EXPORT_DEFAULTS")
        if not export.has(key) and defaults:
            return defaults.get(key, preset)
        return export.get(key, preset)

    def secret_of(self, block):
        """The value of a block's secret key, or None."""
        return next((self.secrets.get((key["file"], key["line"]))
                     for key in block.keys if key["secret"]), None)

    def said(self):
        """Each step of reading, and what was said in it."""
        yield "file", self.read["said"]
        if "module" in self.read:
            yield "module", self.read["module"]["said"]
        for export in self.read.get("exports", []):
            yield "export", export["said"]
        yield "ganesha", self.parameters.get("said", [])
        # Others than the parser's tell of what the check knows itself.
        yield "exports", [line for line in
                          self.parameters.get("exports_said", [])
                          if line["text"].lstrip().startswith("Config ")]

    def parameter(self, key, preset=None):
        return self.parameters.get("parameters", {}).get(key, preset)

    def gateways_share(self):
        """Does the file look like one of several gateways?"""
        backend = self.parameter("RecoveryBackend", "fs")
        return backend == "rados_cluster" or self.block("RADOS_KV") is not None

    def files(self):
        """All files that the configuration was read from; not what came from
        RADOS."""
        found = {self.path: None}

        def walk(block):
            found[block.file] = None
            for below in block.blocks:
                walk(below)

        for block in self.blocks:
            walk(block)
        return [file for file in found if not re.match(r"\w+://", file)]


def export_name(export):
    """What messages call an export."""
    return f"export {export.get('Export_Id', '?')}"
