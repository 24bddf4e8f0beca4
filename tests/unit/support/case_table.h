/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file case_table.h
 * @brief Tests that are rows of a table.
 */
#ifndef CASE_TABLE_H
#define CASE_TABLE_H

#include "unit.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/** Put a test for each row of @p table where @p next points, and move that on.
 * A row has a name, and is the initial state of @p function. */
#define ADD_TABLE(next, table, function, up, down)                      \
	do {                                                            \
		size_t row;                                             \
		for (row = 0; row < COUNT(table); row++)                \
			*(next)++ = (struct CMUnitTest){                \
				.name = (table)[row].name,              \
				.test_func = (function),                \
				.setup_func = (up),                     \
				.teardown_func = (down),                \
				.initial_state = (void *)&(table)[row], \
			};                                              \
	} while (0)

#endif /* CASE_TABLE_H */
