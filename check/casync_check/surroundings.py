# SPDX-License-Identifier: LGPL-3.0-or-later
"""Findings about what stands around our blocks in the file."""
import itertools
import os
import re
import shlex

from . import exports, installed
from .config import export_name, is_like
from .finding import ERROR, NOTE, WARNING, Finding, Place

# Ganesha's default, and what one Linux client asks for (nfs.max_session_slots).
WORKERS = 200
SLOTS = 64

# Blocks that matter here, for one that is nearly written so.
BLOCKS = ("CEPH_ASYNC", "EXPORT", "EXPORT_DEFAULTS", "MDCACHE",
          "NFS_CORE_PARAM", "NFSV4", "RADOS_KV", "RADOS_URLS")

# Keys of EXPORT and EXPORT_DEFAULTS, for one that is nearly written so.
# Ganesha's library has no table of them.  Filesystem_Id is not here: FSAL { }
# has Filesystem.
EXPORT_KEYS = (
    "Access_Type", "Anonymous_Gid", "Anonymous_Uid", "Attr_Expiration_Time",
    "Clients", "Delegations", "Disable_ACL", "Export_Id", "Manage_Gids",
    "MaxRead", "MaxWrite", "NFS_Commit", "Path", "PrefRead",
    "PrefReaddir", "PrefWrite", "PrivilegedPort", "Protocols", "Pseudo",
    "Read_Access_Check_Policy", "SecType", "Security_Label", "Squash", "Tag",
    "Transports")

# A standby takes over after 15 s (mds_beacon_grace), and serves 45 s later
# (mds_reconnect_timeout); and its start.
MDS_AWAY_S = 80

# mount/connect.c: two leases and this pass before a delegation is revoked.
REVOKE_MARGIN_S = 10


def _exports_are_there(config):
    if not config.our_exports():
        names = {export.block("FSAL").get("Name", "?").upper()
                 for export in config.exports() if export.block("FSAL")}
        yield Finding(
            WARNING, "no-export", Place(config.path),
            "no export of the file has FSAL { Name = " + config.fsal + "; }"
            + (f"; there is {', '.join(sorted(names))}" if names else ""),
            "Put Name = CEPH_ASYNC; into the FSAL { } of an EXPORT { }.")
    for export in config.exports():
        if export.block("FSAL") is None:
            yield Finding(
                ERROR, "no-fsal", export.place(),
                f"{export_name(export)} has no FSAL {{ }} block",
                "Add FSAL { Name = CEPH_ASYNC; }.")
        else:
            yield from _names_an_fsal(config, export)


def _names_an_fsal(config, export):
    """Ganesha does not serve this export."""
    block = export.block("FSAL")
    name = block.get("Name")
    if name is None:
        yield Finding(
            ERROR, "fsal-name", block.place(),
            f"FSAL {{ }} of {export_name(export)} has no Name",
            "Add Name = CEPH_ASYNC;")
    elif is_like(name, (config.fsal,)):
        yield Finding(
            ERROR, "fsal-name", block.place("Name"),
            f"{export_name(export)} names the FSAL {name}; {config.fsal} was "
            "probably meant", "Correct the spelling.")
    elif not _is_installed(config, name):
        yield Finding(
            ERROR, "fsal-name", block.place("Name"),
            f"{export_name(export)} names the FSAL {name}, which is not "
            "installed: Ganesha does not serve it",
            "Install its package, or correct Name.")


def _is_installed(config, fsal):
    """Ours is no-plugin's concern; two are in Ganesha itself."""
    folder = config.parameter("Plugins_Dir")
    return not folder or installed.plugin(folder, fsal).exists() or \
        fsal.upper() in (config.fsal, "PSEUDO", "MDCACHE")


def _misspelled(config):
    """Ganesha ignores a block that it does not know."""
    if config.compat:
        return              # the same file, told of under our own name
    for block in config.blocks:
        meant = is_like(block.name, BLOCKS)
        if meant:
            yield Finding(
                WARNING, "block-unknown", block.place(),
                f"Ganesha ignores the block {block.name} {{ }}; "
                f"{meant} {{ }} was probably meant",
                "Correct the spelling.")


def _each_export(config):
    for export, _ in config.our_exports():
        yield from _attributes(config, export)
        yield from _protocols(config, export)


def _protocols(config, export):
    """NFSv3 must be in both places.  cephadm has taken it out of one."""
    core = config.block("NFS_CORE_PARAM")
    served = core.values("Protocols") if core else []
    if served and not _has_nfsv3(served) and \
            _has_nfsv3(export.values("Protocols")):
        yield Finding(
            WARNING, "nfsv3-off", export.place("Protocols"),
            f"{export_name(export)} has NFSv3 in Protocols, and "
            "NFS_CORE_PARAM has not: clients of NFSv3 are refused "
            "(Protocol not supported)",
            "Add 3 to Protocols in NFS_CORE_PARAM. With cephadm, since Ceph "
            "20.2.3: enable_nfsv3: true in the service's spec.")


def _has_nfsv3(protocols):
    return any(re.fullmatch(r"(nfs)?v?3", word, re.I) for word in protocols)


def _attributes(config, export):
    expiration = config.of_export(export, "Attr_Expiration_Time")
    if expiration != "0":
        yield Finding(
            WARNING, "attributes-cached",
            export.place("Attr_Expiration_Time"),
            f"Ganesha answers for attributes of {export_name(export)} from "
            f"its cache for {expiration or '60'} s; clients may not see "
            "what other CephFS clients or gateways change",
            "Set Attr_Expiration_Time = 0; the plugin has a cache that "
            "CephFS keeps right.")


def _end_of_file(config):
    block = config.block("NFS_CORE_PARAM")
    if not config.our_exports() or (
            block is not None and
            not block.truth("Getattrs_In_Complete_Read", True)):
        return
    cached = any(config.of_export(export, "Attr_Expiration_Time") != "0"
                 for export, _ in config.our_exports())
    yield Finding(
        WARNING if cached else NOTE, "size-asked",
        config.place("NFS_CORE_PARAM", "Getattrs_In_Complete_Read"),
        "Ganesha looks at a file's size at each READ over NFSv4" +
        (", and with Attr_Expiration_Time above 0 says that a file ends "
         "where another gateway or export has made it longer" if cached
         else "; the plugin says itself where a file ends"),
        "Set Getattrs_In_Complete_Read = false in NFS_CORE_PARAM { }.")


def _workers(config):
    workers = config.parameter("RPC_Ioq_ThrdMax", WORKERS)
    if workers < WORKERS:
        yield Finding(
            WARNING, "few-workers",
            config.place("NFS_CORE_PARAM", "RPC_Ioq_ThrdMax"),
            f"RPC_Ioq_ThrdMax = {workers}: metadata and COMMIT keep a worker "
            "while they wait for the MDS, and three eighths of the workers "
            "at most do large READs",
            f"Leave the key out: Ganesha's default is {WORKERS}.")
    slots = config.parameter("Slot_Table_Size", SLOTS)
    if slots < SLOTS:
        yield Finding(
            NOTE, "few-slots", config.place("NFSv4", "Slot_Table_Size"),
            f"Slot_Table_Size = {slots}: a Linux client asks for {SLOTS} "
            "requests at once",
            "Leave the key out, unless it is to hold clients back.")
    for export, values in config.our_exports():
        if values["Max_Inflight"] < slots:
            yield Finding(
                WARNING, "few-inflight",
                export.block("FSAL").place("Max_Inflight"),
                f"{export_name(export)}: Max_Inflight = "
                f"{values['Max_Inflight']} is less than the {slots} requests "
                "that one client may have at once; others are asked to retry",
                "Raise it to the number of busy clients times "
                "Slot_Table_Size, or leave it out.")


def _times(config):
    lease = config.parameter("Lease_Lifetime")
    grace = config.parameter("Grace_Period")
    if lease is None:
        return
    graceless = config.parameter("Graceless")
    if graceless:
        yield Finding(
            WARNING, "no-grace-period", config.place("NFSv4", "Graceless"),
            "Graceless = true: after a restart clients cannot take their "
            "opens and locks again, and others may take them first",
            "Remove it, unless the gateway serves no locks.")
        grace = 0
    elif grace < max(lease, MDS_AWAY_S):
        yield Finding(
            WARNING, "grace-short", config.place("NFSv4", "Grace_Period"),
            f"Grace_Period = {grace} is less than Lease_Lifetime = {lease}: "
            "a client may notice a restart only after the grace period, and "
            "loses its locks" if grace < lease else
            f"Grace_Period = {grace} ends while a gateway that starts waits "
            f"for an MDS that fails over, for up to {MDS_AWAY_S} s: clients "
            "lose their locks",
            f"Set Grace_Period to {max(lease, MDS_AWAY_S)} at least, or leave "
            "it out (90). It ends when all clients are back.")
    needed = lease + grace
    for export, values in config.our_exports():
        timeout = values["Session_Timeout"]
        if timeout < needed:
            yield Finding(
                WARNING, "session-short",
                _session_place(config, export),
                f"{export_name(export)}: Session_Timeout = {timeout} is less "
                f"than Lease_Lifetime + Grace_Period = {needed}: the MDS "
                "gives locks to others before the clients of a restarted "
                "gateway have them back",
                f"Set Session_Timeout above {needed}, or lower the other "
                "two.")


def _is_old(config):
    """Is Ganesha older than 9 (FSAL API 14)?"""
    return config.parameter("Fsal_Api", 14) < 14


def _locks(config):
    block = config.block("NFSv4")
    if not _is_old(config) and (
            block is None or block.truth("Blocking_Locks", True)):
        yield Finding(
            WARNING, "locks-wait", config.place("NFSv4", "Blocking_Locks"),
            "Blocking_Locks is true, Ganesha's default: a Linux client gets "
            "EIO over NFSv4.1 and 4.2 for a lock that has to wait",
            "Set Blocking_Locks = false in NFSv4 { }: then the client asks "
            "again (docs/comparison.md).")


def old_ganesha(config):
    """What Ganesha 5.9 needs to be told (FSAL_CEPH_ASYNC/ganesha)."""
    if not _is_old(config):
        return
    for name in ("MDCACHE", "CACHEINODE"):
        block = config.block(name)
        if block is not None and block.has("Dir_Chunk"):
            break
    chunk = block.get("Dir_Chunk") if block is not None else None
    if chunk != "0":
        yield Finding(
            WARNING, "kept-listings", config.place("MDCACHE", "Dir_Chunk"),
            f"Dir_Chunk = {chunk or '(preset)'}: this Ganesha keeps lists of "
            "directories, which may lack names that other CephFS clients "
            "make", "Set MDCACHE { Dir_Chunk = 0; }.")
    yield Finding(
        NOTE, "directory-delegations", Place(config.path),
        "Linux 6.19 and later fail with EREMOTEIO on directories over NFSv4.1 "
        "and 4.2: this Ganesha answers GET_DIR_DELEGATION with OP_ILLEGAL",
        "On such clients set the module parameter "
        "nfsv4.directory_delegations=N, or mount with vers=4.0 or 3.")
    for export, _ in config.our_exports():
        asked = config.of_export(export, "Delegations", "None")
        if config.parameter("Delegations") and asked.lower() != "none":
            yield Finding(
                NOTE, "no-delegations", export.place("Delegations"),
                f"{export_name(export)}: Delegations = {asked} has no effect: "
                "this Ganesha crashes when it recalls a delegation from a "
                "client that is gone", "Remove the key.")


def _session_place(config, export):
    fsal = export.block("FSAL")
    if fsal.has("Session_Timeout"):
        return fsal.place("Session_Timeout")
    return config.place(config.fsal, "Session_Timeout")


def delegation_needs_s(config):
    """Seconds that the MDS has to wait for a delegation; 0: there are none."""
    if not config.parameter("Delegations"):
        return 0
    return 2 * config.parameter("Lease_Lifetime", 0) + REVOKE_MARGIN_S


def _delegations(config):
    if config.parameter("Delegations") and config.gateways_share():
        yield Finding(
            WARNING, "delegations-shared",
            config.place("NFSv4", "Delegations"),
            "Delegations = true with several gateways: each use of a file "
            "through another gateway waits for a recall, and a recall that "
            "does not reach its holder costs the mount "
            "(docs/limits.md)",
            "Set Delegations = false, unless each file is used through one "
            "gateway.")


def _recovery(config, gateways):
    backend = config.parameter("RecoveryBackend")
    if backend is None:
        return
    place = config.place("NFSv4", "RecoveryBackend")
    if backend.startswith("rados"):
        yield from _recovery_in_rados(config, backend)
    elif gateways > 1:
        yield Finding(
            ERROR, "recovery-local", place,
            f"RecoveryBackend = {backend} with {gateways} gateways: each "
            "keeps what clients may reclaim on its own disk, and there is "
            "no common grace period",
            "Set RecoveryBackend = rados_cluster (config/active-active.conf).")
    elif config.block("RADOS_KV"):
        yield Finding(
            WARNING, "recovery-local", place,
            f"RADOS_KV {{ }} has no effect with RecoveryBackend = {backend}: "
            "what clients may reclaim is on this host's disk",
            "Set RecoveryBackend = rados_cluster with several gateways, or "
            "remove RADOS_KV { }.")


def _scope(config):
    """Ganesha 5.9 has no such key."""
    block = config.block("NFSv4")
    if not _is_old(config) and (
            block is None or not block.has("Server_Scope")):
        yield Finding(
            WARNING, "recovery-no-scope",
            config.place("NFSv4", "Server_Scope"),
            "RecoveryBackend = rados_cluster without Server_Scope: clients "
            "that come from a gateway on another host give up their locks",
            "Set Server_Scope in NFSv4 { } to the same on all gateways.")


def _recovery_in_rados(config, backend):
    if backend == "rados_cluster":
        yield from _scope(config)
    block = config.block("RADOS_KV")
    for key, what in (
            ("nodeid", "the host's name is used: after a move to another "
                       "host, clients cannot reclaim"),
            ("namespace", "the records of other groups of gateways in the "
                          "pool are not kept apart")):
        if block is None or not block.has(key):
            yield Finding(
                WARNING, f"recovery-no-{key}",
                config.place("RADOS_KV", key),
                f"RecoveryBackend = {backend} without RADOS_KV {{ {key} }}: "
                + what,
                f"Set {key} in RADOS_KV {{ }}.")
    if backend == "rados_cluster" and config.parameter("Enable_NLM"):
        yield Finding(
            WARNING, "nlm-shared",
            config.place("NFS_CORE_PARAM", "Enable_NLM"),
            "NFSv3's locks (NLM) cannot be handed over between gateways",
            "Set Enable_NLM = false and Protocols = 4 in NFS_CORE_PARAM.")


def _shared_user(name, pairs, place):
    """Exports of NAME that do not all sign their handles."""
    numbers = ", ".join(pair[0].get("Export_Id", "?") for pair in pairs)
    # Only who has capabilities for "/" can mount it.
    if any(values["Cmount_Path"] == "/" for _, values in pairs):
        return Finding(
            WARNING, "user-of-all", place,
            f"exports {numbers} have different paths, and their User_Id = "
            f"{name} has capabilities for / (Cmount_Path), as those of "
            "\"ceph nfs export create\": a client of one that makes up file "
            "handles reaches every file of the file system",
            "If clients are not trusted, set Sign_Handles = true and "
            "Handle_Keys in the block (docs/security.md).")
    return Finding(
        NOTE, "user-shared", place,
        f"exports {numbers} have different paths and share User_Id "
        f"= {name}: a client of one that makes up file handles may "
        "reach files of the others",
        "If clients are not trusted, set Sign_Handles = true, or give "
        "each export a user with capabilities for its Path alone.")


def _users(config):
    def user(pair):
        return pair[1]["User_Id"] or "admin", pair[1]["Filesystem"] or ""

    for (name, _), group in itertools.groupby(
            sorted(config.our_exports(), key=user), user):
        pairs = list(group)
        place = pairs[0][0].block("FSAL").place("User_Id")
        for export, values in pairs:
            if values["User_Id"] == "":
                yield Finding(
                    ERROR, "key-refused", export.block("FSAL").place("User_Id"),
                    "User_Id is empty: Ganesha does not mount as it",
                    "Set User_Id, or remove the key.")
        if name == "admin":
            yield Finding(
                WARNING, "user-admin", place,
                "CephFS is used as client.admin, who may do everything in "
                "the cluster",
                "Make a user of its own: ceph fs authorize cephfs "
                "client.NAME PATH rw; set User_Id = NAME.")
        elif len({pair[0].get("Path") for pair in pairs}) > 1 and \
                not all(values["Sign_Handles"] for _, values in pairs):
            yield _shared_user(name, pairs, place)


def _one_session(config):
    """Exports that would have one name of a CephFS session, and two keys: the
    plugin serves the first only."""
    first = {}
    for export, values in config.our_exports():
        fsal = export.block("FSAL")
        if not values["Share_Client"]:
            continue
        name = (values["User_Id"], values["Filesystem"],
                values["Cmount_Path"] or export.get("Path", "/"))
        other, secret = first.setdefault(
            name, (export, config.secret_of(fsal)))
        if config.secret_of(fsal) == secret:
            continue
        yield Finding(
            ERROR, "secrets-differ", fsal.place("Secret_Access_Key"),
            f"{export_name(export)} has not the Secret_Access_Key of "
            f"{export_name(other)}, and the same user, file system and "
            "Cmount_Path, so the same CephFS session: it is refused",
            "Make the keys equal, in all of these exports or in none; or set "
            "Share_Client = false, or another Cmount_Path or User_Id.")


def _handle_keys(config):
    place = config.place(config.fsal, "Handle_Keys")
    refused = config.read.get("module", {}).get("handle_keys_refused")
    if refused:
        yield Finding(
            ERROR, "handle-keys", place,
            f"Handle_Keys = {config.module['Handle_Keys']} is refused: "
            f"{refused}", "Correct the file: docs/security.md.")
    elif not config.module.get("Handle_Keys"):
        for export, values in config.our_exports():
            if values["Sign_Handles"]:
                yield Finding(
                    ERROR, "no-handle-keys", place,
                    f"{export_name(export)} has Sign_Handles = true, and "
                    "there are no keys",
                    "Set Handle_Keys to a file with a key: "
                    "docs/security.md.")


def _metrics_file(config, path):
    folder = os.path.dirname(path)
    place = config.place(config.fsal, "Metrics_File")
    if not os.path.isdir(folder):
        yield Finding(
            WARNING, "no-metrics", place,
            f"Metrics_File = {path}: this host has no folder {folder}, so no "
            "metrics are written",
            "Name the folder of node_exporter's option "
            "--collector.textfile.directory (docs/metrics.md), or make this "
            "one:", f"mkdir -p {shlex.quote(folder)}")
    elif os.path.isdir(path):
        yield Finding(
            WARNING, "no-metrics", place,
            f"Metrics_File = {path}: it is a folder",
            "Name a file in it.")
    elif not path.endswith(".prom"):
        yield Finding(
            WARNING, "no-metrics", place,
            f"Metrics_File = {path}: node_exporter reads only files whose "
            "names end in .prom",
            f"Set Metrics_File = \"{path}.prom\".")


def _metrics(config):
    path = config.module.get("Metrics_File")
    if path:
        yield from _metrics_file(config, path)
    elif _is_old(config):
        yield Finding(
            NOTE, "no-metrics", config.place(config.fsal, "Metrics_File"),
            "this Ganesha has no endpoint for metrics",
            "Set Metrics_File in CEPH_ASYNC { }, for node_exporter "
            "(docs/metrics.md).")
    elif config.parameter("Enable_Metrics") is False:
        yield Finding(
            NOTE, "no-metrics",
            config.place("NFS_CORE_PARAM", "Enable_Metrics"),
            "Ganesha shows no metrics: Enable_Metrics is false by default",
            "Set Enable_Metrics = true in NFS_CORE_PARAM, and scrape "
            "Monitoring_Port (docs/metrics.md).")


def findings(config, gateways=1):
    """GATEWAYS: how many serve the same exports, if somebody has said so."""
    yield from _exports_are_there(config)
    yield from _misspelled(config)
    yield from exports.findings(config)
    yield from _each_export(config)
    yield from _end_of_file(config)
    yield from _workers(config)
    yield from old_ganesha(config)
    yield from _times(config)
    yield from _locks(config)
    yield from _delegations(config)
    yield from _recovery(config, gateways)
    yield from _users(config)
    yield from _one_session(config)
    yield from _handle_keys(config)
    yield from _metrics(config)
