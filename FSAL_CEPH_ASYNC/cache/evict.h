/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file evict.h
 * @brief Makes room in the budget, and allocates buffers in it
 * (casync_evict_new_buffer() of cache.h).
 *
 * Free buffers that stayed in memory go first; then pages that nobody can find
 * any more (detached indexes); then what the policy chooses.
 *
 * A file is forgotten by one pointer.  Its index is emptied here: the first 16
 * buffers at once, which is all of most files, and the rest when memory is
 * needed, 16 at a time.  So no WRITE waits for a large file to be freed.
 *
 * **Locks.**  A victim is taken out of its queue under the shard's lock; then,
 * without that, out of its index under the file's lock.  A buffer has a
 * reference of the queue and one of the index, and each is given back by
 * whoever removes it there.  So it does not matter who is first.  Its index
 * lives as long as the buffer is in it, attached or not, and its lock has a
 * number: nothing of the file itself is needed.  The lock of the detached
 * indexes is a leaf.
 */
#ifndef CASYNC_CACHE_EVICT_H
#define CASYNC_CACHE_EVICT_H

#include <stdbool.h>
#include <stdint.h>

#include "buffer.h"
#include "index.h"

/** Evict until this many bytes are free.  @return Whether they are. */
bool casync_evict_make_room(uint64_t bytes);

/** Evict until the budget is met, as far as replies allow; with a budget of 0
 * everything.  Called after it was stored. */
void casync_evict_to_budget(void);

/** Detach a file's index; the file's lock is held.  @return For
 * casync_evict_free_detached(); NULL if there is none. */
struct casync_cache_index *casync_evict_detach(struct casync_cache_file *file);

/** Empty a detached index or NULL, now or later, and count why.  No locks. */
void casync_evict_free_detached(struct casync_cache_index *index,
				enum casync_cache_loss loss);

/** Give up buffers that have lost their pages: a list linked by dropped, with
 * the index' references.  Without locks. */
void casync_evict_drop_buffers(struct casync_cache_buffer *dropped);

#endif /* CASYNC_CACHE_EVICT_H */
