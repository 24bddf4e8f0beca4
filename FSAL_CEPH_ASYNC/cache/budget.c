/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include "budget.h"

struct casync_cache_counts casync_cache_counts;

static uint64_t budget_limit;
static uint64_t budget_used;
static uint64_t budget_shares[CASYNC_CACHE_OWNERS];

bool casync_cache_charge(uint64_t bytes)
{
	uint64_t used = casync_cache_read(&budget_used);

	/* A limit that changes meanwhile is enforced by who changes it. */
	do {
		if (used + bytes > casync_cache_read(&budget_limit))
			return false;
	} while (!__atomic_compare_exchange_n(&budget_used, &used, used + bytes,
					      true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	return true;
}

void casync_cache_uncharge(uint64_t bytes)
{
	__atomic_fetch_sub(&budget_used, bytes, __ATOMIC_RELAXED);
}

uint64_t casync_cache_used(void)
{
	return casync_cache_read(&budget_used);
}

uint64_t casync_cache_budget(void)
{
	return casync_cache_read(&budget_limit);
}

void casync_cache_budget_store(uint64_t bytes)
{
	__atomic_store_n(&budget_limit, bytes, __ATOMIC_RELAXED);
}

void casync_cache_share_add(unsigned int share, int64_t bytes)
{
	__atomic_fetch_add(&budget_shares[share], (uint64_t)bytes,
			   __ATOMIC_RELAXED);
}

uint64_t casync_cache_share_bytes(unsigned int share)
{
	return casync_cache_read(&budget_shares[share]);
}
