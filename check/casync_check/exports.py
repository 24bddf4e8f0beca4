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


def has_words(block, key):
    """Does _words() look at such a key?"""
    return block.upper() in ("EXPORT", "EXPORT_DEFAULTS", "CLIENT") and \
        key.lower() in map(str.lower, WORDS)


def access_types(config, export):
    """What the export gives to whom no CLIENT { } names, and what each of
    these gives; in capitals."""
    own = config.of_export(export, "Access_Type", "None").upper()
    return own, [client.get("Access_Type", own).upper()
                 for client in _clients(config, export)
                 if client.values("Clients")]


def _clients(config, export):
    """Those of EXPORT_DEFAULTS { } count only if the export has none."""
    defaults = config.block("EXPORT_DEFAULTS")
    return list(named(export.blocks, "CLIENT")) or \
        list(named(defaults.blocks, "CLIENT") if defaults else ())


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


def _wrong(word):
    """What is wrong with an address; a name that does not exist yet is no
    error.  The mask is a number of bits: Ganesha takes another for a path."""
    if not re.fullmatch(r"[0-9.]+(/\S*)?|[0-9a-fA-F]*:\S*", word):
        return None
    try:
        ipaddress.ip_network(word, strict=False)
        int(word.partition("/")[2] or 0)
    except ValueError:
        return "it is no ADDRESS or ADDRESS/BITS"
    return None


def _addresses(config):
    for export in [*config.exports(),
                   *named(config.blocks, "EXPORT_DEFAULTS")]:
        name = export_name(export) if export.name.upper() == "EXPORT" \
            else export.name
        seen = set()
        for client in named(export.blocks, "CLIENT"):
            words = client.values("Clients")
            found = [] if words else [("", "it names nobody")]
            for word in words:
                wrong = _wrong(word) or (word in seen and "it is there twice")
                found += [(word, wrong)] if wrong else []
                seen.add(word)
            for word, wrong in found:
                yield Finding(
                    ERROR, "key-refused", client.place("Clients"),
                    f"{name}: Ganesha refuses Clients = "
                    f"{word}: {wrong}", "Correct it. Without a good one the "
                    "export is not served.")


def _number(export):
    """Of an export, as Ganesha reads it: 0x is hexadecimal, a leading 0 octal.
    Without a value the key is 1; None: it is no number, or not there."""
    if not export.has("Export_Id"):
        return None
    for base in 0, 8:
        try:
            return int(export.get("Export_Id", "1"), base)
        except ValueError:
            pass
    return None


def _id(config, export):
    number = _number(export)
    pseudo = export.get("Pseudo", "")
    if number is None or not 0 <= number <= HIGHEST_ID or \
            (number == 0 and pseudo != "/"):
        yield Finding(
            ERROR, "key-refused", export.place("Export_Id"),
            f"an export has Export_Id = {export.get('Export_Id', '')}: "
            "Ganesha does not serve it" if export.has("Export_Id")
            else "an export has no Export_Id: Ganesha does not serve it",
            f"Set Export_Id to a number from 1 to {HIGHEST_ID}.")
    if len(export.values("Path")) != 1:
        yield Finding(
            ERROR, "key-refused", export.place("Path"),
            f"{export_name(export)} has "
            f"{'several values in' if export.values('Path') else 'no'} Path: "
            "Ganesha 9.14 crashes, at its start and at a reload",
            "Set Path to one folder of the file system.")
    # 5.9 serves one without Pseudo over NFSv3.
    if pseudo[:1] != "/" and (pseudo or
                              config.parameter("Fsal_Api", 14) >= 14):
        yield Finding(
            ERROR, "key-refused", export.place("Pseudo"),
            f"{export_name(export)} has no Pseudo that begins with /: Ganesha "
            "does not serve it, not for NFSv3 either",
            "Set Pseudo to where NFSv4 clients find it.")


def _versions(words):
    return {word[-1:] for word in words} & {"3", "4"}


def _served(config):
    """The versions of NFS_CORE_PARAM."""
    core = config.block("NFS_CORE_PARAM")
    return _versions(core.values("Protocols") if core else ()) or {"3", "4"}


def _asked(config, export, key):
    """The words of an export, EXPORT_DEFAULTS' if it has none, and those of
    its CLIENT { }."""
    defaults = config.block("EXPORT_DEFAULTS")
    own = export.values(key) or (defaults.values(key) if defaults else [])
    return own and [*own, *(word for client in _clients(config, export)
                            for word in client.values(key))]


def _protocols(config, export):
    """Versions by which an export is served."""
    served = _served(config)
    asked = _versions(_asked(config, export, "Protocols"))
    return served & asked if asked else served


def _pseudo(export):
    """As Ganesha takes it."""
    name = export.get("Pseudo") or ""
    return name.rstrip("/") or name[:1]


def _is_below(pseudo, other):
    return pseudo != other and pseudo.startswith(other.rstrip("/") + "/")


def junctions(config, export):
    """Folders that EXPORT must have, each with the export that needs it:
    Ganesha makes none for a Pseudo below that of an export."""
    exports = [one for one in config.exports()
               if _pseudo(one) and "4" in _protocols(config, one)]
    if export not in exports:
        return
    own = _pseudo(export)
    for other in exports:
        above = [_pseudo(one) for one in exports
                 if _is_below(_pseudo(other), _pseudo(one))]
        if above and max(above, key=len) == own:    # the nearest has it
            yield _pseudo(other)[len(own.rstrip("/")) + 1:], other


def nested(severity, export, folder, other):
    return Finding(
        severity, "pseudo-nested", other.place("Pseudo"),
        f"{export_name(other)}: Pseudo = {_pseudo(other)} is below that of "
        f"{export_name(export)}, which "
        + ("has no" if severity == ERROR else "must have the")
        + f" folder {folder}: without, Ganesha ends at its start "
        "and at a reload",
        f"Make the folder {export.get('Path', '').rstrip('/')}/{folder} in "
        "the file system, or give the export a Pseudo beside the other.")


def _nested(config):
    for export, _ in config.our_exports():
        for folder, other in junctions(config, export):
            yield nested(NOTE, export, folder, other)


def _twice(config):
    """Ganesha's log does not say why it leaves out the second one."""
    for key in "Export_Id", "Pseudo", "Tag":
        first = {}
        for export in config.exports():
            name = _number(export) if key == "Export_Id" \
                else export.get(key)
            if key == "Pseudo" and name:
                name = _pseudo(export)
            other = first.setdefault(name, export)
            if name is not None and other is not export:
                yield Finding(
                    ERROR, "export-twice", export.place(key),
                    f"{export_name(export)} has {key} = {name}, as has the "
                    f"export of {other.place()}: Ganesha leaves it out",
                    f"Give the newer of the two another {key}: clients keep "
                    "the file handles of the older.")


def _reached(config, export):
    """By some protocol, and by TCP?"""
    served = _served(config)
    asked = _asked(config, export, "Protocols")
    if asked and not _versions(asked) & served:
        yield Finding(
            ERROR, "no-access", export.place("Protocols"),
            f"{export_name(export)} has Protocols = {', '.join(asked)}, and "
            "NFS_CORE_PARAM has none of them: no client reaches it",
            f"Set Protocols to {' or '.join(sorted(served))} in EXPORT, or "
            "change that of NFS_CORE_PARAM.")
    asked = _asked(config, export, "Transports")
    if asked and not {"TCP", "RDMA"} & {word.upper() for word in asked}:
        yield Finding(
            ERROR, "no-access", export.place("Transports"),
            f"{export_name(export)} has Transports = {', '.join(asked)}: "
            "clients of TCP do not reach it", "Remove the key.")


def findings(config):
    yield from _words(config)
    yield from _addresses(config)
    yield from _twice(config)
    yield from _nested(config)
    for export, _ in config.our_exports():
        yield from _id(config, export)
        yield from _access(config, export)
        yield from _reached(config, export)
