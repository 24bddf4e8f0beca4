# SPDX-License-Identifier: LGPL-3.0-or-later
"""The lab's parts, one job a module; see `lab --help`."""
