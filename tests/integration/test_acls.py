# SPDX-License-Identifier: LGPL-3.0-or-later
"""ACLs as an option of the export; what they do is in client/case_acls.py."""
import time

import pytest

from lab import SECOND_PORT
from nfs import nfs4
from nfs.xdr import Reader

ATTRNOTSUPP = 10032
ACL = 12
ONE_MORE = [(0, 0, 7, "OWNER@"), (0, 0x40, 0, "GROUP@"),
            (0, 0, 0, "EVERYONE@"), (0, 0, 3, "47110")]


def supported(client, handle):
    """The numbers of the attributes that the server says it has."""
    value, _ = client.get(handle, 0)
    words = Reader(value)
    masks = [words.number() for _ in range(words.number())]
    return {32 * n + bit for n, mask in enumerate(masks) for bit in range(32)
            if mask >> bit & 1}


def test_disable_acl_hides_them(lab, second):
    second(export_block="Disable_ACL = true;")
    name = f"acl-{time.time_ns()}"
    with_acls = nfs4.Client(2049, "with ACLs")
    without = nfs4.Client(SECOND_PORT, "without ACLs")
    file = with_acls.open(name, create=nfs4.UNCHECKED)
    assert ACL in supported(with_acls, file.handle)
    with_acls.set(file.handle, acl=ONE_MORE)
    assert b"47110" in with_acls.get(file.handle, ACL)[0]

    handle = without.lookup(name)
    assert ACL not in supported(without, handle)
    # who asks all the same gets what Ganesha's core makes of the mode
    assert b"47110" not in without.get(handle, ACL)[0]
    with pytest.raises(nfs4.Failed) as refusal:
        without.set(handle, acl=ONE_MORE)
    assert refusal.value.status == ATTRNOTSUPP
    file.close()
    for client in (with_acls, without):
        client.leave()
