/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include "unit.h"

#include "listing_order.h"

#define EXPORT 7
#define FILES 100

static uint64_t dir = 1; /* One for each test: the ring stays. */
static uint64_t places[FILES];
static uint64_t next[CASYNC_NEXT_FILES];

static uint64_t ino_of(unsigned int number)
{
	return dir * 1000 + number;
}

static struct casync_listed_walk walk_from(bool beginning)
{
	return (struct casync_listed_walk){
		.dir = dir, .export_id = EXPORT, .first = beginning};
}

static void list(struct casync_listed_walk *walk, unsigned int first,
		 unsigned int count)
{
	unsigned int i;

	for (i = first; i < first + count; i++)
		places[i] = casync_listing_order_note(walk, ino_of(i));
}

static void list_all(void)
{
	struct casync_listed_walk walk;

	dir++;
	walk = walk_from(true);
	list(&walk, 0, FILES);
	casync_listing_order_end(&walk);
}

static unsigned int read_file(unsigned int number)
{
	return casync_listing_order_read(places[number], EXPORT, ino_of(number),
					 next);
}

/* Nobody's business: READs of files that are in no order. */
static void read_others(unsigned int count)
{
	uint64_t place;
	struct casync_listed_walk walk = {.dir = 0, .export_id = EXPORT};

	while (count-- != 0) {
		place = casync_listing_order_note(&walk, 1);
		(void)casync_listing_order_read(place, EXPORT, 1, next);
	}
}

TEST(next_files_in_order)
{
	unsigned int i, from = 1, count;

	list_all();
	for (i = 0; i < FILES; i++) {
		count = read_file(i);
		/* Each one once, up to the end, and all in order. */
		while (count-- != 0)
			assert_int_equal(next[count], ino_of(from + count));
		from = i == 0	? 1 + CASYNC_NEXT_FILES / 4
		       : i == 1 ? 2 + CASYNC_NEXT_FILES / 2
				: i + 1 + CASYNC_NEXT_FILES;
	}
}

TEST(window_grows)
{
	list_all();
	assert_int_equal(read_file(0), CASYNC_NEXT_FILES / 4);
	/* One of them is left behind at each step. */
	assert_int_equal(read_file(1), CASYNC_NEXT_FILES / 4 + 1);
	assert_int_equal(read_file(2), CASYNC_NEXT_FILES / 2 + 1);
	assert_int_equal(read_file(3), 1);
	assert_int_equal(next[0], ino_of(3 + CASYNC_NEXT_FILES));
	/* Named or read is enough. */
	assert_int_equal(read_file(3), 0);
}

TEST(another_order_names_nothing)
{
	unsigned int i;

	list_all();
	for (i = FILES - 1; i > 0; i--)
		assert_int_equal(read_file(i), 0);
	list_all();
	for (i = 1; i < FILES; i += 2)
		assert_int_equal(read_file(i), 0);
	/* The file before it, and the one before that came later. */
	list_all();
	assert_int_equal(read_file(11), 0);
	assert_int_equal(read_file(10), 0);
	assert_int_equal(read_file(12), 0);
	/* Two are not enough behind the beginning. */
	list_all();
	assert_int_equal(read_file(20), 0);
	assert_int_equal(read_file(21), 0);
	assert_int_equal(read_file(22), CASYNC_NEXT_FILES);
}

TEST(long_ago_is_no_order)
{
	list_all();
	(void)read_file(20);
	(void)read_file(21);
	read_others(CASYNC_LISTED_RECENT);
	assert_int_equal(read_file(22), 0);
	(void)read_file(23);
	read_others(CASYNC_LISTED_RECENT - 1);
	assert_int_equal(read_file(24), CASYNC_NEXT_FILES);
}

TEST(listings_at_once_do_not_mix)
{
	struct casync_listed_walk walk, other;
	unsigned int i;

	dir++;
	walk = walk_from(true);
	other = walk_from(true);
	other.dir = 0;
	for (i = 0; i < FILES; i++) {
		list(&walk, i, 1);
		(void)casync_listing_order_note(&other, 1);
	}
	assert_int_equal(read_file(0), CASYNC_NEXT_FILES / 4);
	assert_int_equal(next[CASYNC_NEXT_FILES / 4 - 1],
			 ino_of(CASYNC_NEXT_FILES / 4));
}

/* MDCACHE lists a folder in pieces, others' lie between. */
TEST(listing_goes_on)
{
	struct casync_listed_walk walk, other;

	dir++;
	walk = walk_from(true);
	list(&walk, 0, 50);
	other = walk_from(true);
	other.dir = 0;
	(void)casync_listing_order_note(&other, 1);
	walk = walk_from(false);
	list(&walk, 50, 50);
	casync_listing_order_end(&walk);
	(void)read_file(48);
	(void)read_file(49);
	assert_int_equal(read_file(50), CASYNC_NEXT_FILES);
	(void)read_file(47);
	(void)read_file(48);
	assert_int_equal(read_file(49), 0);
	list_all();
	(void)read_file(FILES - 3);
	(void)read_file(FILES - 2);
	assert_int_equal(read_file(FILES - 1), 0);
}

TEST(place_of_another_names_nothing)
{
	list_all();
	assert_int_equal(casync_listing_order_read(0, EXPORT, ino_of(0), next),
			 0);
	assert_int_equal(casync_listing_order_read(places[0], EXPORT + 1,
						   ino_of(0), next),
			 0);
	assert_int_equal(
		casync_listing_order_read(places[0], EXPORT, ino_of(1), next),
		0);
	/* The ring has come round. */
	read_others(CASYNC_LISTED);
	assert_int_equal(read_file(0), 0);
	assert_int_equal(read_file(1), 0);
}
