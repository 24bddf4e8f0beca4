# SPDX-License-Identifier: LGPL-3.0-or-later
"""What is not tested with Ganesha 5.9, and why: the one table.

A pattern is FILE::TEST[PARAMETERS] as pytest names it, with `*` for anything.
conftest.py skips what it matches.
"""
from fnmatch import fnmatchcase

from lab_program import ganesha_version

IS_OLD = ganesha_version() < (9,)

NO_SUCH_CALL = "Ganesha 5.9 has no such call to an FSAL"
NO_FIGURES = "Ganesha 5.9 has no D-Bus call ShowFDUsage, which the test asks"
NO_DELEGATIONS = (
    "no delegations with Ganesha 5.9: it crashes when it recalls one from a "
    "client that is gone (docs/limits.md)")

SKIPPED = {
    "test_check.py::test_a_file?no-metrics?":
        "Ganesha 5.9 has no Enable_Metrics; the other test of the note is run",
    "test_metrics_events.py::test_close_by_a_worker":
        "Ganesha 5.9 has no Close_Fast",
    "test_metrics_file.py::test_the_endpoint_and_*":
        "Ganesha 5.9 has no endpoint for metrics",
    "test_troubleshooting.py::test_on_the_gateway":
        "the page asks Ganesha's endpoint for metrics, which 5.9 has not",
    "test_cluster.py::test_the_session_of_a_dead_node_is_ended": NO_SUCH_CALL,
    "test_cluster.py::test_registration_is_seen_by_the_manager": NO_SUCH_CALL,
    "test_share_client.py::test_a_take_over_ends_all_sessions": NO_SUCH_CALL,
    "test_descriptors.py::*": NO_FIGURES,
    "test_field_bugs.py::test_ganesha_1388_*": NO_DELEGATIONS,
    "test_field_bugs.py::test_ganesha_1390_*": NO_DELEGATIONS,
    "test_late_lock.py::*":
        "the common grace period of Ganesha 5.9 waits for the LOCK: the case "
        "does not occur",
    "test_compat_keys.py::test_what_tools_render_is_served[[]FSAL_CEPH-ceph*":
        "FSAL_CEPH of Ganesha 5.9 does not know register_service and nodeid",
    "test_compat_keys.py::test_each_value_that_fsal_ceph_takes":
        "FSAL_CEPH of Ganesha 5.9 takes 1 for true, the stand-in does not "
        "(docs/limits.md)",
    "test_failover.py::test_clients_go_on_at_the_other_host":
        "a failover takes up to session_timeout with Ganesha 5.9, and locks "
        "are lost (docs/limits.md)",
    "test_ingress.py::*":
        "Ganesha 5.9 crashes when it gets a PROXY header (docs/limits.md)",
    "test_sparse_model.py::test_ceph_with_async_fails_*":
        "FSAL_CEPH of Ganesha 5.9 reads such a hole well",
    "test_stalled_file.py::*[[]3[]]":
        "Ganesha 5.9 holds a lock of the file while it asks for attributes "
        "before each WRITE of NFSv3: the others wait in workers "
        "(docs/limits.md)",
    **dict.fromkeys((
        "test_delegations.py::*_delegation_is_recalled_*",
        "test_delegations.py::test_what_is_written_after_the_recall_*",
        "test_delegations.py::test_the_holder_*",
        "test_delegations.py::test_close_and_reopen_while_delegated",
        "test_delegations.py::test_who_does_not_answer_is_revoked*",
        "test_delegations.py::test_a_dead_holder_keeps_nobody_waiting",
        "test_delegations.py::*_delegations_outstanding*",
        "test_delegations.py::test_the_end_during_a_recall",
        "test_delegations.py::test_a_timeout_longer_than_cephs_is_told",
        "test_delegated_times.py::*",
    ), NO_DELEGATIONS),
}

# What is the other way round.
ONLY_HERE = {
    "test_delegations.py::test_none_where_ganesha_crashes":
        "this Ganesha has delegations",
}


def reason(name):
    """Why the test NAME is skipped with the lab's Ganesha, or None."""
    for pattern, why in (SKIPPED if IS_OLD else ONLY_HERE).items():
        if fnmatchcase(name, pattern):
            return why
    return None
