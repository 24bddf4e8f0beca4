/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <pthread.h>

#include "clock.h"
#include "listing_order.h"

/* How far the files before and behind one of a listing are looked for: other
 * folders may have blocks between. */
#define LOOK (4 * CASYNC_LISTED_BLOCK)

#define NS_PER_S UINT64_C(1000000000)

struct listed {
	uint64_t place; /* 0: none */
	uint64_t ino;
	uint64_t dir;
	uint32_t turn; /* When it was read from its beginning; 0: never. */
	uint32_t not_before_s; /* Not to be named; CLOCK_MONOTONIC. */
	uint16_t export_id;
	bool first, last; /* Of its listing. */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct listed ring[CASYNC_LISTED];
static uint64_t next_block = CASYNC_LISTED_BLOCK;
static uint32_t turns; /* READs of a beginning. */

static struct listed *listing_order_at_locked(uint64_t place)
{
	struct listed *file = &ring[place % CASYNC_LISTED];

	return file->place == place ? file : NULL;
}

uint64_t casync_listing_order_note(struct casync_listed_walk *walk,
				   uint64_t ino)
{
	uint64_t place;

	pthread_mutex_lock(&lock);
	if (walk->next == walk->end) {
		walk->next = next_block;
		next_block += CASYNC_LISTED_BLOCK;
		walk->end = next_block;
	}
	place = walk->next++;
	ring[place % CASYNC_LISTED] = (struct listed){
		.place = place,
		.ino = ino,
		.dir = walk->dir,
		.export_id = walk->export_id,
		.first = walk->first,
	};
	walk->first = false;
	pthread_mutex_unlock(&lock);
	return place;
}

void casync_listing_order_end(const struct casync_listed_walk *walk)
{
	struct listed *file;

	if (walk->end == 0)
		return;
	pthread_mutex_lock(&lock);
	file = listing_order_at_locked(walk->next - 1);
	if (file != NULL)
		file->last = true;
	pthread_mutex_unlock(&lock);
}

static bool listing_order_is_same_listing(const struct listed *one,
					  const struct listed *other)
{
	return one->dir == other->dir && one->export_id == other->export_id;
}

/* The file before or behind one, in its listing. */
static struct listed *listing_order_neighbour_locked(const struct listed *file,
						     int64_t step)
{
	struct listed *other;
	unsigned int i;

	if (step < 0 ? file->first : file->last)
		return NULL;
	for (i = 1; i <= LOOK; i++) {
		other = listing_order_at_locked(file->place +
						(uint64_t)(step * (int64_t)i));
		if (other != NULL && listing_order_is_same_listing(file, other))
			return other;
	}
	return NULL;
}

/* How many next files are worth it: the table of listing_order.h. */
static unsigned int listing_order_worth_locked(const struct listed *file)
{
	unsigned int worth = CASYNC_NEXT_FILES / 4;
	const struct listed *before;
	uint32_t turn = turns + 1; /* That of this READ. */

	while (!file->first && worth < CASYNC_NEXT_FILES) {
		before = listing_order_neighbour_locked(file, -1);
		if (before == NULL || before->turn == 0 ||
		    turn - before->turn - 1 >= CASYNC_LISTED_RECENT)
			return 0;
		turn = before->turn;
		file = before;
		worth *= 2;
	}
	return worth;
}

/* Also where a file is not named again: the window is of the listing. */
static unsigned int
listing_order_name_next_locked(const struct listed *file, unsigned int worth,
			       uint32_t now_s, uint64_t next[CASYNC_NEXT_FILES])
{
	unsigned int count = 0;
	struct listed *behind;

	while (worth-- != 0) {
		behind = listing_order_neighbour_locked(file, 1);
		if (behind == NULL)
			break;
		if (behind->not_before_s <= now_s) {
			behind->not_before_s = now_s + CASYNC_LISTED_AGAIN_S;
			next[count++] = behind->ino;
		}
		file = behind;
	}
	return count;
}

unsigned int casync_listing_order_read(uint64_t place, uint16_t export_id,
				       uint64_t ino,
				       uint64_t next[CASYNC_NEXT_FILES])
{
	uint32_t now_s = (uint32_t)(casync_clock_ns() / NS_PER_S);
	unsigned int count = 0;
	struct listed *file;

	if (place == 0)
		return 0;
	pthread_mutex_lock(&lock);
	file = listing_order_at_locked(place);
	if (file != NULL && file->ino == ino && file->export_id == export_id) {
		count = listing_order_name_next_locked(
			file, listing_order_worth_locked(file), now_s, next);
		file->turn = ++turns;
		file->not_before_s = now_s + CASYNC_LISTED_AGAIN_S;
	}
	pthread_mutex_unlock(&lock);
	return count;
}
