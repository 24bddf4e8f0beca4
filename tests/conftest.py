# SPDX-License-Identifier: LGPL-3.0-or-later
"""What all folders of tests share."""
import pytest

# The lab, of which there is one for all folders.
pytest_plugins = ["lab_fixtures"]


@pytest.fixture
def say(capsys):
    """Says a line to whoever watches the run."""
    def line(text):
        with capsys.disabled():
            print(f"\n    {text}", flush=True)
    return line
