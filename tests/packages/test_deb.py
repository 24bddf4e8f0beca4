# SPDX-License-Identifier: LGPL-3.0-or-later
"""The life of the Debian packages on a machine, in the order of the tests."""
import re
import shutil
from pathlib import Path

import pytest

from machine import PACKAGES, command, digest, ganesha, \
    links_that_lead_nowhere, plugins, status, what_packages_own

NAME = "nfs-ganesha-ceph-async"
SAMPLE = Path("/etc/ganesha/ceph_async.conf")


def deb(which, name=NAME):
    found = list((PACKAGES / "deb" / which / "out").glob(f"{name}_*.deb"))
    assert len(found) == 1, found
    return found[0]


def install(*files):
    return command("apt-get", "install", "-q", "-y",
                   "--no-install-recommends", *files)


@pytest.fixture(scope="module")
def before():
    return what_packages_own()


def test_nothing_to_build_with(before):
    for program in ("cc", "gcc", "clang", "make", "cmake", "ninja"):
        assert shutil.which(program) is None, program
    assert not Path("/usr/include/cephfs/libcephfs.h").exists()
    assert not Path("/usr/src/nfs-ganesha").exists()
    assert status("dpkg", "-s", NAME) != 0
    assert not (plugins() / "libfsalceph_async.so").exists()


def test_what_it_depends_on():
    for name in (NAME, f"{NAME}-compat"):
        depends = command("dpkg-deb", "-f", deb("this", name), "Depends")
        assert f"nfs-ganesha (>= {ganesha()})" in depends
        assert f"nfs-ganesha (<< {ganesha()}.~)" in depends
        assert re.search(r"libcephfs2 \(>= (19\.2|[2-9]\d\.)", depends)


@pytest.mark.parametrize("version,good", (
    ("{0}.{1}-1", True), ("{0}.{1}-2+b1", True), ("{0}.{1}-1~bpo13+1", True),
    ("{0}.{1}.1-1", False), ("{0}.{2}-1", False), ("{0}.{3}-1", False),
    ("10.1-1", False), ("6.5-5", False)))
def test_which_ganesha_it_takes(version, good):
    major, minor = (int(part) for part in ganesha().split("."))
    version = version.format(major, minor, minor + 1, minor - 1)
    depends = command("dpkg-deb", "-f", deb("this"), "Depends")
    bounds = re.findall(r"nfs-ganesha \((\S+) (\S+)\)", depends)
    assert len(bounds) == 2
    assert good == all(status("dpkg", "--compare-versions", version, sign,
                              bound) == 0 for sign, bound in bounds)


def test_install_the_previous_build_and_serve(machine, before):
    install(deb("previous"))
    log = machine.serve("CEPH_ASYNC")
    line = machine.ours(log, "CEPH_ASYNC")
    print(line)
    assert f"Ganesha {ganesha()} (built for {ganesha()}), " in line
    assert re.search(r"libcephfs (\S+) \(built with \1\)", line)
    out = machine.client("sh", "-c", "echo served > /mnt/nfs/of-a-package && "
                                     "cat /mnt/nfs/of-a-package")
    assert "served" in out


def test_links_in_its_pages():
    assert links_that_lead_nowhere(f"/usr/share/doc/{NAME}") == []


def test_check(machine):
    """The program of the package, with the cluster that is served."""
    found = machine.check()
    assert ("warning", "user-admin") in found
    assert "error" not in {severity for severity, _ in found}


def test_upgrade_under_a_client(machine, tmp_path):
    """Files stay open, and so does the sample as it was edited."""
    SAMPLE.write_text("# edited\n" + SAMPLE.read_text())
    old = digest(plugins() / "libfsalceph_async.so")
    with machine.open_files(tmp_path):
        install(deb("this"))
        assert "-1+ganesha" in command("dpkg-query", "-f", "${Version}",
                                       "-W", NAME)
        machine.serve("CEPH_ASYNC")
    assert SAMPLE.read_text().startswith("# edited\n")
    print("plugin", "changed" if digest(
        plugins() / "libfsalceph_async.so") != old else "is the same")


@pytest.mark.parametrize("vers", ("4.2", "3"))
def test_compat_on_and_off_under_a_client(machine, tmp_path, vers):
    """FSAL_CEPH's configuration is not touched; handles are what they were."""
    its = plugins() / "libfsalceph.so"
    original = digest(its)
    log = machine.serve("CEPH")
    assert machine.ours(log, "CEPH") is None
    handle = machine.handle_of("handle")
    (tmp_path / "on").mkdir()
    with machine.open_files(tmp_path / "on", vers):
        install(deb("this", f"{NAME}-compat"))
        assert digest(its) != original
        assert digest(f"{its}.distrib") == original
        log = machine.serve("CEPH")
        print(machine.ours(log, "CEPH"))
        assert machine.ours(log, "CEPH")
    assert machine.handle_of("handle") == handle
    (tmp_path / "off").mkdir()
    with machine.open_files(tmp_path / "off", vers):
        command("apt-get", "purge", "-q", "-y", f"{NAME}-compat")
        assert digest(its) == original
        log = machine.serve("CEPH")
        assert machine.ours(log, "CEPH") is None
    assert machine.handle_of("handle") == handle


def test_compat_takes_what_fsal_ceph_takes(machine):
    """Keys that we refuse elsewhere; they are said to have no effect."""
    install(deb("this", f"{NAME}-compat"))
    log = machine.serve("CEPH", "--block",
                        "Async = false; Client_OC = true; Umask = 022;")
    for key in ("Async = false", "Client_OC = true"):
        assert log.matching(f"{key} has no effect"), log.text()
    assert "all well" in machine.script("sample_io.py", ".=RW", seconds=100)


SECOND_EXPORT = """EXPORT { Export_Id = 77; Path = "/"; Pseudo = "/beside";
    Access_Type = RW; Squash = none; Attr_Expiration_Time = 0;
    FSAL { Name = CEPH_ASYNC; } }"""


def test_compat_beside_ceph_async(machine):
    """Both names in one process: each has a session of its own."""
    machine.serve("CEPH", "--block", "", "--append", SECOND_EXPORT)
    assert machine.exported("/ceph", 2049)
    assert machine.exported("/beside", 2049)
    pid = machine.stat()["ganesha"]["a"]["pid"]
    uuids = sorted(s["metadata"]["uuid"] for s in machine.sessions(pid))
    # Ganesha 5.9's form has the number of the export: 1 and 77.
    assert len(uuids) == 2 and uuids[1] == uuids[0].replace(
        "-0001", "-004d") + "-async", uuids
    machine.serve("CEPH", "--append", "")


def test_an_update_of_fsal_ceph_keeps_the_diversion(machine):
    """Its package is unpacked again: where its file belongs is aside."""
    its = plugins() / "libfsalceph.so"
    ours, aside = digest(its), digest(f"{its}.distrib")
    command("apt-get", "install", "-q", "-y", "--reinstall",
            "nfs-ganesha-ceph")
    assert (digest(its), digest(f"{its}.distrib")) == (ours, aside)


def test_removed_without_a_trace(machine, before):
    """And FSAL_CEPH serves."""
    machine.serve("CEPH")
    handle = machine.handle_of("handle")
    command("apt-get", "purge", "-q", "-y", NAME, f"{NAME}-compat")
    assert what_packages_own() == before
    log = machine.serve("CEPH")
    assert machine.ours(log, "CEPH") is None
    assert machine.handle_of("handle") == handle
    assert "all well" in machine.script("sample_io.py", ".=RW", seconds=100)
