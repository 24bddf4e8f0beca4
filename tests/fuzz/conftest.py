# SPDX-License-Identifier: LGPL-3.0-or-later
"""A ganesha.nfsd with the plugin under AddressSanitizer and UBSan."""
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "integration"), str(TESTS / "sanitize")]


def pytest_addoption(parser):
    parser.addoption("--address-build", metavar="FOLDER", required=True,
                     help="a build with CASYNC_SANITIZE=address,undefined")
    parser.addoption("--minutes", type=float, default=10)
    parser.addoption("--seed", type=int, default=None)


@pytest.fixture(scope="module")
def daemon(request):
    from daemon import Daemon
    one = Daemon("address", request.config.getoption("--address-build"))
    one.start()
    yield one
    one.restore()


@pytest.fixture
def say(capsys):
    def line(text):
        with capsys.disabled():
            print(f"\n    {text}", flush=True)
    return line
