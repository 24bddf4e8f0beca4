# SPDX-License-Identifier: LGPL-3.0-or-later
"""NFS clients of the tests: xdr, rpc over it, nfs3 and nfs4 over that."""
