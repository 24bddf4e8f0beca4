#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-or-later
"""Writes what is said of the keys, from the table in the code.

    documents.py KEYS_JSON ROOT            write the documents
    documents.py --check KEYS_JSON ROOT    fail when they differ

KEYS_JSON is the program casync_keys_json, or a file with what it prints; ROOT
the folder with config/ and docs/.  The prose around the keys is in *.in here;
a line "@name@" is replaced by the function of that name.
"""
import argparse
import difflib
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

HERE = Path(__file__).parent
DOCUMENTS = {
    "configuration.md.in": "docs/configuration.md",
    "ceph_async.conf.in": "config/ceph_async.conf",
    "ganesha-ceph-async-config.8.in": "docs/man/ganesha-ceph-async-config.8",
}
UNITS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1024, "KiB"))
CHANGES = {
    "live": "reload",
    "identity": "remove and add the export",
    "restart": "restart",
}


def size(number):
    """1073741824 as people say it: 1 GiB."""
    for unit, name in UNITS:
        if number and number % unit == 0:
            return f"{number // unit} {name}"
    return str(number)


def amount(key, number):
    """A number with its unit."""
    if key["unit"] == "bytes":
        return size(number)
    if not key["unit"]:
        return str(number)
    unit = key["unit"]
    return f"{number} {unit.removesuffix('s') if number == 1 else unit}"


def values(key):
    """What it may be, for people."""
    kind = key["type"]
    if kind == "number":
        low, high = key["min"], key["max"]
        if key["unit"] == "bytes":
            text = f"{size(low)} to {size(high)}, in bytes"
        else:
            text = f"{low} to {high} {key['unit'] or ''}".rstrip()
        if key["multiple"]:
            text += f", a multiple of {size(key['multiple'])}"
        return text + (", or 0: not set" if key["or_zero"] else "")
    if kind == "octal":
        return f"octal, 0 to 0{key['max']:o}"
    if kind == "boolean":
        return "true or false"
    if kind == "word":
        return ", ".join(key["words"])
    if kind == "option":
        return '"name = value"'
    return {"path": "path", "place": "path or rados://…",
            "string": "text", "ganesha": "CEPH_ASYNC"}[kind]


def literal(key):
    """The default as one would write it; None where nothing can be."""
    kind = key["type"]
    if kind in ("boolean", "word"):
        return next(word for word, value in key["words"].items()
                    if value == key["preset"])
    if kind == "octal":
        return f"0{key['preset']:o}" if key["preset"] else "0"
    if kind == "number":
        return str(key["preset"])
    return key["preset_string"]


def default(key):
    """What holds when it is not set, for people."""
    if key["unset"]:
        return key["unset"]
    if key["type"] == "number":
        return amount(key, key["preset"])
    return literal(key)


def where(key):
    return "both" if key["module"] and key["export"] else \
        "block" if key["module"] else "export"


def paragraphs(key):
    return [key["summary"]] + (key["text"] or "").split("\n\n") * bool(
        key["text"])


# --- docs/configuration.md

def md_table(keys):
    def cell(text):
        return text.replace("|", "\\|").replace("<", "&lt;")

    lines = ["| key | where | values | default | change by | meaning |",
             "|---|---|---|---|---|---|"]
    for key in keys:
        lines.append("| " + " | ".join(
            [f"`{key['name']}`", where(key), cell(values(key)),
             cell(default(key)), CHANGES[key["change"]],
             cell(key["summary"])]) + " |")
    return lines


def md_details(keys):
    lines = []
    for key in keys:
        if key["text"]:
            body = key["text"].split("\n\n")
            lines += [f"**`{key['name']}`** {body[0]}", ""]
            for more in body[1:]:
                lines += [more, ""]
    return lines[:-1]


# --- config/ceph_async.conf

def conf_keys(keys, indent):
    lines = []
    for key in keys:
        for text in paragraphs(key):
            lines += textwrap.wrap(text, 70) + [""]
        facts = f"Values: {values(key)}. Default: {default(key)}."
        lines += textwrap.wrap(facts, 70)
        lines += textwrap.wrap(f"Change: {CHANGES[key['change']]}.", 70)
        lines += ["", f"{key['name']} = {conf_value(key)};", None]
    return ["" if line is None else f"{indent}# {line}".rstrip()
            for line in lines[:-1]]


def conf_value(key):
    """A value that does no harm when its # is taken away."""
    kind = key["type"]
    if kind == "option":
        return '"debug_client = 0/0"'
    text = literal(key)
    if text is not None:
        return f'"{text}"' if kind == "string" else text
    return EXAMPLES[key["name"]]


EXAMPLES = {
    "Ceph_Conf": '"/etc/ceph/ceph.conf"',
    "NodeId": '"gateway1"',
    "Handle_Keys": '"/etc/ganesha/handle-keys"',
    "Metrics_File": '"/var/lib/prometheus/node-exporter/ceph_async.prom"',
    "User_Id": '"admin"',
    "Secret_Access_Key": '""',
    "Filesystem": '"cephfs"',
    "Cmount_Path": '"/"',
    "Data_Pool": '""',
}


def conf_block(keys):
    return conf_keys([key for key in keys if key["module"]], "\t")


def conf_export(keys):
    return conf_keys([key for key in keys if not key["module"]
                      and key["type"] != "ganesha"], "\t\t")


# --- the man page

def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in (".", "'") else text


def man_keys(keys):
    lines = []
    for key in keys:
        lines += [".TP", f".B {roff(key['name'])}"]
        for number, text in enumerate(paragraphs(key)):
            lines += [".IP"] if number else []
            lines += [roff(line) for line in textwrap.wrap(text, 76)]
        facts = (f"Values: {values(key)}. Default: {default(key)}. "
                 f"Change: {CHANGES[key['change']]}.")
        lines += [".IP"] + [roff(line) for line in textwrap.wrap(facts, 76)]
    return lines


def man_block(keys):
    return man_keys([k for k in keys if k["module"] and not k["export"]])


def man_export(keys):
    return man_keys([k for k in keys if not k["module"]])


def man_both(keys):
    return man_keys([k for k in keys if k["module"] and k["export"]])


# ---

FUNCTIONS = {f"@{name}@": globals()[name] for name in
             ("md_table", "md_details", "conf_block", "conf_export",
              "man_block", "man_export", "man_both")}


def render(template, keys):
    lines = []
    for line in (HERE / template).read_text(encoding="utf-8").splitlines():
        write = FUNCTIONS.get(line.strip())
        lines += write(keys) if write else [line]
    return "\n".join(lines) + "\n"


def read_keys(source):
    if os.access(source, os.X_OK):
        return json.loads(subprocess.run(
            [source], check=True, timeout=60, stdout=subprocess.PIPE).stdout)
    return json.loads(Path(source).read_text(encoding="utf-8"))


def differences(keys, root):
    """Lines of a diff from the documents there are to what they should be."""
    lines = []
    for template, name in DOCUMENTS.items():
        path = root / name
        there = path.read_text(encoding="utf-8") if path.exists() else ""
        lines += difflib.unified_diff(
            there.splitlines(), render(template, keys).splitlines(), name,
            f"{name} by the code", lineterm="", n=1)
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("keys_json")
    parser.add_argument("root", type=Path)
    args = parser.parse_args()
    keys = read_keys(args.keys_json)

    if not args.check:
        for template, name in DOCUMENTS.items():
            (args.root / name).write_text(render(template, keys),
                                          encoding="utf-8")
        return 0
    lines = differences(keys, args.root)
    if not lines:
        return 0
    print("\n".join(lines))
    print("The documents differ from the table of keys: "
          "`ninja -C BUILD documents` writes them.")
    return 1


if __name__ == "__main__":
    sys.exit(main())
