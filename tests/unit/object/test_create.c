/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>

#include "unit.h"

#include "fsal.h"
#include "create.h"
#include "errors.h"
#include "export.h"
#include "fake_libcephfs.h"
#include "fd.h"
#include "layout.h"
#include "obj_ops.h"
#include "object.h"
#include "stub_ganesha.h"
#include "stub_mount.h"

/* What the file under test has called, in one letter each. */
static char calls[16];
static fsal_status_t set_status, get_status;
static int remove_rc, changed_rc, changed;
static attrmask_t set_mask;
static struct state_t *set_state;
static const UserPerm *removed_as;
static const char *removed_name;

static struct casync_export exp;
static struct casync_object dir, obj;
static bool exclusive, laid_out;
static char verifier[] = "verifier";
static struct state_t open_state;
static char root_perms;

static void note(char call)
{
	size_t length = strlen(calls);

	assert_true(length < sizeof(calls) - 1);
	calls[length] = call;
}

fsal_status_t casync_setattr2(struct fsal_obj_handle *obj_hdl, bool bypass,
			      struct state_t *its_state,
			      struct fsal_attrlist *attrib_set)
{
	assert_ptr_equal(obj_hdl, &obj.handle);
	assert_false(bypass);
	note('s');
	set_mask = attrib_set->valid_mask;
	set_state = its_state;
	return set_status;
}

fsal_status_t casync_getset_set_verifier(struct fsal_obj_handle *obj_hdl,
					 const struct fsal_attrlist *verifier)
{
	assert_ptr_equal(obj_hdl, &obj.handle);
	note('v');
	set_mask = verifier->valid_mask;
	return set_status;
}

int casync_namespace_changed(struct casync_object *its_dir,
			     struct casync_object *made)
{
	assert_ptr_equal(its_dir, &dir);
	assert_ptr_equal(made, laid_out ? NULL : &obj);
	changed++;
	return changed_rc;
}

fsal_status_t casync_getattrs(struct fsal_obj_handle *obj_hdl,
			      struct fsal_attrlist *attrs_out)
{
	assert_ptr_equal(obj_hdl, &obj.handle);
	note('g');
	if (!FSAL_IS_ERROR(get_status))
		attrs_out->valid_mask = ATTR_MODE | ATTR_OWNER;
	return get_status;
}

fsal_status_t casync_close2(struct fsal_obj_handle *obj_hdl,
			    struct state_t *its_state)
{
	assert_ptr_equal(obj_hdl, &obj.handle);
	assert_ptr_equal(its_state, &open_state);
	note('c');
	return fsalstat(ERR_FSAL_NO_ERROR, 0);
}

void casync_object_release(struct fsal_obj_handle *obj_hdl)
{
	assert_ptr_equal(obj_hdl, &obj.handle);
	note('r');
	/* The memory is gone: nothing of it may be used from here on. */
	memset(&obj, 0xEE, sizeof(obj));
}

/* Whether the file has the verifier. */
static bool same;

bool check_verifier_attrlist(struct fsal_attrlist *attrs,
			     fsal_verifier_t its_verifier, bool trunc_verif)
{
	(void)attrs;
	assert_memory_equal(its_verifier, verifier, CASYNC_VERIFIER_BYTES);
	assert_false(trunc_verif);
	return same;
}

/* Neither ACL nor locations are asked for. */
void nfs4_fs_locations_release(fsal_fs_locations_t *locations)
{
	assert_null(locations);
}

void nfs4_acl_release_entry(fsal_acl_t *pacl)
{
	assert_null(pacl);
}

static int layout_rc;
static bool layout_changes;

int casync_layout_apply(struct casync_layout *layout,
			const struct casync_object *its_dir,
			const struct casync_object *file, bool *changed)
{
	assert_ptr_equal(layout, &exp.layout);
	assert_null(its_dir);
	assert_ptr_equal(file, &obj);
	note('a');
	*changed = layout_changes;
	return layout_rc;
}

void casync_fd_read_layout(struct casync_object *its_obj)
{
	assert_ptr_equal(its_obj, &obj);
	note('f');
}

/* The rest of the file makes objects, which is not what is tested here. */
void casync_object_from_lookup(struct Inode *inode,
			       const struct ceph_statx *stx,
			       struct fsal_obj_handle **handle,
			       struct fsal_attrlist *attrs)
{
	(void)inode;
	(void)stx;
	(void)handle;
	(void)attrs;
	fail();
}

/* What has the name when it is looked up; NULL: nothing. */
static const uint64_t *found;
static uint64_t made_ino, other_ino;

int ceph_ll_lookup(struct ceph_mount_info *cmount, Inode *parent,
		   const char *name, Inode **out, struct ceph_statx *stx,
		   unsigned want, unsigned flags, const UserPerm *perms)
{
	assert_ptr_equal(cmount, stub_mount.client->ceph);
	assert_ptr_equal(parent, dir.inode);
	assert_string_equal(name, "new");
	assert_ptr_equal(perms, exp.root_perms);
	assert_true(want & CEPH_STATX_INO);
	assert_true(flags & AT_SYMLINK_NOFOLLOW);
	note('l');
	if (found == NULL)
		return -ENOENT;
	stx->stx_ino = *found;
	*out = fake.inode;
	fake.inode_refs++;
	return 0;
}

static int removed(char call, struct Inode *in, const char *name,
		   const UserPerm *perms)
{
	assert_ptr_equal(in, dir.inode);
	note(call);
	removed_name = name;
	removed_as = perms;
	return remove_rc;
}

int ceph_ll_unlink(struct ceph_mount_info *cmount, struct Inode *in,
		   const char *name, const UserPerm *perms)
{
	assert_ptr_equal(cmount, stub_mount.client->ceph);
	return removed('u', in, name, perms);
}

int ceph_ll_rmdir(struct ceph_mount_info *cmount, struct Inode *in,
		  const char *name, const UserPerm *perms)
{
	assert_ptr_equal(cmount, stub_mount.client->ceph);
	return removed('d', in, name, perms);
}

static const fsal_status_t good = {ERR_FSAL_NO_ERROR, 0};
static const fsal_status_t refused = {ERR_FSAL_PERM, EPERM};

/* Each test has a minute of its own: a line comes once in it. */
static time_t minutes;

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	int rc = __real_clock_gettime(clock, now);

	now->tv_sec += 60 * minutes;
	return rc;
}

static int up(void **unused)
{
	minutes += 2;
	stub_reset();
	memset(calls, 0, sizeof(calls));
	memset(&exp, 0, sizeof(exp));
	memset(&dir, 0, sizeof(dir));
	memset(&obj, 0, sizeof(obj));
	stub_mount_reset();
	exp.mount = &stub_mount;
	exp.root_perms = (UserPerm *)&root_perms;
	dir.exp = obj.exp = &exp;
	dir.inode = (struct Inode *)&dir;
	obj.handle.type = REGULAR_FILE;
	made_ino = 0x10000000500;
	other_ino = 0x10000000501;
	obj.handle.fileid = made_ino;
	found = &made_ino;
	set_status = get_status = good;
	remove_rc = changed_rc = changed = layout_rc = 0;
	same = layout_changes = false;
	obj.id.ino = made_ino;
	set_mask = 0;
	set_state = NULL;
	exclusive = laid_out = false;
	removed_as = NULL;
	removed_name = NULL;
	return 0;
}

#define CASE(test) TEST_WITH(test, up, NULL)

static fsal_status_t finish(attrmask_t asked_for, struct state_t *its_state,
			    struct fsal_attrlist *attrs_out)
{
	const struct casync_created made = {.dir = &dir,
					    .name = "new",
					    .obj = &obj,
					    .state = its_state,
					    .verifier = exclusive ? verifier
								  : NULL,
					    .laid_out = laid_out};
	struct fsal_attrlist attrs_in = {.valid_mask = asked_for};
	fsal_status_t status =
		casync_create_finish(&made, ATTR_MODE, &attrs_in, attrs_out);

	/* The caller's list goes back as it came. */
	assert_int_equal(attrs_in.valid_mask, asked_for);
	return status;
}

CASE(nothing_left_to_set)
{
	struct fsal_attrlist out = {.valid_mask = ATTR_MODE};

	assert_int_equal(finish(ATTR_MODE, NULL, &out).major,
			 ERR_FSAL_NO_ERROR);
	assert_string_equal(calls, "");
	assert_int_equal(changed, 1);
	assert_int_equal(out.valid_mask, ATTR_MODE);
}

/* The flush of the directory does not wait for its layout. */
CASE(file_with_a_layout_stays_new)
{
	laid_out = true;
	assert_int_equal(finish(ATTR_MODE, NULL, NULL).major,
			 ERR_FSAL_NO_ERROR);
	assert_int_equal(changed, 1);
}

CASE(name_that_may_be_lost_is_undone)
{
	changed_rc = -EIO;
	assert_int_equal(finish(ATTR_MODE, NULL, NULL).major, ERR_FSAL_IO);
	assert_string_equal(calls, "rlu");
}

CASE(rest_is_set_and_read_again)
{
	struct fsal_attrlist out = {.valid_mask = ATTR_MODE};

	assert_int_equal(
		finish(ATTR_MODE | ATTR_OWNER, &open_state, &out).major,
		ERR_FSAL_NO_ERROR);
	assert_string_equal(calls, "sg");
	assert_int_equal(set_mask, ATTR_OWNER);
	assert_ptr_equal(set_state, &open_state);
	assert_int_equal(out.valid_mask, ATTR_MODE | ATTR_OWNER);
}

CASE(nobody_wants_attributes)
{
	assert_int_equal(finish(ATTR_OWNER, NULL, NULL).major,
			 ERR_FSAL_NO_ERROR);
	assert_string_equal(calls, "s");
}

/* The object exists: unread attributes do not undo it, and old ones do not
 * pass for new ones. */
CASE(attributes_that_cannot_be_read_do_not_fail_it)
{
	struct fsal_attrlist out = {
		.request_mask = ATTR_MODE | ATTR_RDATTR_ERR,
		.valid_mask = ATTR_MODE,
	};

	get_status = refused;
	assert_int_equal(finish(ATTR_OWNER, NULL, &out).major,
			 ERR_FSAL_NO_ERROR);
	assert_string_equal(calls, "sg");
	assert_int_equal(out.valid_mask, ATTR_RDATTR_ERR);

	out.request_mask = ATTR_MODE;
	out.valid_mask = ATTR_MODE;
	memset(calls, 0, sizeof(calls));
	assert_int_equal(finish(ATTR_OWNER, NULL, &out).major,
			 ERR_FSAL_NO_ERROR);
	assert_int_equal(out.valid_mask, 0);
}

#define VERIFIER (ATTR_ATIME | ATTR_MTIME)

/* The client forgets it with the answer, so nobody waits for the journal. */
CASE(verifier_alone_is_not_journaled)
{
	struct fsal_attrlist out = {.valid_mask = ATTR_MODE};

	exclusive = true;
	assert_int_equal(finish(ATTR_MODE | VERIFIER, &open_state, &out).major,
			 ERR_FSAL_NO_ERROR);
	assert_string_equal(calls, "vg");
	assert_int_equal(set_mask, VERIFIER);
}

/* What the client asked for lasts when it is answered. */
CASE(attributes_are_journaled_with_the_verifier)
{
	exclusive = true;
	(void)finish(ATTR_OWNER | VERIFIER, &open_state, NULL);
	assert_string_equal(calls, "s");
	assert_int_equal(set_mask, ATTR_OWNER | VERIFIER);
}

CASE(times_that_are_no_verifier_are_journaled)
{
	(void)finish(VERIFIER, &open_state, NULL);
	assert_string_equal(calls, "s");
}

CASE(verifier_that_cannot_be_set_undoes_the_file)
{
	exclusive = true;
	set_status = refused;
	assert_int_equal(finish(VERIFIER, &open_state, NULL).major,
			 ERR_FSAL_PERM);
	assert_string_equal(calls, "vcrlu");
}

static void check_undone(object_file_type_t type, struct state_t *its_state,
			 const char *expected)
{
	obj.handle.type = type;
	set_status = refused;
	memset(calls, 0, sizeof(calls));
	assert_int_equal(finish(ATTR_OWNER, its_state, NULL).major,
			 ERR_FSAL_PERM);
	assert_string_equal(calls, expected);
	assert_string_equal(removed_name, "new");
	assert_ptr_equal(removed_as, exp.root_perms);
	up(NULL);
}

CASE(what_fails_is_undone_as_root)
{
	check_undone(REGULAR_FILE, &open_state, "scrlu");
	check_undone(REGULAR_FILE, NULL, "srlu");
	check_undone(DIRECTORY, NULL, "srld");
	check_undone(FIFO_FILE, NULL, "srlu");
	check_undone(SYMBOLIC_LINK, NULL, "srlu");
}

/* The first error is the answer; that of the undo is only logged. */
CASE(undo_that_fails_changes_no_answer)
{
	remove_rc = -ETIMEDOUT;
	set_status = refused;
	assert_int_equal(finish(ATTR_OWNER, NULL, NULL).major, ERR_FSAL_PERM);
	assert_string_equal(calls, "srlu");
	assert_int_equal(stub.warnings, 1);
	/* Who sends this again finds a file, as if it was another's. */
	assert_false(stub_mount.unfinished.any);
}

/* Another client renames a file onto the name, before it is undone. */
CASE(file_that_was_renamed_onto_it_stays)
{
	found = &other_ino;
	set_status = refused;
	assert_int_equal(finish(ATTR_OWNER, NULL, NULL).major, ERR_FSAL_PERM);
	assert_string_equal(calls, "srl");
	assert_int_equal(fake.inode_refs, 0);
	assert_int_equal(stub.warnings, 1);
}

CASE(name_that_is_gone_needs_no_removal)
{
	found = NULL;
	set_status = refused;
	assert_int_equal(finish(ATTR_OWNER, NULL, NULL).major, ERR_FSAL_PERM);
	assert_string_equal(calls, "srl");
	assert_int_equal(stub.warnings, 1);
}

static bool waits(void)
{
	return casync_unfinished_has(&stub_mount.unfinished, made_ino,
				     verifier);
}

static void leave_it(void)
{
	casync_unfinished_add(&stub_mount.unfinished, made_ino, verifier);
}

static fsal_errors_t check_owner(void)
{
	struct fsal_attrlist attrs_in = {.valid_mask = ATTR_MODE | VERIFIER};
	struct casync_created its = {.obj = &obj, .verifier = verifier};
	fsal_status_t status = casync_create_check_owner(&its, &attrs_in);

	assert_int_equal(attrs_in.valid_mask, ATTR_MODE | VERIFIER);
	return status.major;
}

static bool may_open(void)
{
	return casync_check_verifier(&obj.handle, verifier);
}

CASE(exclusive_create_that_is_cut_off_is_noted)
{
	exclusive = true;
	remove_rc = -CASYNC_EBLOCKLISTED;
	set_status = refused;
	assert_int_equal(finish(VERIFIER, NULL, NULL).major, ERR_FSAL_PERM);
	assert_string_equal(calls, "vrlu");
	assert_true(waits());
}

CASE(exclusive_create_that_lost_its_name_is_not_noted)
{
	exclusive = true;
	set_status = refused;
	found = NULL;
	assert_int_equal(finish(VERIFIER, NULL, NULL).major, ERR_FSAL_PERM);
	assert_false(waits());

	up(NULL);
	exclusive = true;
	set_status = refused;
	found = &other_ino;
	assert_int_equal(finish(VERIFIER, NULL, NULL).major, ERR_FSAL_PERM);
	assert_false(waits());
}

CASE(file_of_another_is_in_the_way)
{
	assert_false(may_open());
	assert_int_equal(check_owner(), ERR_FSAL_EXIST);
	assert_string_equal(calls, "gg");
}

CASE(create_sent_again_finds_its_file)
{
	same = true;
	assert_true(may_open());
	assert_int_equal(check_owner(), ERR_FSAL_NO_ERROR);
	assert_string_equal(calls, "gg");
}

/* Ganesha would make EEXIST of it.  With NFSv4 it may not ask again. */
CASE(error_is_told_by_the_open)
{
	struct req_op_context context = {.nfs_vers = NFS_V3};

	get_status = fsalstat(ERR_FSAL_DELAY, EAGAIN);
	op_ctx = &context;
	assert_true(may_open());
	assert_int_equal(check_owner(), ERR_FSAL_DELAY);
	context.nfs_vers = NFS_V4;
	assert_false(may_open());
	op_ctx = NULL;
}

CASE(file_that_is_gone_was_in_the_way)
{
	get_status = fsalstat(ERR_FSAL_STALE, ESTALE);
	assert_int_equal(check_owner(), ERR_FSAL_EXIST);
}

CASE(file_left_by_another_create_is_in_the_way)
{
	casync_unfinished_add(&stub_mount.unfinished, made_ino, "REIFIREV");
	casync_unfinished_add(&stub_mount.unfinished, other_ino, verifier);
	assert_false(may_open());
	assert_int_equal(check_owner(), ERR_FSAL_EXIST);
}

CASE(file_that_was_left_is_finished_once)
{
	leave_it();
	layout_changes = true;
	assert_true(may_open());
	assert_true(may_open());
	assert_int_equal(check_owner(), ERR_FSAL_NO_ERROR);
	assert_string_equal(calls, "gggafs");
	/* The mode may have been masked. */
	assert_int_equal(set_mask, VERIFIER);
	assert_false(may_open());
	assert_int_equal(check_owner(), ERR_FSAL_EXIST);
}

CASE(file_waits_on_after_an_error)
{
	leave_it();
	layout_rc = -CASYNC_EBLOCKLISTED;
	assert_int_equal(check_owner(), ERR_FSAL_IO);
	assert_string_equal(calls, "ga");
	assert_true(waits());

	layout_rc = 0;
	set_status = refused;
	assert_int_equal(check_owner(), ERR_FSAL_PERM);
	assert_true(waits());
}

/* A client has chosen the name, and can make creates fail as often as it
 * likes. */
CASE(what_is_left_is_logged_without_its_name)
{
	unsigned int i;

	for (i = 0; i < 3; i++) {
		(void)up(state);
		minutes -= 2;
		dir.handle.fileid = 77;
		set_status = refused;
		remove_rc = -EIO;
		(void)finish(ATTR_OWNER, NULL, NULL);
		assert_int_equal(stub.warnings, i == 0);
		assert_false(stub_warned("new"));
		assert_true(stub_warned("in directory 77") == (i == 0));
	}
}
