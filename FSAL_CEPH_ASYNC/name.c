/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "name.h"

#ifdef CASYNC_COMPAT
const char casync_name[] = "CEPH";
const bool casync_compat = true;
#else
const char casync_name[] = CASYNC_OWN_NAME;
const bool casync_compat = false;
#endif
