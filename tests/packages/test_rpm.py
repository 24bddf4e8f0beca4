# SPDX-License-Identifier: LGPL-3.0-or-later
"""The life of the RPM packages, installed by rpm itself into the root of a
machine that has Ganesha's files, at the paths of RPM distributions.

What rpm knows of the rest are stand-ins (ci/package/stand-ins.sh); Ganesha
loads what is in /usr/lib64/ganesha.  Not run here: dnf, an RPM distribution's
own Ganesha, SELinux.
"""
from pathlib import Path

import pytest

from machine import PACKAGES, command, digest, ganesha, \
    links_that_lead_nowhere, plugins, status, what_packages_own

NAME = "nfs-ganesha-ceph-async"
SAMPLE = Path("/etc/ganesha/ceph_async.conf")
PLUGINS = Path("/usr/lib64/ganesha")
ITS = PLUGINS / "libfsalceph.so"
HERE = ("--core", f'Plugins_Dir = "{PLUGINS}";')


def rpm(which, name=NAME):
    found = [path for path in
             (PACKAGES / "rpm" / which / "out").glob(f"{name}-[0-9]*.rpm")
             if not path.name.endswith(".src.rpm")]
    if which == "previous" and not found:
        pytest.skip("no previous build: that is for ci/package.sh without "
                    "\"short\"")
    assert len(found) == 1, found
    return found[0]


def stand_in(name):
    found = list((PACKAGES / "rpm/stand-ins").glob(f"{name}*.rpm"))
    assert len(found) == 1, (name, found)
    return found[0]


@pytest.fixture(scope="module")
def before():
    # Of "filesystem", as any RPM distribution calls it.
    Path("/usr/share/licenses").mkdir(exist_ok=True)
    return what_packages_own()


@pytest.fixture(scope="module")
def distribution(before):
    """rpm's database, and FSAL_CEPH where it belongs there."""
    PLUGINS.mkdir(parents=True, exist_ok=True)
    command("rpm", "-i", stand_in("libraries-1"))


def refused(*files):
    return command("rpm", "-i", "--test", *files, check=False)


def test_dependencies(distribution):
    """Without them, or with others, rpm does not install it."""
    assert f"nfs-ganesha = {ganesha()} is needed" in refused(rpm("this"))
    wrong = (stand_in("nfs-ganesha-99.1"), stand_in("libcephfs2-18.2.7"))
    answer = refused(rpm("this"), *wrong)
    assert f"nfs-ganesha = {ganesha()} is needed" in answer
    assert "libcephfs2 >= 2:19.2 is needed" in answer
    assert status("rpm", "-i", "--test", rpm("this"),
                  stand_in(f"nfs-ganesha-{ganesha()}"),
                  stand_in("libcephfs2-20")) == 0


def test_install_and_serve(machine, distribution):
    command("rpm", "-i", stand_in(f"nfs-ganesha-{ganesha()}"),
            stand_in(f"nfs-ganesha-ceph-{ganesha()}-1"),
            stand_in("libcephfs2-20"))
    command("rpm", "-i", rpm("this"))
    assert (PLUGINS / "libfsalceph_async.so").exists()
    assert command("rpm", "-V", NAME) == ""
    assert links_that_lead_nowhere(f"/usr/share/doc/{NAME}") == []
    log = machine.serve("CEPH_ASYNC", *HERE)
    print(machine.ours(log, "CEPH_ASYNC"))
    assert "all well" in machine.script("sample_io.py", ".=RW", seconds=100)
    found = machine.check()
    assert ("warning", "user-admin") in found
    assert "error" not in {severity for severity, _ in found}
    assert SAMPLE in [Path(line) for line in
                      command("rpm", "-qc", NAME).split()]
    command("rpm", "-e", NAME)


def test_upgrade_under_a_client(machine, distribution, tmp_path):
    command("rpm", "-i", rpm("previous"))
    machine.serve("CEPH_ASYNC", *HERE)
    SAMPLE.write_text("# edited\n" + SAMPLE.read_text())
    with machine.open_files(tmp_path):
        command("rpm", "-U", rpm("this"))
        machine.serve("CEPH_ASYNC", *HERE)
    assert SAMPLE.read_text().startswith("# edited\n")
    command("rpm", "-e", NAME)
    SAMPLE.with_name(SAMPLE.name + ".rpmsave").unlink()


def test_compat_on_and_off_under_a_client(machine, distribution, tmp_path):
    original = digest(ITS)
    log = machine.serve("CEPH", *HERE)
    assert machine.ours(log, "CEPH") is None
    handle = machine.handle_of("handle")
    (tmp_path / "on").mkdir()
    with machine.open_files(tmp_path / "on"):
        command("rpm", "-i", rpm("this"), rpm("this", f"{NAME}-compat"))
        assert digest(ITS) != original
        log = machine.serve("CEPH", *HERE)
        print(machine.ours(log, "CEPH"))
        assert machine.ours(log, "CEPH")
    assert machine.handle_of("handle") == handle
    (tmp_path / "off").mkdir()
    with machine.open_files(tmp_path / "off"):
        command("rpm", "-e", f"{NAME}-compat")
        assert digest(ITS) == original
        log = machine.serve("CEPH", *HERE)
        assert machine.ours(log, "CEPH") is None
    assert machine.handle_of("handle") == handle
    assert command("rpm", "-V", f"nfs-ganesha-ceph-{ganesha()}") == ""


def test_an_update_of_fsal_ceph_keeps_the_diversion(machine, distribution):
    original = digest(ITS)
    command("rpm", "-i", rpm("this", f"{NAME}-compat"))
    ours = digest(ITS)
    command("rpm", "-U", stand_in(f"nfs-ganesha-ceph-{ganesha()}-2"))
    assert digest(ITS) == ours
    assert digest(f"{ITS}.distrib") not in (ours, original)
    command("rpm", "-e", "nfs-ganesha-ceph")
    assert digest(ITS) == ours
    assert not Path(f"{ITS}.distrib").exists()
    assert machine.ours(machine.serve("CEPH", *HERE), "CEPH")
    command("rpm", "-i", stand_in(f"nfs-ganesha-ceph-{ganesha()}-2"))
    assert digest(ITS) == ours
    command("rpm", "-e", f"{NAME}-compat")
    assert command("rpm", "-V", "nfs-ganesha-ceph") == ""
    assert digest(ITS) != ours


def test_removed_without_a_trace(machine, distribution, before):
    command("rpm", "-e", NAME)
    log = machine.serve("CEPH", *HERE)
    assert machine.ours(log, "CEPH") is None
    assert "all well" in machine.script("sample_io.py", ".=RW", seconds=100)
    command("rpm", "-e", "nfs-ganesha-ceph", "nfs-ganesha", "libcephfs2",
            "libraries")
    PLUGINS.rmdir()
    assert what_packages_own() == before
    machine.serve("CEPH", "--core", "")
    assert plugins() != PLUGINS
