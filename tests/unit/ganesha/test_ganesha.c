/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What differs between Ganesha's versions, with the header of the version that
 * this build is for.
 */
#include "config.h"

#include <string.h>

#include "unit.h"

#include "ganesha_unit.h"

__thread struct req_op_context *op_ctx;

/* What test_access was asked for; 0: it was not asked. */
static fsal_accessflags_t asked;
static fsal_accessflags_t asked_again;
static bool asked_for_owner;

static fsal_status_t test_access(struct fsal_obj_handle *obj_hdl,
				 fsal_accessflags_t access_type,
				 fsal_accessflags_t *allowed,
				 fsal_accessflags_t *denied, bool owner_skip)
{
	if (asked != 0)
		asked_again = access_type;
	else
		asked = access_type;
	asked_for_owner = owner_skip;
	return fsalstat(ERR_FSAL_ACCESS, 0);
}

static const struct reopen_case {
	fsal_openflags_t had, wanted;
	fsal_accessflags_t access;
} cases[] = {
	{FSAL_O_READ, FSAL_O_READ, 0},
	{FSAL_O_READ, FSAL_O_RDWR, FSAL_WRITE_ACCESS},
	{FSAL_O_WRITE, FSAL_O_RDWR, FSAL_READ_ACCESS},
	{FSAL_O_RDWR, FSAL_O_READ, 0},
	{FSAL_O_READ, FSAL_O_READ | FSAL_O_TRUNC, FSAL_WRITE_ACCESS},
	{FSAL_O_RDWR, FSAL_O_RDWR | FSAL_O_TRUNC, FSAL_WRITE_ACCESS},
	{FSAL_O_READ, FSAL_O_RDWR | FSAL_O_RECLAIM, FSAL_WRITE_ACCESS},
};

/* Where Ganesha does not check a second OPEN, we do. */
TEST(second_open_is_checked)
{
	struct fsal_obj_ops ops = {.test_access = test_access};
	struct fsal_obj_handle handle = {.obj_ops = &ops};
	fsal_accessflags_t access;
	fsal_status_t status;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		asked = asked_again = 0;
		status = casync_ganesha_check_reopen(&handle, cases[i].had,
						     cases[i].wanted);
		access = CHECKS_REOPEN ? cases[i].access : 0;
		assert_int_equal(asked, access);
		/* To execute a file is to read it. */
		assert_int_equal(asked_again, access == FSAL_READ_ACCESS
						      ? FSAL_EXECUTE_ACCESS
						      : 0);
		assert_int_equal(status.major, access != 0 ? ERR_FSAL_ACCESS
							   : ERR_FSAL_NO_ERROR);
		if (access != 0)
			assert_int_equal(asked_for_owner,
					 (cases[i].wanted & FSAL_O_RECLAIM) !=
						 0);
	}
}

TEST(target_has_a_nul)
{
	casync_ganesha_target_t target;

	casync_ganesha_set_target(&target, "abcdef", 3);
	assert_string_equal(target_memory(&target), "abc");
	assert_int_equal(target_bytes(&target), 3);
	gsh_free(target_memory(&target));
}
