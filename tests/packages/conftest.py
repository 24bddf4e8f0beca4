# SPDX-License-Identifier: LGPL-3.0-or-later
"""A cluster served by FSAL_CEPH in a container that knows nothing of us;
ci/package.sh makes it."""
import pytest

from machine import Machine


@pytest.fixture(scope="session")
def machine():
    machine = Machine()
    machine.up()
    return machine


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed and "machine" in item.funcargs:
        report.sections.append(("end of Ganesha's log",
                                item.funcargs["machine"].log_end()))
    return report
