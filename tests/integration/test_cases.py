# SPDX-License-Identifier: LGPL-3.0-or-later
"""Every case of client/, over every version of NFS.

One client boot runs all cases of a version; each is a test of its own.
"""
import pytest

import all_cases  # noqa: F401  (registers the cases)
from batch import Batch
from expected_differences import EXPECTED, verdict
from registry import CASES, VERSIONS

# To the plugin NFSv4.0, 4.1 and 4.2 are the same calls, but for what these
# have.  The other cases run over 4.0 and 4.1 each night.
VERSIONED = {"case_posix_locks", "case_sharing", "case_access", "case_acls",
             "case_eof", "case_errors", "case_files"}


def _marks(version, name):
    return () if version in ("3", "4.2") or CASES[name].module in VERSIONED \
        else pytest.mark.nightly


PAIRS = [pytest.param((version, name), marks=_marks(version, name),
                      id=f"v{version}-{name}")
         for version in VERSIONS for name, one in CASES.items()
         if version in one.versions]


@pytest.fixture(scope="session")
def batches(cluster, request):
    """The results of each version, from a client that runs when asked."""
    wanted = {}
    for item in request.session.items:
        version, name = (getattr(item, "callspec", None) and \
            item.callspec.params.get("pair")) or (None, None)
        wanted.setdefault(version, []).append(name)
    cluster.ensure_default()
    return {version: Batch(cluster, version, wanted.get(version, []))
            for version in VERSIONS}


@pytest.mark.parametrize("pair", PAIRS)
def test_case(batches, pair):
    version, name = pair
    outcome = batches[version].outcome(name)
    known = verdict(name)
    if known and known.right in EXPECTED:
        assert outcome, \
            f"it works: expected_differences.py is wrong that {known.why}"
        pytest.xfail(known.why)
    assert outcome is None, f"over NFS {version}:\n{outcome}"
