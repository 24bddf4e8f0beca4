# SPDX-License-Identifier: LGPL-3.0-or-later
"""Findings about keys: what Ganesha's parser and the plugin's code say.

There is no list of our keys here.  The lines are those that Ganesha's log would
have at the start.
"""
import re

from .config import is_like
from .exports import has_words
from .finding import ERROR, WARNING, Finding, Place
from .surroundings import EXPORT_KEYS

# A brace that is missing is told of as "Config file", and as nothing else.
PARSER = re.compile(r"Config [Ff]ile \((.*):(\d+)\)(?: error)?: (.*)", re.S)
REFUSED = re.compile(r"(.*?):(\d+): (\w+) = (.*) is refused: (.*)", re.S)
BLOCK_REFUSED = re.compile(r"(.*?):(\d+): this block is refused: (.*)", re.S)
NO_EFFECT = re.compile(r"(.*?):(\d+): (\w+) = (.*) has no effect: (.*)", re.S)

# Sums of lines that stand before, and the same once more.
REPEATED = re.compile(
    r"is refused: it has an unknown key or value|"
    r"has keys that this FSAL does not know|"
    r"\): (\d+ errors while processing|Errors processing block|"
    r"\d+ \(.*\) errors found block|Errors found in configuration block|"
    r"\d+ validation errors|Configuration syntax errors found)")

# Ganesha says these of each file; they are no concern of ours.
OF_EACH_FILE = re.compile(r"domainname|Use idmapped_|Using idmapped_")


def _sentence(text):
    """A reason of the plugin; a name at its beginning stays as it is."""
    if text.startswith(("it ", "remove ")):
        text = text[0].upper() + text[1:]
    return text + "."


def _place(match, block, key=""):
    return Place(match[1], int(match[2]), block, key)


def _meant(config, step, key):
    """The way out for a key that its block does not have."""
    ours = step in ("module", "export")
    elsewhere = config.blocks_of_key(key)
    like = is_like(key, EXPORT_KEYS) if step == "exports" else None
    if ours and key.lower() in map(str.lower, EXPORT_KEYS):
        elsewhere.append("EXPORT { }, outside of FSAL { }")
    if elsewhere:
        return f"It belongs into {' or '.join(elsewhere)}" + \
            (f", or was {like} meant?" if like else ".")
    if ours:
        like = is_like(key, config.our_keys()[step == "export"])
    if like:
        return f"{like} was probably meant: correct the spelling."
    return "Correct the spelling, or remove it."


def _of_parser(match, step, block, config):
    text = match[3]
    if re.match(r"Unknown (parameter|block)", text):
        name = re.search(r"\((.*)\)", text)
        key = name[1] if name else ""
        meant = _meant(config, step, key)
        if step == "exports":
            block = config.told_of(match[1], int(match[2]), text)[0] or block
        if step in ("ganesha", "exports") or config.compat:
            return Finding(WARNING, "key-unknown", _place(match, block, key),
                           f"{text}: it is ignored", meant)
        return Finding(ERROR, "key-unknown", _place(match, block, key),
                       f"{text}: the whole block is refused",
                       f"{meant} ganesha-ceph-async-config(8) has all keys.")
    if "yntax" in text or step == "file":
        return Finding(ERROR, "syntax", _place(match, ""), text,
                       "Correct the line, or a brace before it: Ganesha may "
                       "take nothing of the file. Numbers have no units: "
                       "4194304, not 4M.")
    inner, key = config.told_of(match[1], int(match[2]), text) \
        if step == "exports" else ("", "")
    if re.match(r"Client \(.*\) not found", text) or (
            text.startswith("Unknown token") and has_words(inner, key)):
        return None         # exports.py says what is known
    way_out = ""
    if text.startswith("Only one") or "set more than once" in text:
        way_out = "Keep one of them and remove the others."
    elif step == "exports":
        block = inner or block
        way_out = "Correct it: Ganesha does not take this block. After a " \
            "reload its log does not say why."
    return Finding(ERROR, "key-refused", _place(match, block, key), text,
                   way_out)


def _of_plugin(text, block):
    match = REFUSED.fullmatch(text)
    if match:
        return Finding(ERROR, "key-refused", _place(match, block, match[3]),
                       f"{match[3]} = {match[4]} is refused: the whole block "
                       "is not taken", _sentence(match[5]))
    match = BLOCK_REFUSED.fullmatch(text)
    if match:
        return Finding(ERROR, "keys-disagree", _place(match, block),
                       f"the block is refused: {match[3]}")
    match = NO_EFFECT.fullmatch(text)
    if match:
        return Finding(WARNING, "key-without-effect",
                       _place(match, block, match[3]),
                       f"{match[3]} = {match[4]} has no effect: {match[5]}",
                       "Remove the key.")
    return None


def _of_line(line, step, block, config):
    text = line["text"].strip()
    if REPEATED.search(text) or OF_EACH_FILE.match(text):
        return None
    match = PARSER.fullmatch(text)
    if match:
        return _of_parser(match, step, block, config)
    found = _of_plugin(text, block)
    if found is None and (line["critical"] or step != "ganesha"):
        severity = ERROR if line["critical"] else WARNING
        found = Finding(severity, "startup-message",
                        Place(config.path, 0, block), text)
    return found


def findings(config):
    """What was said while the file was read; of syntax only once."""
    blocks = {"file": "", "module": config.fsal, "export": "FSAL",
              "ganesha": "", "exports": "EXPORT"}
    before = set()
    for step, lines in config.said():
        if step in ("ganesha", "exports") and config.compat:
            continue        # the same lines, told of under our own name
        for line in lines:
            found = _of_line(line, step, blocks[step], config)
            if found and (step not in ("ganesha", "exports")
                          or line["text"] not in before):
                yield found
            if step == "file":
                before.add(line["text"])
