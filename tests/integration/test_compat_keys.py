# SPDX-License-Identifier: LGPL-3.0-or-later
"""The stand-in for FSAL_CEPH takes what FSAL_CEPH takes.

What is refused there may be refused here.  Both are asked: Debian's FSAL_CEPH,
and our libfsalceph.so from a folder of plugins.
"""
import re
from pathlib import Path

import pytest

from lab_program import ceph, until
from test_bad_input import FOLLOWS

BUILT = Path("/build/plugin/FSAL_CEPH_ASYNC/libfsalceph.so")


@pytest.fixture(scope="module")
def plugins(tmp_path_factory):
    """Ganesha's plugins with ours in the place of FSAL_CEPH."""
    folder = tmp_path_factory.mktemp("plugins")
    installed, = Path("/usr/lib").glob("*/ganesha/libfsalceph.so")
    for library in installed.parent.glob("libfsal*.so"):
        if library.name != installed.name:
            (folder / library.name).symlink_to(library)
    (folder / installed.name).symlink_to(BUILT)
    return folder


@pytest.fixture(params=["FSAL_CEPH", "stand-in"])
def ganesha(request, cluster, plugins):
    """Starts "b" with blocks of text; whether it serves, and its log."""
    ours = request.param == "stand-in"

    def start(export="", block="", append=()):
        core = f'Plugins_Dir = "{plugins}";' if ours else ""
        said = cluster.start_second("CEPH", export=export, block=block,
                                    append=append, core=core, check=False)
        serves = said.status == 0 and cluster.exported("/second")
        assert bool(said.log.matching("module_fits :FSAL")) == ours
        return serves, said.log
    start.ours = ours
    yield start
    cluster.stop_second()


FUTURE = "client_object_cache_size = 209715200; Qos_Level = gold"


@pytest.mark.parametrize("where", ["export", "block"])
def test_an_unknown_key_is_named_and_ignored(ganesha, where):
    """As after an upgrade of Ceph whose tools write more keys."""
    serves, log = ganesha(**{where: FUTURE})
    assert serves
    for name in ("client_object_cache_size", "Qos_Level"):
        lines = log.matching(rf"Unknown parameter \({name}\)")
        assert len(lines) == 1 and ":WARN :" in lines[0], lines
    if ganesha.ours:
        block = "export 2: FSAL { }" if where == "export" else "CEPH { }"
        line, = log.matching("does not know; they are ignored")
        assert f":WARN :{block} has keys" in line
    assert not log.matching(":CRIT :.*(FSAL|refused)")


def test_a_second_block_is_named_and_ignored(ganesha):
    """cephadm writes one; an administrator adds another."""
    serves, log = ganesha(block="async = true",
                          append=["CEPH { umask = 022; }"])
    assert serves
    assert log.matching("WARN :.*Only one (CEPH|Ceph) block allowed")


def test_our_own_block_sets_our_keys(cluster, plugins):
    """`ceph nfs cluster config set` can add it, beside cephadm's CEPH { }."""
    core = f'Plugins_Dir = "{plugins}";'
    try:
        said = cluster.start_second(
            "CEPH", block="async = true", core=core,
            append=["CEPH_ASYNC { Cache_Bytes = 2097152; }"])
        cluster.run("ganesha", "reload", "--name", "b", "--append",
                    "CEPH_ASYNC { Cache_Bytes = 1048576; }")
        until(lambda: said.log.matching("the read cache has 1048576 bytes "
                                        r"from now on \(was 2097152\)"),
              "the reload", 15)
        assert not said.log.matching("Unknown (block|parameter)")
    finally:
        cluster.stop_second()


@pytest.mark.parametrize("text", ["Cache_Bytse = 1;", "Cache_Bytes = many;"])
def test_our_own_block_is_refused_as_ever(cluster, plugins, text):
    """FSAL_CEPH's tools do not write it: it is an error of typing."""
    said = cluster.start_second("CEPH", append=[f"CEPH_ASYNC {{ {text} }}"],
                                core=f'Plugins_Dir = "{plugins}";',
                                check=False)
    cluster.expected += [r"CEPH_ASYNC \{ \} is refused", *FOLLOWS,
                         "Cache_Bytes = many is refused"]
    assert said.status != 0 or not cluster.exported("/second")
    assert said.log.matching("is refused: ")
    cluster.stop_second()


@pytest.fixture(scope="module")
def secret(cluster):
    """Of a user as these tools make one."""
    said = ceph("auth", "get-or-create", "client.rendered", "mds", "allow rw",
                "mon", "allow r", "osd", "allow rw tag cephfs data=cephfs")
    yield re.search(r"key = (\S+)", said)[1]
    ceph("auth", "rm", "client.rendered")


# The keys that the tools write for FSAL_CEPH, as of 2026.
RENDERED = {
    # cephadm's ganesha.conf, and the exports of ceph nfs (Ceph 20)
    "cephadm": {
        "block": 'register_service = false; nodeid = "0.0.0.host.abcdef"',
        "export": 'user_id = "rendered"; filesystem = "cephfs"; '
                  'secret_access_key = "{secret}"; cmount_path = "/"'},
    # Rook has no CEPH { }; its exports are those of ceph nfs
    "rook": {"export": 'user_id = "rendered"; filesystem = "cephfs"; '
                       'secret_access_key = "{secret}"'},
    # OpenStack's Manila, CephFS driver with the NFS helper
    "manila": {"export": 'User_Id = "rendered"; Filesystem = "cephfs"; '
                         'Secret_Access_Key = "{secret}"'},
}


@pytest.mark.parametrize("tool", RENDERED)
def test_what_tools_render_is_served(ganesha, secret, tool):
    serves, log = ganesha(**{
        where: text.format(secret=secret)
        for where, text in RENDERED[tool].items()})
    assert serves, log.text()
    assert not log.matching("Unknown parameter")
    assert secret not in log.text()


# Key, value, block: what is accepted there must be accepted here.
VALUES = [(key, value, "block")
          for key in ("async", "client_oc", "zerocopy", "use_old_uuid",
                      "register_service")
          for value in ("true", "false", "yes", "NO", "On", "off", "1")]
VALUES += [("umask", value, "block")
           for value in ("0", "022", "0777", "01777", "18", "0x12")]
VALUES += [("ceph_conf", value, "block")
           for value in ("/etc/ceph/ceph.conf", '"/etc/ceph/ceph.conf"',
                         '"etc/ceph/ceph.conf"', "ceph.conf")]
VALUES += [("nodeid", value, "block")
           for value in ("a.b-c", '"x y"', "7", '""')]
VALUES += [("cmount_path", value, "export") for value in ("/", '"/"')]
VALUES += [("sec_label_xattr", value, "export")
           for value in ('"security.selinux"', "user.label",
                         f'"user.{"x" * 300}"')]
VALUES += [(key, value, "export")
           for key in ("user_id", "filesystem", "secret_access_key")
           for value in (f'"{"x" * 1100}"', '""')]


def test_each_value_that_fsal_ceph_takes(cluster, plugins, record):
    """One start each: what FSAL_CEPH serves with, the stand-in serves with."""
    cluster.expected += [
        "is refused: it must be", "Register_Service = true: no RADOS_URLS",
        # A value that Ceph refuses, in the words of either library.
        r"create_export :FSAL :CRIT :Unable to (read|init|mount) Ceph",
        r"casync_connect_failed :FSAL :CRIT :export 2: (Ceph_Conf|User_Id)",
        r"Failed to call create_export on underlying FSAL C",
        r"Could not create export for \(/second\)", *FOLLOWS]
    refused = []
    taken = 0
    for key, value, where in VALUES:
        serves = {}
        for ours in (False, True):
            said = cluster.start_second(
                "CEPH", check=False, **{where: f"{key} = {value}"},
                core=f'Plugins_Dir = "{plugins}";' if ours else "")
            serves[ours] = said.status == 0 and cluster.exported("/second")
            cluster.stop_second()
        taken += serves[False]
        if serves[False] and not serves[True]:
            refused.append(f"{key} = {value}")
    record(f"{taken} of {len(VALUES)} values are taken by FSAL_CEPH")
    assert not refused
