/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "fsal.h"

#include "clock.h"
#include "journal.h"
#include "mount.h"

/*
 * Wait until all that this client has done to an inode is in the MDS' journal.
 * An inode that is gone needs no journal.  -ETIME: the mount has no client now.
 *
 * libcephfs waits for the requests on an Inode that the MDS has answered before
 * it has journaled them.  They hold the Inode in its memory, so the lookup does
 * not ask the MDS.
 */
static int journal_sync(struct casync_mount *mount, uint64_t ino)
{
	vinodeno_t vino = {.ino.val = ino, .snapid.val = CEPH_NOSNAP};
	struct ceph_mount_info *ceph;
	struct Inode *inode;
	int rc;

	if (!casync_guard_enter(&mount->guard))
		return -ETIME;
	ceph = mount->client->ceph;
	rc = ceph_ll_lookup_vino(ceph, vino, &inode);
	if (rc == 0) {
		rc = ceph_ll_sync_inode(ceph, inode, 0);
		ceph_ll_put(ceph, inode);
	} else if (rc == -ENOENT || rc == -EINVAL || rc == -ESTALE) {
		rc = 0; /* removed: nothing of it has to last */
	}
	casync_session_note_error(mount, -rc);
	casync_guard_leave(&mount->guard);
	return rc;
}

/*
 * Keep a directory until the job takes it.
 *
 * All accesses to `changed` and `pending` are sequentially consistent.  The
 * job clears `pending` before it takes the directories.  So a caller whose
 * directory it does not take any more finds `pending` cleared, and sets it.
 */
static void journal_note(struct casync_journal *journal, uint64_t ino)
{
	unsigned int i, at;
	uint64_t there;

	for (i = 0; i < CASYNC_JOURNAL_DIRECTORIES; i++) {
		at = (ino + i) % CASYNC_JOURNAL_DIRECTORIES;
		there = __atomic_load_n(&journal->changed[at],
					__ATOMIC_SEQ_CST);
		if (there == 0 &&
		    __atomic_compare_exchange_n(&journal->changed[at], &there,
						ino, false, __ATOMIC_SEQ_CST,
						__ATOMIC_SEQ_CST))
			return;
		if (there == ino)
			return;
	}
}

static bool journal_may_wait(const struct casync_journal *journal)
{
	return !__atomic_load_n(&journal->new_file, __ATOMIC_SEQ_CST) ||
	       __atomic_load_n(&journal->names, __ATOMIC_RELAXED) >
		       CASYNC_JOURNAL_FEW;
}

static struct casync_lane *journal_lane(struct casync_mount *mount)
{
	return &mount->lanes[CASYNC_LANE_METADATA];
}

static bool journal_has(const struct casync_journal *journal, uint64_t ino)
{
	unsigned int i;

	for (i = 0; i < CASYNC_JOURNAL_DIRECTORIES; i++)
		if (__atomic_load_n(&journal->changed[i], __ATOMIC_SEQ_CST) ==
		    ino)
			return true;
	return false;
}

/*
 * An MDS that is asked writes all that it has.  So the question for a second
 * directory of the same rank finds nothing to wait for, unless names in it were
 * changed meanwhile.  Then the question would make the MDS write a second time.
 * It is put in the next pass.  Each pass begins at another place.  So a
 * directory that is changed all the time comes first once in eight passes at
 * least.
 */
static void journal_ask(struct casync_mount *mount)
{
	struct casync_journal *journal = &mount->journal;
	uint64_t taken[CASYNC_JOURNAL_DIRECTORIES];
	bool asked = false;
	unsigned int i;
	uint64_t ino;
	int rc;

	__atomic_store_n(&journal->names, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&journal->new_file, false, __ATOMIC_SEQ_CST);
	__atomic_store_n(&journal->pending, false, __ATOMIC_SEQ_CST);
	for (i = 0; i < CASYNC_JOURNAL_DIRECTORIES; i++)
		taken[i] = __atomic_exchange_n(&journal->changed[i], 0,
					       __ATOMIC_SEQ_CST);
	journal->first++;
	for (i = 0; i < CASYNC_JOURNAL_DIRECTORIES; i++) {
		ino = taken[(journal->first + i) % CASYNC_JOURNAL_DIRECTORIES];
		if (ino == 0 || (asked && journal_has(journal, ino)) ||
		    casync_lane_is_stopping(journal_lane(mount)))
			continue;
		asked = true;
		rc = journal_sync(mount, ino);
		if (rc < 0)
			LogDebug(COMPONENT_FSAL,
				 "mount %s: directory %" PRIu64 ": %s",
				 mount->session.client, ino, strerror(-rc));
	}
}

static void journal_run(struct casync_work *work);

static void journal_queue(struct casync_mount *mount)
{
	struct casync_journal *journal = &mount->journal;

	journal->work.run = journal_run;
	casync_lane_submit_in(journal_lane(mount), &journal->work,
			      journal_may_wait(journal) ? CASYNC_JOURNAL_MS
							: 0);
}

/* All of these flags are sequentially consistent.  The job gives its turn back
 * before it looks for a change; who notes a change looks for the turn after
 * that.  So one of the two finds the other's. */
static bool journal_takes_turn(struct casync_journal *journal)
{
	return __atomic_load_n(&journal->pending, __ATOMIC_SEQ_CST) &&
	       !__atomic_exchange_n(&journal->under_way, true,
				    __ATOMIC_SEQ_CST);
}

static void journal_run(struct casync_work *work)
{
	struct casync_mount *mount =
		container_of(work, struct casync_mount, journal.work);
	struct casync_journal *journal = &mount->journal;

	journal_ask(mount);
	__atomic_store_n(&journal->under_way, false, __ATOMIC_SEQ_CST);
	if (journal_takes_turn(journal))
		journal_queue(mount);
}

void casync_journal_changed(struct casync_mount *mount, uint64_t ino,
			    bool new_file)
{
	struct casync_journal *journal = &mount->journal;
	bool fresh_file;

	__atomic_add_fetch(&journal->names, 1, __ATOMIC_RELAXED);
	journal_note(journal, ino);
	if (!__atomic_load_n(&journal->pending, __ATOMIC_SEQ_CST))
		__atomic_store_n(&journal->pending, true, __ATOMIC_SEQ_CST);
	fresh_file = new_file && !__atomic_exchange_n(&journal->new_file, true,
						      __ATOMIC_SEQ_CST);
	if (journal_takes_turn(journal))
		journal_queue(mount);
	else if (fresh_file && !journal_may_wait(journal))
		casync_lane_hasten(journal_lane(mount), &journal->work);
}
