# SPDX-License-Identifier: LGPL-3.0-or-later
"""ci/abi.sh: what the comparison of two tables says, bad arguments, and the
table that is kept for the lab's Ganesha."""
import re
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
ABI = TOP / "ci" / "abi"
LAB = Path("/usr/src/nfs-ganesha")
BUILT = {
    ("member", "struct gsh_export.export_id"): ("3584", "short, 2 bytes"),
    ("member", "struct fsal_info.umask"): ("99", "_Bool, 1 bits"),
    ("member", "struct fsal_ops.read2"): ("64", "void (*)(int), 8 bytes"),
    ("record", "struct fsal_fd"): ("", "200 bytes"),
    ("enum", "ERR_FSAL_STALE"): ("", "10020"),
    ("macro", "FSAL_O_READ"): ("", "0x0001"),
    ("inline", "fsalstat"): ("", "0123456789ab"),
    ("function", "update_export"): ("", "int (struct fsal_module *)"),
    ("symbol", "update_export"): ("", "exported"),
}


def compare(folder, other):
    """(status, lines) of compare.py for BUILT and another table."""
    names = []
    for name, rows in ("built.tsv", BUILT), ("other.tsv", other):
        names.append(folder / name)
        names[-1].write_text("".join("\t".join((*key, *values)) + "\n"
                                     for key, values in rows.items()))
    done = subprocess.run([sys.executable, "-B", ABI / "compare.py", *names],
                          stdout=subprocess.PIPE, text=True, timeout=30,
                          check=False)
    return done.returncode, done.stdout.splitlines()


def test_the_same_table_fits(tmp_path):
    assert compare(tmp_path, BUILT) == (0, ["9 names compared, 0 differ"])


@pytest.mark.parametrize("kind, name, value, said", [
    ("member", "struct gsh_export.export_id", ("3712", "short, 2 bytes"),
     "was at byte 448, is at byte 464"),
    ("member", "struct gsh_export.export_id", ("3584", "int, 4 bytes"),
     "was short, 2 bytes, is int, 4 bytes"),
    ("member", "struct gsh_export.export_id", ("3712", "int, 4 bytes"),
     "was at byte 448, is at byte 464; was short, 2 bytes, is int, 4 bytes"),
    ("member", "struct fsal_info.umask", ("100", "_Bool, 1 bits"),
     "was at byte 12 bit 3, is at byte 12 bit 4"),
    ("member", "struct fsal_ops.read2", ("64", "void (*)(long), 8 bytes"),
     "was void (*)(int), 8 bytes, is void (*)(long), 8 bytes"),
    ("record", "struct fsal_fd", ("", "208 bytes"),
     "was 200 bytes, is 208 bytes"),
    ("enum", "ERR_FSAL_STALE", ("", "10021"), "was 10020, is 10021"),
    ("macro", "FSAL_O_READ", ("", "0x0002"), "was 0x0001, is 0x0002"),
    ("inline", "fsalstat", ("", "ba9876543210"),
     "was 0123456789ab, is ba9876543210"),
    ("function", "update_export", ("", "int (void)"),
     "was int (struct fsal_module *), is int (void)"),
])
def test_a_change_is_named(tmp_path, kind, name, value, said):
    status, lines = compare(tmp_path, BUILT | {(kind, name): value})
    assert status == 1
    assert lines == [f"{kind} {name}: {said}", "9 names compared, 1 differ"]


def test_a_missing_symbol_is_named(tmp_path):
    other = dict(BUILT)
    del other["symbol", "update_export"]
    assert compare(tmp_path, other) == (
        1, ["symbol update_export: is missing", "9 names compared, 1 differ"])


def test_what_does_not_compile_is_shown(tmp_path):
    error = {("error", "FSAL_CEPH_ASYNC/io/op.c:7"): ("", "no member 'iov'")}
    assert compare(tmp_path, BUILT | error) == (
        1, ["does not compile: FSAL_CEPH_ASYNC/io/op.c:7: no member 'iov'",
            "9 names compared, 1 differ"])


def test_what_only_the_other_uses_is_named(tmp_path):
    more = {("member", "struct new.member"): ("0", "int, 4 bytes")}
    assert compare(tmp_path, BUILT | more) == (
        1, ["member struct new.member: is used there alone",
            "9 names compared, 1 differ"])


def test_an_empty_table_is_no_answer(tmp_path):
    assert compare(tmp_path, {})[0] == 2


def run(*arguments):
    """(status, messages) of ci/abi/run.sh."""
    done = subprocess.run([ABI / "run.sh", *arguments], text=True, timeout=30,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          check=False)
    return done.returncode, done.stderr


def tree(folder, api, config=True):
    """A folder with as much of Ganesha as is looked at first."""
    source, build = folder / "src/include", folder / "build/include"
    source.mkdir(parents=True)
    build.mkdir(parents=True)
    (source / "fsal_api.h").write_text(f"#define FSAL_MAJOR_VERSION {api}\n")
    if config:
        (build / "config.h").write_text(
            f'#define GANESHA_VERSION "{api}.0"\n')
    return folder


def test_bad_usage():
    status, said = run()
    assert status == 2 and "TREE" in said


def test_no_tree_of_ganesha(tmp_path):
    status, said = run(tmp_path)
    assert status == 2 and "fsal_api.h is missing" in said


def test_a_tree_that_is_not_configured(tmp_path):
    status, said = run(tree(tmp_path, 14, config=False))
    assert status == 2 and "has no config.h: run Ganesha's cmake" in said


def test_another_api_does_not_fit(tmp_path):
    done = subprocess.run(
        [ABI / "run.sh", tree(tmp_path / "a", 13), tree(tmp_path / "b", 14)],
        stdout=subprocess.PIPE, text=True, timeout=30, check=False)
    assert done.returncode == 1
    assert "Ganesha 13.0 in" in done.stdout
    assert "has FSAL API 13, and" in done.stdout
    assert done.stdout.endswith("has 14\n")


def test_the_kept_table_is_that_of_the_lab(tmp_path):
    config = (LAB / "build/include/config.h").read_text()
    version = re.search(r'#define GANESHA_VERSION "(.*)"', config)[1]
    kept = TOP / "packaging" / f"abi-{version}.tsv"
    if not kept.exists():
        pytest.skip(f"no table is kept for Ganesha {version}")
    done = subprocess.run([ABI / "run.sh", LAB, LAB, tmp_path], text=True,
                          stdout=subprocess.PIPE, timeout=300, check=False)
    assert done.returncode == 0, done.stdout
    # ci/abi.sh /usr/src/nfs-ganesha; cp build/abi/built.tsv packaging/...
    assert kept.read_text() == (tmp_path / "built.tsv").read_text()
