# SPDX-License-Identifier: LGPL-3.0-or-later
"""A ganesha.nfsd with the plugin under AddressSanitizer and UBSan."""
import pytest

from daemon import Daemon


def pytest_addoption(parser):
    parser.addoption("--address-build", metavar="FOLDER", required=True,
                     help="a build with CASYNC_SANITIZE=address,undefined")
    parser.addoption("--minutes", type=float, default=10)
    parser.addoption("--seed", type=int, default=None)


@pytest.fixture(scope="module")
def daemon(request):
    one = Daemon("address", request.config.getoption("--address-build"))
    one.start()
    yield one
    one.restore()
