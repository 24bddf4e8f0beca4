# SPDX-License-Identifier: LGPL-3.0-or-later
"""The stand-in for FSAL_CEPH takes what FSAL_CEPH takes.

What is refused there may be refused here.  Both are asked: Debian's FSAL_CEPH,
and our libfsalceph.so from a folder of plugins.
"""
import re
from pathlib import Path

import pytest

from lab_program import ceph, until
from refusals import NO_BLOCK, NO_EXPORT, VOID_BLOCK

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


@pytest.mark.parametrize("text, lines", [
    ("Cache_Bytse = 1;", (r"CEPH_ASYNC \{ \} is refused", *NO_BLOCK)),
    ("Cache_Bytes = many;", ("Cache_Bytes = many is refused: ", *VOID_BLOCK))])
def test_our_own_block_is_refused_as_ever(cluster, plugins, text, lines):
    """FSAL_CEPH's tools do not write it: it is an error of typing."""
    with cluster.expects(*lines):
        said = cluster.start_second(
            "CEPH", append=[f"CEPH_ASYNC {{ {text} }}"],
            core=f'Plugins_Dir = "{plugins}";', check=False)
        try:
            assert "it runs, but /second is not exported" in said.words
        finally:
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


# What is accepted there must be accepted here.  A start takes some seconds: all
# keys that want the same kind of value come together.
# FSAL_CEPH takes client_oc and zerocopy one at a time.
BOOLEANS = (("async", "zerocopy", "use_old_uuid", "register_service"),
            ("client_oc",))
VALUES = [("block", "; ".join(f"{key} = {value}" for key in keys))
          for keys in BOOLEANS
          for value in ("true", "false", "yes", "NO", "On", "off", "1")]
ARE_TAKEN = {text: not text.endswith("1") for _, text in VALUES}
VALUES += [("block", f"umask = {value}")
           for value in ("0", "022", "0777", "01777", "18", "0x12")]
VALUES += [("block", f"ceph_conf = {value}")
           for value in ("/etc/ceph/ceph.conf", '"/etc/ceph/ceph.conf"',
                         '"etc/ceph/ceph.conf"', "ceph.conf")]
VALUES += [("block", f"nodeid = {value}")
           for value in ("a.b-c", '"x y"', "7", '""')]
VALUES += [("export", f"cmount_path = {value}") for value in ("/", '"/"')]
VALUES += [("export", f"sec_label_xattr = {value}")
           for value in ('"security.selinux"', "user.label",
                         f'"user.{"x" * 300}"')]
VALUES += [("export", f"{key} = {value}")
           for key in ("user_id", "filesystem", "secret_access_key")
           for value in (f'"{"x" * 1100}"', '""')]


def test_each_value_that_fsal_ceph_takes(cluster, till_end, plugins, record):
    """One start each: what FSAL_CEPH serves with, the stand-in serves with."""
    till_end(cluster.expects(
        "is refused: it must be", "Register_Service = true: no RADOS_URLS",
        # A value that Ceph refuses, in the words of either library.
        "create_export :FSAL :CRIT :Unable to read Ceph",
        "create_export :FSAL :CRIT :Unable to init Ceph",
        "create_export :FSAL :CRIT :Unable to mount Ceph",
        "Failed to call create_export on underlying FSAL Ceph",
        "casync_connect_failed :FSAL :CRIT :export 2: Ceph_Conf",
        "casync_connect_failed :FSAL :CRIT :export 2: User_Id",
        *NO_EXPORT))
    refused = []
    taken = 0
    for where, text in VALUES:
        serves = {}
        for ours in (False, True):
            said = cluster.start_second(
                "CEPH", check=False, **{where: text},
                core=f'Plugins_Dir = "{plugins}";' if ours else "")
            serves[ours] = said.status == 0 and cluster.exported("/second")
            cluster.stop_second()
        taken += serves[False]
        if serves[False] and not serves[True]:
            refused.append(text)
        assert serves[False] == ARE_TAKEN.get(text, serves[False]), text
    record(f"{taken} of {len(VALUES)} values are taken by FSAL_CEPH")
    assert not refused
