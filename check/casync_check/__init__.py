# SPDX-License-Identifier: LGPL-3.0-or-later
"""ganesha-ceph-async-check: one job a module."""
