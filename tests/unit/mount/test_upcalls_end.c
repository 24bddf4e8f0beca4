/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The end of a mount's upcalls leaves no memory behind: a mount may come and go
 * with each export. */
#include "config.h"

#include <malloc.h>

#include "unit.h"

#include "upcalls.h"

static struct casync_upcalls upcalls;

/* Large pieces are mapped, and counted apart. */
static size_t in_use(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

static void begin_and_end(unsigned int times)
{
	for (; times != 0; times--) {
		casync_upcalls_init(&upcalls);
		casync_upcalls_destroy(&upcalls);
	}
}

TEST(upcalls_that_end_leave_nothing)
{
	size_t before;

	begin_and_end(1);
	before = in_use();
	begin_and_end(20);
	assert_in_range(in_use(), 0, before + 4096);
}
