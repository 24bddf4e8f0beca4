# SPDX-License-Identifier: LGPL-3.0-or-later
"""One ganesha.nfsd a sanitizer; the tests of each use it in order."""
import pytest

from daemon import Daemon


def pytest_addoption(parser):
    parser.addoption("--address-build", metavar="FOLDER",
                     help="a build with CASYNC_SANITIZE=address,undefined")
    parser.addoption("--thread-build", metavar="FOLDER",
                     help="a build with CASYNC_SANITIZE=thread")


def pytest_generate_tests(metafunc):
    builds = {which: metafunc.config.getoption(f"--{which}-build")
              for which in ("address", "thread")}
    metafunc.parametrize("daemon", [pair for pair in builds.items()
                                    if pair[1]],
                         ids=lambda pair: pair[0], indirect=True,
                         scope="module")


@pytest.fixture(scope="module")
def daemon(request):
    one = Daemon(*request.param)
    one.start()
    yield one
    one.restore()
