/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The last byte of a lock, near the last offset that there is. */
#include "config.h"

#include "unit.h"

#include "fd.h"
#include "lock_records.h"
#include "object.h"
#include "rig.h"

#define LAST UINT64_MAX

static char owner, other;

static const struct range_case {
	const char *name;
	uint64_t start, length;
	uint64_t last;
} cases[] = {
	{"one_byte", 5, 1, 5},
	{"to_the_end", 5, 0, LAST},
	{"two_bytes_before_the_last", LAST - 9, 8, LAST - 2},
	{"one_byte_before_the_last", LAST - 9, 9, LAST - 1},
	{"up_to_the_last", LAST - 9, 10, LAST},
	{"beyond_the_last", LAST - 9, 20, LAST},
	{"the_last_alone", LAST, 1, LAST},
};

static bool has(const void *whose, uint64_t offset)
{
	const fsal_lock_param_t byte = {.lock_start = offset, .lock_length = 1};

	return casync_lock_records_have(&rig.obj->locks, whose, &byte);
}

TEST_ROWS(check_range, cases, rig_up, rig_down)
{
	const struct range_case *c = *state;
	fsal_lock_param_t lock = {.lock_type = FSAL_LOCK_W,
				  .lock_start = c->start,
				  .lock_length = c->length};

	casync_lock_records_locked(&rig.obj->locks, &rig.state.fd, &owner,
				   &lock, 0);
	assert_true(has(&owner, c->start));
	assert_true(has(&owner, c->last));
	assert_false(has(&other, c->start));
	assert_false(has(&owner, c->start - 1));
	if (c->last != LAST)
		assert_false(has(&owner, c->last + 1));
	casync_lock_records_unlocked(&rig.obj->locks, &rig.state.state, &owner,
				     &lock);
	assert_false(has(&owner, c->start));
	assert_false(has(&owner, c->last));
}
