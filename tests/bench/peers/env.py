# SPDX-License-Identifier: LGPL-3.0-or-later
"""What a scenario needs of the world around it."""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Env:
    store: str = "memstore"
    slow_ms: float = -1         # -1: nobody touches it
    disk: bool = False          # that of the container, which has limits
