# SPDX-License-Identifier: LGPL-3.0-or-later
"""What ci/release.sh and ci/dist.sh take from a checkout; no container."""
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]


def run(folder, *command, **more):
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("GIT_")} | more
    return subprocess.run(command, cwd=folder, capture_output=True, text=True,
                          check=False, env=environment)


@pytest.fixture
def checkout(tmp_path):
    """A small checkout with all that is not a program, committed."""
    top = tmp_path / "checkout"
    top.mkdir()
    for name in ("ci", "packaging"):
        shutil.copytree(TOP / name, top / name,
                        ignore=shutil.ignore_patterns("__pycache__"))
    for name in (".gitattributes", ".gitignore", "CHANGELOG.md",
                 "CMakeLists.txt"):
        shutil.copy(TOP / name, top / name)
    (top / "results" / "2026-01-01").mkdir(parents=True)
    (top / "results" / "2026-01-01" / "raw.json").write_text("{}")
    for command in (("init", "-q"), ("add", "-A", "-f"),
                    ("-c", "user.name=a", "-c", "user.email=a@b.example",
                     "commit", "-q", "-m", "all")):
        done = run(top, "git", *command)
        assert done.returncode == 0, done.stderr
    return top


def names(tarball):
    with tarfile.open(tarball) as opened:
        return {name.partition("/")[2] for name in opened.getnames()}


def test_measurements_stay_out_of_the_tarball(checkout):
    assert "results/2026-01-01/raw.json" in run(
        checkout, "git", "ls-files").stdout
    done = run(checkout, "ci/dist.sh")
    assert done.returncode == 0, done.stderr
    packed = names(done.stdout.strip())
    assert {"CMakeLists.txt", "debian/rules", "ci/dist.sh"} <= packed
    assert not [name for name in packed if name.startswith("results")]


def test_the_same_commit_gives_the_same_tarball(checkout):
    tarballs = []
    for folder in ("one", "two"):
        done = run(checkout, "ci/dist.sh", f"build/{folder}")
        assert done.returncode == 0, done.stderr
        tarballs.append((checkout / done.stdout.strip()).read_bytes())
        for path in checkout.rglob("*.md"):
            path.touch()
    assert tarballs[0] == tarballs[1]


@pytest.mark.parametrize("spoil", [
    lambda top: (top / "new.c").write_text("int new;\n"),
    lambda top: (top / "CHANGELOG.md").write_text("changed\n"),
    lambda top: (top / "CMakeLists.txt").unlink(),
], ids=["new", "changed", "removed"])
def test_a_release_is_of_a_commit(checkout, spoil):
    spoil(checkout)
    done = run(checkout, "ci/release.sh")
    assert done.returncode == 1
    assert "are not as in commit" in done.stderr
    assert "git stash --include-untracked" in done.stderr
    assert not (checkout / "build").exists()


def test_without_a_commit_there_is_no_release(checkout):
    shutil.rmtree(checkout / ".git")
    done = run(checkout, "ci/release.sh")
    assert done.returncode == 1
    assert "has no commit to release" in done.stderr


def test_a_failure_leaves_the_former_release(checkout, tmp_path):
    """Here of the first image."""
    engine = tmp_path / "bin" / "docker"
    engine.parent.mkdir()
    engine.write_text("#!/bin/sh\n[ \"$1\" != build ] || "
                      "echo the image is refused\n[ \"$1\" = info ]\n")
    engine.chmod(0o755)
    releases = checkout / "build" / "release"
    former = releases / "0.0.9" / "SHA256SUMS"
    former.parent.mkdir(parents=True)
    former.write_text("former\n")
    done = run(checkout, "ci/release.sh", IMAGE_READY="1",
               PATH=f"{engine.parent}:{os.environ['PATH']}")
    assert done.returncode == 1
    assert "the image is refused" in done.stderr
    assert "no release was made" in done.stdout
    assert list(releases.iterdir()) == [former.parent]
    assert former.read_text() == "former\n"


def test_help(checkout):
    done = run(checkout, "ci/release.sh", "--help")
    assert done.returncode == 0
    assert "build/release/VERSION" in done.stdout
    assert len(done.stdout.splitlines()) < 20
