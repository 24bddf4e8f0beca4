/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>

#include "fsal.h"

#include "birth.h"
#include "journal.h"
#include "owner.h"

int casync_birth_sync(const struct casync_object *obj)
{
	int rc;

	if (obj->client == 0)
		return 0;
	rc = casync_journal_sync(obj->exp->mount, obj->id.ino);
	/* Client 0's loss is not that of the file's client. */
	return casync_session_error(-rc) ? -ETIME : rc;
}
