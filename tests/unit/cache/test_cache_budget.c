/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include "buffer.h"

TEST(nothing_is_charged_over_the_budget)
{
	casync_buffer_set_budget(100);
	assert_true(casync_buffer_charge(60));
	assert_false(casync_buffer_charge(41));
	assert_true(casync_buffer_charge(40));
	assert_false(casync_buffer_charge(1));
	assert_int_equal(casync_buffer_used_bytes(), 100);
	casync_buffer_uncharge(40);
	assert_true(casync_buffer_charge(40));
	casync_buffer_uncharge(100);
	assert_int_equal(casync_buffer_used_bytes(), 0);
}

TEST(lower_budget_refuses_until_it_is_met)
{
	casync_buffer_set_budget(100);
	assert_true(casync_buffer_charge(80));
	casync_buffer_set_budget(50);
	assert_int_equal(casync_buffer_used_bytes(), 80);
	assert_false(casync_buffer_charge(1));
	casync_buffer_uncharge(40);
	assert_true(casync_buffer_charge(10));
	assert_false(casync_buffer_charge(1));
	casync_buffer_uncharge(50);
	casync_buffer_set_budget(0);
	assert_false(casync_buffer_charge(1));
}

TEST(owners_have_shares_by_their_number)
{
	assert_int_equal(casync_buffer_share_of(3), 3);
	assert_int_equal(casync_buffer_share_of(CASYNC_CACHE_OWNERS + 3), 3);
	casync_buffer_share_add(3, 500);
	casync_buffer_share_add(4, 70);
	casync_buffer_share_add(3, -200);
	assert_int_equal(casync_buffer_share_bytes(3), 300);
	assert_int_equal(casync_buffer_share_bytes(4), 70);
	casync_buffer_share_add(3, -300);
	assert_int_equal(casync_buffer_share_bytes(3), 0);
}
