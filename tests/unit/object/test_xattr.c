/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * A list of names that others change while it is fetched: the fetching ends.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include "fake_names.h"
#include "obj_ops.h"
#include "rig.h"

/* What libcephfs has; it grows by as much with each call. */
static size_t length_bytes, grows_bytes;
static bool runs_away;
static unsigned int calls;
static size_t listed_bytes;

int ceph_ll_listxattr(struct ceph_mount_info *cmount, struct Inode *in,
		      char *list, size_t buf_size, size_t *list_size,
		      const UserPerm *perms)
{
	size_t length = length_bytes;

	(void)cmount;
	(void)in;
	(void)perms;
	if (++calls > 1000)
		fail_msg("it goes on for ever");
	length_bytes += grows_bytes;
	if (runs_away)
		length_bytes *= 4;
	/* A buffer that is too small leaves list_size as it was. */
	if (buf_size != 0 && buf_size < length)
		return -ERANGE;
	if (buf_size != 0)
		memset(list, 'x', length);
	*list_size = length;
	return 0;
}

fsal_status_t fsal_listxattr_helper(const char *buf, size_t listlen,
				    uint32_t maxbytes, nfs_cookie4 *lr_cookie,
				    bool_t *lr_eof, xattrlist4 *lr_names)
{
	(void)maxbytes;
	(void)lr_cookie;
	(void)lr_eof;
	(void)lr_names;
	listed_bytes = listlen;
	if (listlen != 0)
		assert_int_equal(buf[listlen - 1], 'x');
	return fsalstat(ERR_FSAL_NO_ERROR, 0);
}

static int up(void **state)
{
	calls = 0;
	listed_bytes = 12345;
	grows_bytes = 0;
	runs_away = false;
	fake_names_setup();
	return rig_up(state);
}

#define CASE(test) TEST_WITH(test, up, rig_down)

static fsal_errors_t list(void)
{
	nfs_cookie4 cookie = 0;
	xattrlist4 names;
	bool_t eof;

	return casync_listxattrs(&rig.obj->handle, 4096, &cookie, &eof, &names)
		.major;
}

CASE(usual_list_takes_one_call)
{
	length_bytes = 100;
	assert_int_equal(list(), ERR_FSAL_NO_ERROR);
	assert_int_equal(listed_bytes, 100);
	assert_int_equal(calls, 1);
}

CASE(no_names_are_a_list_too)
{
	length_bytes = 0;
	assert_int_equal(list(), ERR_FSAL_NO_ERROR);
	assert_int_equal(listed_bytes, 0);
}

/* More than Linux lets a file have (65536). */
CASE(long_list_is_fetched)
{
	length_bytes = 200000;
	assert_int_equal(list(), ERR_FSAL_NO_ERROR);
	assert_int_equal(listed_bytes, 200000);
}

CASE(list_that_grows_meanwhile_is_fetched)
{
	length_bytes = 70000;
	grows_bytes = 255;
	assert_int_equal(list(), ERR_FSAL_NO_ERROR);
	assert_int_equal(calls, 3);
}

CASE(one_that_runs_away_is_not_followed)
{
	length_bytes = 70000;
	runs_away = true;
	assert_int_not_equal(list(), ERR_FSAL_NO_ERROR);
	assert_int_equal(listed_bytes, 12345);
	assert_true(calls < 20);
}
