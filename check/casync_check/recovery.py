# SPDX-License-Identifier: LGPL-3.0-or-later
"""Findings about Ganesha's recovery database in RADOS."""
import errno
import socket

from .finding import ERROR, WARNING, Finding

# Ganesha's defaults (recovery_rados.h).
POOL = "nfs-ganesha"
GRACE_OID = "grace"

DENIED = (errno.EACCES, errno.EPERM)


def _asked(config, arguments, backend):
    block = config.block("RADOS_KV")

    def key(name, preset):
        return block.get(name, preset) if block else preset

    return {"what": "recovery", "timeout": arguments.timeout,
            "ceph_conf": key("ceph_conf", None), "secret": None,
            "ceph_options": None, "user": key("userid", "admin"),
            "pool": key("pool", POOL), "namespace": key("namespace", ""),
            "grace_oid": key("grace_oid", GRACE_OID)
            if backend == "rados_cluster" else "",
            "nodeid": key("nodeid", socket.gethostname())}


def _nodes(config, nodeid):
    """What the grace database may call this node.  Ganesha 9.14 and its tool
    put "node" before a number, as cephadm's ranks are (set_nodeid()); 5.9 does
    not; of the versions between nobody here knows."""
    if not nodeid.isdigit() or config.versions["ganesha"].startswith("5."):
        return {nodeid}
    numbered = f"node{int(nodeid)}"
    if config.parameter("Fsal_Api", 0) >= 14:
        return {numbered}
    return {nodeid, numbered}


def _judge_grace(config, asked, answers):
    namespace = f"--ns {asked['namespace']} " if asked["namespace"] else ""
    tool = ("Run this (Debian: package nfs-ganesha-rados-grace):",
            f"ganesha-rados-grace --pool {asked['pool']} {namespace}"
            f"add {asked['nodeid']}")
    place = config.place("RADOS_KV", "nodeid")
    number = answers.errno("grace")
    if number == errno.ENOENT:
        yield Finding(ERROR, "no-grace", place,
                      f"pool '{asked['pool']}', namespace "
                      f"'{asked['namespace']}' has no grace database: "
                      "Ganesha will not start", *tool)
    nodes = answers.result("grace") or []
    if number == 0 and not _nodes(config, asked["nodeid"]) & set(nodes):
        yield Finding(ERROR, "not-in-grace", place,
                      f"node '{asked['nodeid']}' is not in the grace "
                      f"database, which has {', '.join(nodes) or 'none'}: "
                      "Ganesha will not start", *tool)


def findings(config, arguments, probe, limit_s):
    """PROBE asks the cluster, as probe() of cluster.py does."""
    backend = config.parameter("RecoveryBackend") or ""
    if not backend.startswith("rados"):
        return
    asked = _asked(config, arguments, backend)
    answers = probe(asked, "asking for the recovery database", limit_s)
    place = config.place("RADOS_KV", "pool")
    user, pool = asked["user"], asked["pool"]
    if answers.errno("connect") != 0:
        yield Finding(
            ERROR, "recovery-user", config.place("RADOS_KV", "userid"),
            f"client.{user}, with which Ganesha uses its recovery database, "
            f"cannot connect: {answers.text('connect') or 'no answer'}",
            f"ceph auth get client.{user}; set userid in RADOS_KV {{ }}.")
        return
    if answers.errno("recovery-pool") == errno.ENOENT:
        yield Finding(ERROR, "no-recovery-pool", place,
                      f"Ceph has no pool '{pool}'", "Make it:",
                      f"ceph osd pool create {pool} && "
                      f"ceph osd pool application enable {pool} nfs")
        return
    may = answers.result("recovery-pool")
    if answers.errno("recovery-pool") or answers.hangs_in or \
            (may and not (may["read"] and may["write"])):
        yield Finding(
            ERROR, "recovery-user", place,
            f"client.{user} lacks the capability osd: it may not read and "
            f"write pool '{pool}', or got no answer",
            f"Add 'allow rw pool={pool}' to its osd capabilities (ceph auth "
            f"caps client.{user}).")
        return
    if answers.errno("grace") in DENIED:
        yield Finding(WARNING, "recovery-user", place,
                      f"client.{user} may not read the grace database")
    yield from _judge_grace(config, asked, answers)
