/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Pages that the cache has are not taken a second time. */
#include "config.h"

#include <string.h>

#include "unit.h"

#include "cache_rig.h"

static struct casync_cache_file file;

static int up(void **state)
{
	memset(&file, 0, sizeof(file));
	casync_cache_set_budget(16 * MIB);
	return 0;
}

static int down(void **state)
{
	casync_cache_forget(&file);
	return rig_end(state);
}

/* Whether the page behind them is there says nothing. */
TEST_WITH(whole_pages_are_known, up, down)
{
	assert_true(rig_fetch(&file, 1, 1, 0, PAGE));
	assert_false(rig_fetch(&file, 1, 1, 0, PAGE));
	assert_true(rig_fetch(&file, 1, 1, 8 * PAGE, 2 * PAGE));
	assert_false(rig_fetch(&file, 1, 1, 8 * PAGE, 2 * PAGE));
	assert_int_equal(rig_look(&file, 1, 0, PAGE), 1);
}

/* One byte of a page is the page. */
TEST_WITH(page_at_the_end_is_known, up, down)
{
	assert_true(rig_fetch_end(&file, 1, 0, 2 * PAGE, PAGE + 1));
	assert_false(rig_fetch_end(&file, 1, 0, 2 * PAGE, PAGE + 1));
}

TEST_WITH(page_more_is_not_known, up, down)
{
	assert_true(rig_fetch(&file, 1, 1, 0, PAGE));
	assert_true(rig_fetch(&file, 1, 1, 0, 2 * PAGE));
	assert_false(rig_fetch(&file, 1, 1, 0, 2 * PAGE));
}
