/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * The whole input space, spelled out: what docs/durability.md promises, one
 * row a combination.
 */
#include <stdio.h>

#include "unit.h"

#include "durability.h"

#define DATA CASYNC_STABLE_DATA
#define FDATA CASYNC_STABLE_FDATASYNC
#define FULL CASYNC_STABLE_FULL

/* Outcomes: what libcephfs is asked for, what comes after, what is said. */
#define UNSTABLE {false, false, false}
#define STABLE {false, false, true}
#define STABLE_FLUSH {false, true, true}
#define STABLE_FSYNC {true, false, true}
#define STABLE_FSYNC_FLUSH {true, true, true}

struct write_row {
	/* mode, stable_wanted, promote_unstable, object_cache, grown */
	struct casync_durability_in in;
	struct casync_durability out;
};

static const struct write_row write_rows[] = {
	{{DATA, 0, 0, 0, 0}, UNSTABLE},
	{{DATA, 0, 0, 0, 1}, UNSTABLE},
	{{DATA, 0, 0, 1, 0}, UNSTABLE},
	{{DATA, 0, 0, 1, 1}, UNSTABLE},
	{{DATA, 0, 1, 0, 0}, STABLE},
	{{DATA, 0, 1, 0, 1}, STABLE},
	{{DATA, 0, 1, 1, 0}, UNSTABLE},
	{{DATA, 0, 1, 1, 1}, UNSTABLE},
	{{DATA, 1, 0, 0, 0}, STABLE},
	{{DATA, 1, 0, 0, 1}, STABLE},
	{{DATA, 1, 0, 1, 0}, STABLE_FSYNC},
	{{DATA, 1, 0, 1, 1}, STABLE_FSYNC},
	{{DATA, 1, 1, 0, 0}, STABLE},
	{{DATA, 1, 1, 0, 1}, STABLE},
	{{DATA, 1, 1, 1, 0}, STABLE_FSYNC},
	{{DATA, 1, 1, 1, 1}, STABLE_FSYNC},

	{{FDATA, 0, 0, 0, 0}, UNSTABLE},
	{{FDATA, 0, 0, 0, 1}, UNSTABLE},
	{{FDATA, 0, 0, 1, 0}, UNSTABLE},
	{{FDATA, 0, 0, 1, 1}, UNSTABLE},
	{{FDATA, 0, 1, 0, 0}, STABLE},
	/* Free only as long as nothing has to be journaled for it. */
	{{FDATA, 0, 1, 0, 1}, UNSTABLE},
	{{FDATA, 0, 1, 1, 0}, UNSTABLE},
	{{FDATA, 0, 1, 1, 1}, UNSTABLE},
	{{FDATA, 1, 0, 0, 0}, STABLE},
	{{FDATA, 1, 0, 0, 1}, STABLE_FLUSH},
	{{FDATA, 1, 0, 1, 0}, STABLE_FSYNC},
	{{FDATA, 1, 0, 1, 1}, STABLE_FSYNC_FLUSH},
	{{FDATA, 1, 1, 0, 0}, STABLE},
	{{FDATA, 1, 1, 0, 1}, STABLE_FLUSH},
	{{FDATA, 1, 1, 1, 0}, STABLE_FSYNC},
	{{FDATA, 1, 1, 1, 1}, STABLE_FSYNC_FLUSH},

	{{FULL, 0, 0, 0, 0}, UNSTABLE},
	{{FULL, 0, 0, 0, 1}, UNSTABLE},
	{{FULL, 0, 0, 1, 0}, UNSTABLE},
	{{FULL, 0, 0, 1, 1}, UNSTABLE},
	{{FULL, 0, 1, 0, 0}, UNSTABLE},
	{{FULL, 0, 1, 0, 1}, UNSTABLE},
	{{FULL, 0, 1, 1, 0}, UNSTABLE},
	{{FULL, 0, 1, 1, 1}, UNSTABLE},
	{{FULL, 1, 0, 0, 0}, STABLE_FLUSH},
	{{FULL, 1, 0, 0, 1}, STABLE_FLUSH},
	{{FULL, 1, 0, 1, 0}, STABLE_FSYNC_FLUSH},
	{{FULL, 1, 0, 1, 1}, STABLE_FSYNC_FLUSH},
	{{FULL, 1, 1, 0, 0}, STABLE_FLUSH},
	{{FULL, 1, 1, 0, 1}, STABLE_FLUSH},
	{{FULL, 1, 1, 1, 0}, STABLE_FSYNC_FLUSH},
	{{FULL, 1, 1, 1, 1}, STABLE_FSYNC_FLUSH},
};

#define WRITE_ROWS (sizeof(write_rows) / sizeof(write_rows[0]))

struct commit_row {
	enum casync_stable_write mode;
	bool object_cache;
	bool grown;
	bool flushes;
};

static const struct commit_row commit_rows[] = {
	{DATA, 0, 0, false}, {DATA, 0, 1, false},  {DATA, 1, 0, true},
	{DATA, 1, 1, true},  {FDATA, 0, 0, false}, {FDATA, 0, 1, true},
	{FDATA, 1, 0, true}, {FDATA, 1, 1, true},  {FULL, 0, 0, true},
	{FULL, 0, 1, true},  {FULL, 1, 0, true},   {FULL, 1, 1, true},
};

#define COMMIT_ROWS (sizeof(commit_rows) / sizeof(commit_rows[0]))

TEST(table_has_every_combination_once)
{
	bool seen[3][2][2][2][2] = {0};
	size_t i;

	assert_int_equal(WRITE_ROWS, 3 * 2 * 2 * 2 * 2);
	for (i = 0; i < WRITE_ROWS; i++) {
		const struct casync_durability_in *in = &write_rows[i].in;
		bool *cell =
			&seen[in->mode][in->stable_wanted][in->promote_unstable]
			     [in->object_cache][in->grown];

		assert_false(*cell);
		*cell = true;
	}
	assert_int_equal(COMMIT_ROWS, 3 * 2 * 2);
}

static void check_write(void **state)
{
	const struct write_row *row = *state;
	struct casync_durability out = casync_durability_of_write(&row->in);

	assert_int_equal(out.fsync, row->out.fsync);
	assert_int_equal(out.flush, row->out.flush);
	assert_int_equal(out.stable_answer, row->out.stable_answer);
}

static void check_commit(void **state)
{
	const struct commit_row *row = *state;

	assert_int_equal(casync_durability_commit_flushes(
				 row->mode, row->object_cache, row->grown),
			 row->flushes);
}

/* Whatever the mode: a client that asked for a stable write gets one. */
TEST(stable_write_is_never_answered_unstable)
{
	size_t i;

	for (i = 0; i < WRITE_ROWS; i++) {
		if (write_rows[i].in.stable_wanted)
			assert_true(
				casync_durability_of_write(&write_rows[i].in)
					.stable_answer);
	}
}

static const char *const mode_names[] = {"data", "fdatasync", "full"};

static void add(const char *name, CMUnitTestFunction check, const void *row)
{
	unit_add(__LINE__, &(struct CMUnitTest){.name = name,
						.test_func = check,
						.initial_state = (void *)row});
}

UNIT_BEFORE_MAIN(rows)
{
	static char names[WRITE_ROWS + COMMIT_ROWS][80];
	size_t i;

	for (i = 0; i < WRITE_ROWS; i++) {
		const struct casync_durability_in *in = &write_rows[i].in;

		snprintf(names[i], sizeof(names[i]), "%s_write_%s%s%s%s",
			 mode_names[in->mode],
			 in->stable_wanted ? "stable" : "unstable",
			 in->promote_unstable ? "_promoted" : "",
			 in->object_cache ? "_cached" : "",
			 in->grown ? "_grown" : "");
		add(names[i], check_write, &write_rows[i]);
	}
	for (i = 0; i < COMMIT_ROWS; i++) {
		const struct commit_row *row = &commit_rows[i];
		char *name = names[WRITE_ROWS + i];

		snprintf(name, sizeof(names[0]), "%s_commit%s%s",
			 mode_names[row->mode],
			 row->object_cache ? "_cached" : "",
			 row->grown ? "_grown" : "");
		add(name, check_commit, row);
	}
}
