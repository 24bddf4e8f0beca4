# SPDX-License-Identifier: LGPL-3.0-or-later
"""Ganesha's own lines when something of its configuration is refused, after the
one that says why."""
NULL = "fsal_export is NULL"
# What is wrong, with file and line number, at the end of all that was read at
# the start; and that something is wrong, when it is read again.
ERRORS = "config_errs_to_log :CONFIG :CRIT :"
REREAD = "reread_config :CONFIG :CRIT :"

# An export with a wrong value, and one that cannot be made otherwise or has a
# key that nobody knows.
WRONG_VALUE = ("Failed to call create_export on underlying FSAL CEPH",
               r"Could not create export for \(/", ERRORS)
NO_EXPORT = (*WRONG_VALUE, NULL)

# The first export of an FSAL with a wrong value in its block, and with a block
# that is refused otherwise.
VOID_BLOCK = (r"Failed to initialize FSAL \(CEPH", ERRORS)
NO_BLOCK = (*VOID_BLOCK, NULL)

# An export that does not get its new keys.
NO_UPDATE = ("Failed to call update_export on underlying FSAL CEPH_ASYNC",
             "Could not update export for ")
