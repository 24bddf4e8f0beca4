# SPDX-License-Identifier: LGPL-3.0-or-later
"""Findings about EXPORT { } and CLIENT { }: what Ganesha refuses, leaves out or
reads as something else (support/exports.c and client_mgr.c of 9.14)."""
import ipaddress
import re

from .config import export_name, is_like, named
from .finding import ERROR, NOTE, Finding

HIGHEST_ID = 65535

# What Ganesha takes, in any case.  It goes on without a list that has another
# word: then its default applies.
WORDS = {
    "Access_Type": ("None", "RW", "RO", "MDONLY", "MDONLY_RO"),
    "Delegations": ("None", "Read", "Write", "Readwrite", "R", "W", "RW",
                    "RO"),
    "Protocols": ("3", "4", "NFS3", "NFS4", "V3", "V4", "NFSv3", "NFSv4",
                  "9P"),
    "SecType": ("none", "sys", "krb5", "krb5i", "krb5p"),
    "Squash": ("Root", "Root_Squash", "RootSquash", "All", "All_Squash",
               "AllSquash", "All_Anonymous", "AllAnonymous", "No_Root_Squash",
               "None", "NoIdSquash", "RootId", "Root_Id_Squash",
               "RootIdSquash"),
    "Transports": ("TCP", "UDP", "RDMA"),
}


def access_types(config, export):
    """What the export gives to whom no CLIENT { } names, and what each of
    these gives; in capitals."""
    own = config.of_export(export, "Access_Type", "None").upper()
    return own, [client.get("Access_Type", own).upper()
                 for client in _clients(config, export)]


def _clients(config, export):
    defaults = config.block("EXPORT_DEFAULTS")
    for block in [export] + ([defaults] if defaults else []):
        yield from named(block.blocks, "CLIENT")


def _access(config, export):
    own, others = access_types(config, export)
    if set(others) | {own} == {"NONE"}:
        yield Finding(
            ERROR, "no-access", export.place("Access_Type"),
            f"{export_name(export)} gives no client access: Ganesha's "
            "default is Access_Type = None",
            "Set Access_Type = RW; or RO;.")
    elif others and own != "NONE":
        yield Finding(
            NOTE, "access-of-others", export.place("Access_Type"),
            f"{export_name(export)}: machines that no CLIENT {{ }} names have "
            f"Access_Type = {own}",
            "If they shall have none, set Access_Type = None in EXPORT { }, "
            "and theirs in each CLIENT { }.")


def _words(config):
    """Of all blocks that have such keys."""
    for block in config.blocks:
        if block.name.upper() not in ("EXPORT", "EXPORT_DEFAULTS"):
            continue
        for part in [block, *named(block.blocks, "CLIENT")]:
            for key, known in WORDS.items():
                for word in part.values(key):
                    yield from _word(part, key, word, known)


def _word(block, key, word, known):
    if word.lower() in map(str.lower, known):
        return
    meant = is_like(word, known)
    yield Finding(
        ERROR, "key-refused", block.place(key),
        f"Ganesha does not know {key} = {word}, and goes on with its default",
        (f"{meant} was probably meant. " if meant else "")
        + f"It takes {', '.join(known)}.")


def _addresses(config):
    """A name that does not exist yet is no error."""
    for export in config.exports():
        for client in named(export.blocks, "CLIENT"):
            for word in client.values("Clients"):
                if not re.fullmatch(r"[0-9.]+(/\S*)?|[0-9a-fA-F]*:\S*", word):
                    continue
                try:
                    ipaddress.ip_network(word, strict=False)
                except ValueError as err:
                    yield Finding(
                        ERROR, "key-refused", client.place("Clients"),
                        f"{export_name(export)} is not served: {err}",
                        "Correct the address or the mask.")


def _number(text):
    """As Ganesha reads it: 0x is hexadecimal, a leading 0 octal."""
    for base in 0, 8:
        try:
            return int(text, base)
        except ValueError:
            pass
    return None


def _id(config, export):
    text = export.get("Export_Id")
    number = _number(text or "")
    pseudo = export.get("Pseudo", "")
    if number is None or not 0 <= number <= HIGHEST_ID or \
            number == 0 and pseudo != "/":
        yield Finding(
            ERROR, "key-refused", export.place("Export_Id"),
            f"an export has Export_Id = {text}: Ganesha does not serve it"
            if text else "an export has no Export_Id: Ganesha does not serve "
            "it", f"Set Export_Id to a number from 1 to {HIGHEST_ID}.")
    if config.parameter("Fsal_Api", 14) >= 14 and pseudo[:1] != "/":
        yield Finding(
            ERROR, "key-refused", export.place("Pseudo"),
            f"{export_name(export)} has no Pseudo that begins with /: Ganesha "
            "does not serve it, not for NFSv3 either",
            "Set Pseudo to where NFSv4 clients find it.")


def _twice(config):
    """Ganesha's log does not say why it leaves out the second one."""
    for key in "Export_Id", "Pseudo", "Tag":
        first = {}
        for export in config.exports():
            name = export.get(key)
            if key == "Export_Id":
                name = _number(name or "")
            other = first.setdefault(name, export)
            if name is not None and other is not export:
                yield Finding(
                    ERROR, "export-twice", export.place(key),
                    f"{export_name(export)} has {key} = {name}, as has the "
                    f"export of {other.place()}: Ganesha leaves it out",
                    f"Give the newer of the two another {key}: clients keep "
                    "the file handles of the older.")


def findings(config):
    yield from _words(config)
    yield from _addresses(config)
    yield from _twice(config)
    for export, _ in config.our_exports():
        yield from _id(config, export)
        yield from _access(config, export)
