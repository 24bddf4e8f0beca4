# SPDX-License-Identifier: LGPL-3.0-or-later
"""Twenty seconds of ci/job.sh fuzz-wire, without a sanitizer."""

SEED = "20240229"           # any: the same requests each time
MINUTES = "0.3"


def test_right_and_wrong_requests(cluster, record):
    """The daemon lives, a client beside it is served, nothing is left."""
    cluster.altered = True      # it starts "a" anew
    # Ganesha's own lines on requests that do not decode, or make no sense.
    cluster.expected += [
        r"nfs_rpc_process_request FAILURE: Bad xdr_free",
        r"nfs3_Sattr_To_FSALattr :NFS3 :CRIT :Unexpected value",
        r"nfs4_Compound :NFS4 :CRIT :(Bad Minor Version|COMPOUND: bad tag)",
        r"nfs4_Compound :NFS4 :MAJ :",
        r"Possible implementation error: ERR_FSAL_NO_ERROR managed",
        r"pseudofs_create_handle :FSAL :CRIT :Invalid "]
    said = cluster.job("fuzz/wire.py", "--seed", SEED, "--minutes", MINUTES,
                       limit_s=120)
    for line in said.splitlines():
        if "requests in" in line or "canary" in line or "last" in line:
            record(line.split(" ", 1)[1])
