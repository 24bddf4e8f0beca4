# SPDX-License-Identifier: LGPL-3.0-or-later
"""python3 tests/bench/peers --help"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from peers.cli import main

sys.exit(main())
