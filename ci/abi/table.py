#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""What the plugin takes from a source tree of Ganesha, as a table.

    ci/abi/table.py BUILD SRC > TABLE

BUILD is a build folder of the plugin; its compiler flags name the headers.
SRC is Ganesha's src/.  Each line has four columns, divided by tabs:

| kind     | name           | where        | what |
|----------|----------------|--------------|------------------------------|
| member   | struct.member  | offset, bits | type; bytes if not a record |
| record   | struct         |              | size, if the plugin has one |
| enum     | constant       |              | value |
| macro    | name           |              | definition, or its digest |
| function | name           |              | type |
| inline   | name           |              | digest of the body |
| variable | name           |              | type |
| symbol   | name           |              | Ganesha's library exports it |
| error    | file:line      |              | why the plugin does not compile |

Inline functions of Ganesha that the plugin calls become part of the plugin.
So what they use is in the table as well, and so is what a macro names.
"""

import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import sys
from pathlib import Path

from clang.cindex import (CursorKind, Diagnostic, Index, StorageClass,
                          TokenKind, TranslationUnit, TypeKind)

# The plugin's sources, and those of the checker's library.
TOP = Path(__file__).resolve().parents[2]
OURS = tuple(f"{TOP / folder}/" for folder in ("FSAL_CEPH_ASYNC", "check"))

# The plugin compares it with the running Ganesha's itself (versions.c).
NOT_LAYOUT = {"GANESHA_VERSION"}

# A longer definition of a macro is shown as a digest.
SHOWN = 60

# Where a record stands for its own memory: its size is compiled in.
HOLDERS = {CursorKind.FIELD_DECL, CursorKind.PARM_DECL, CursorKind.VAR_DECL,
           CursorKind.CALL_EXPR, CursorKind.COMPOUND_LITERAL_EXPR,
           CursorKind.ARRAY_SUBSCRIPT_EXPR, CursorKind.BINARY_OPERATOR}


def digest(words):
    """A short text that differs when the words do."""
    return hashlib.sha256(" ".join(words).encode()).hexdigest()[:12]


def words_of(cursor):
    """The tokens of a cursor's text, without comments."""
    return [token.spelling for token in cursor.get_tokens()
            if token.kind != TokenKind.COMMENT]


def plain(text):
    """A type's name without the place of an unnamed record."""
    return re.sub(r"\((unnamed|anonymous)[^()]*\)", "(anonymous)", text)


def member_name(field):
    """A member's name; the members of an unnamed union have none around."""
    return "(anonymous)" if "(" in field.spelling else \
        field.spelling or "(anonymous)"


def record_name(record):
    """struct x; an unnamed one within a record is named as its member."""
    name = plain(record.type.get_canonical().spelling)
    around = record.semantic_parent
    if "(anonymous)" not in name or \
            around.kind not in (CursorKind.STRUCT_DECL, CursorKind.UNION_DECL):
        return name
    member = next((member_name(field) for field in around.type.get_fields()
                   if record_of(field.type) and
                   record_of(field.type).get_declaration() == record),
                  "(anonymous)")
    return f"{record_name(around)}.{member}"


def record_of(kind):
    """The record that a type, or each element of an array type, is."""
    kind = kind.get_canonical()
    while kind.kind in (TypeKind.CONSTANTARRAY, TypeKind.INCOMPLETEARRAY):
        kind = kind.element_type.get_canonical()
    return kind if kind.kind == TypeKind.RECORD else None


class Unit:
    """A source file of the plugin, and the rows that it needs."""

    def __init__(self, path, arguments, roots):
        self.rows, self.roots = set(), roots
        self.todo, self.seen, self.places = [], set(), {}
        options = TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD
        self.unit = Index.create().parse(path, arguments, options=options)
        for found in self.unit.diagnostics:
            if found.severity >= Diagnostic.Error:
                place = f"{self.short(found.location)}:{found.location.line}"
                self.add("error", place, "", found.spelling)
        children = list(self.unit.cursor.get_children())
        self.macros = {cursor.spelling: cursor for cursor in children
                       if cursor.kind == CursorKind.MACRO_DEFINITION and
                       self.place(cursor) == "tree"}
        for cursor in children:
            if self.place(cursor) == "plugin":
                self.visit(cursor)
        while self.todo:
            self.inline(self.todo.pop())

    def add(self, kind, name, where, what):
        """A row of the table."""
        self.rows.add((kind, name, str(where), str(what)))

    def short(self, location):
        """A file's name below the plugin or the tree."""
        name = location.file.name if location.file else "?"
        for root in (str(TOP), *self.roots):
            name = name.removeprefix(f"{root}/")
        return name

    def place(self, cursor):
        """Is a cursor in the plugin, in Ganesha's tree, or elsewhere?"""
        file = cursor.location.file
        name = file.name if file else ""
        if name not in self.places:
            real = os.path.realpath(name)
            self.places[name] = "" if not name else \
                "plugin" if real.startswith(OURS) else \
                "tree" if any(real.startswith(f"{os.path.realpath(root)}/")
                              for root in self.roots) else ""
        return self.places[name]

    def visit(self, top):
        """Add what all of a declaration uses."""
        if top.kind == CursorKind.MACRO_INSTANTIATION:
            self.macro(top.spelling)
        elif not top.kind.is_preprocessing():
            for cursor in top.walk_preorder():
                self.note(cursor)

    def note(self, cursor):
        """Add what one cursor uses."""
        kind = cursor.kind
        if kind in (CursorKind.MEMBER_REF_EXPR, CursorKind.MEMBER_REF):
            self.member(cursor.referenced)
        elif kind == CursorKind.DECL_REF_EXPR:
            self.named(cursor.referenced)
        elif kind == CursorKind.INIT_LIST_EXPR:
            self.listed(cursor)
        elif kind == CursorKind.CXX_UNARY_EXPR:  # sizeof
            for child in cursor.get_children():
                self.record(child.type)
        if kind in HOLDERS and cursor.storage_class != StorageClass.EXTERN:
            self.record(cursor.type)

    def record(self, kind):
        """The size of a record of the tree."""
        found = record_of(kind)
        if found and self.place(found.get_declaration()) == "tree":
            self.add("record", record_name(found.get_declaration()), "",
                     f"{found.get_size()} bytes")

    def member(self, field):
        """Offset and type of a member."""
        if not field or field.kind != CursorKind.FIELD_DECL or \
                self.place(field) != "tree":
            return
        kind = field.type.get_canonical()
        what = plain(kind.spelling)
        if field.is_bitfield():
            what += f", {field.get_bitfield_width()} bits"
        elif not record_of(kind):
            what += f", {kind.get_size()} bytes"
        name = f"{record_name(field.semantic_parent)}.{member_name(field)}"
        self.add("member", name, field.get_field_offsetof(), what)

    def listed(self, values):
        """{1, 2} gives values to the first two members."""
        found = values.type.get_canonical()
        if found.kind != TypeKind.RECORD:
            return
        for field, value in zip(found.get_fields(), values.get_children()):
            inner = next(value.get_children(), None)
            if inner is None or inner.kind != CursorKind.MEMBER_REF:
                self.member(field)

    def named(self, other):
        """A constant, function or variable that an expression names."""
        if not other or self.place(other) != "tree":
            return
        kind = plain(other.type.get_canonical().spelling)
        if other.kind == CursorKind.ENUM_CONSTANT_DECL:
            self.add("enum", other.spelling, "", other.enum_value)
        elif other.kind == CursorKind.FUNCTION_DECL:
            self.add("function", other.spelling, "", kind)
            body = other.get_definition()
            if body and body.spelling not in self.seen:
                self.seen.add(body.spelling)
                self.todo.append(body)
        elif other.kind == CursorKind.VAR_DECL and \
                other.semantic_parent.kind == CursorKind.TRANSLATION_UNIT:
            self.add("variable", other.spelling, "", kind)

    def inline(self, body):
        """A function of Ganesha that is compiled into the plugin."""
        words = words_of(body)
        self.add("inline", body.spelling, "", digest(words))
        for word in words:
            self.macro(word)
        self.visit(body)

    def macro(self, name):
        """A macro's definition, and those of the macros that it names."""
        if name not in self.macros or name in self.seen | NOT_LAYOUT:
            return
        self.seen.add(name)
        words = words_of(self.macros[name])[1:]
        text = " ".join(words)
        self.add("macro", name, "",
                 text if len(text) <= SHOWN else digest(words))
        for word in words:
            self.macro(word)


def scan(entry, roots):
    """Rows of a source file."""
    words = shlex.split(entry["command"])
    first = next(at for at, word in enumerate(words) if word.startswith("-"))
    arguments = words[first:words.index("-o")] + ["-Wno-everything"]
    os.chdir(entry["directory"])
    return Unit(entry["file"], arguments, roots).rows


def exported(src, rows):
    """Which of the functions and variables Ganesha's library exports."""
    script = Path(src, "MainNFSD/libganesha_nfsd.ver")
    names = set(re.findall(r"^\s*(\w+);", script.read_text(), re.M)) \
        if script.exists() else set()
    inline = {name for kind, name, _, _ in rows if kind == "inline"}
    return {("symbol", name, "", "exported") for kind, name, _, _ in rows
            if kind in ("function", "variable") and name in names - inline}


def table(build, src):
    """All rows, sorted."""
    cache = Path(build, "CMakeCache.txt").read_text()
    roots = [re.search(rf"^{key}:\w+=(.*)$", cache, re.M)[1] for key in
             ("GANESHA_SRC", "GANESHA_BUILD", "NTIRPC_INCLUDE_DIR")]
    known = {entry["file"]: entry for entry in json.loads(
                 Path(build, "compile_commands.json").read_text())
             if entry["file"].startswith(OURS)}
    rows = set()
    with concurrent.futures.ProcessPoolExecutor(os.cpu_count()) as pool:
        for found in pool.map(scan, known.values(), [roots] * len(known)):
            rows |= found
    return sorted(rows | exported(src, rows))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        sys.exit(2)
    for row in table(*sys.argv[1:]):
        print("\t".join(row))
