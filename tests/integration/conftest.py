# SPDX-License-Identifier: LGPL-3.0-or-later
"""Skips what the lab's Ganesha cannot do."""
from pathlib import Path

import pytest

import ganesha_5_9


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent == Path(__file__).parent:
            why = ganesha_5_9.reason(f"{item.path.name}::{item.name}")
            if why:
                item.add_marker(pytest.mark.skip(reason=why))
