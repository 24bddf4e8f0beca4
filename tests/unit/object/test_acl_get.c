/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * The NFSv4 ACL that a client sees of a file's POSIX ACL or mode; bytes that are
 * no ACL; and security labels.  test_acl.c has what is set.
 */
#include "config.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/acl.h>
#include <sys/stat.h>

#include "unit.h"

#include "fsal.h"
#include "export_mgr.h"
#include "nfs4_acls.h"
#include "nfs_exports.h"
#include "posix_acls.h"

#include "acl.h"
#include "export.h"

#define LABEL "security.selinux"
#define MOST 16 /* entries */

/* --- extended attributes */

struct value {
	int error; /* Negative: what a read says. */
	size_t size;
	uint8_t bytes[4096];
	unsigned int grows; /* So many reads find it larger than they asked. */
};

static struct value access_acl, default_acl, label;
static unsigned int reads;
static int set_result, remove_result;
static char set_name[64];
static uint8_t set_bytes[64];
static size_t set_size;

static struct value *value_of(const char *name)
{
	if (strcmp(name, ACL_EA_ACCESS) == 0)
		return &access_acl;
	if (strcmp(name, ACL_EA_DEFAULT) == 0)
		return &default_acl;
	assert_string_equal(name, LABEL);
	return &label;
}

int ceph_ll_getxattr(struct ceph_mount_info *cmount, struct Inode *in,
		     const char *name, void *value, size_t size,
		     const UserPerm *perms)
{
	struct value *of = value_of(name);

	reads++;
	if (of->error < 0)
		return of->error;
	if (size == 0)
		return (int)of->size;
	if (of->grows != 0) {
		of->grows--;
		of->size++;
	}
	if (size < of->size)
		return -ERANGE;
	memcpy(value, of->bytes, of->size);
	return (int)of->size;
}

int ceph_ll_setxattr(struct ceph_mount_info *cmount, struct Inode *in,
		     const char *name, const void *value, size_t size,
		     int flags, const UserPerm *perms)
{
	(void)snprintf(set_name, sizeof(set_name), "%s", name);
	set_size = size;
	if (size <= sizeof(set_bytes) && size != 0)
		memcpy(set_bytes, value, size);
	return set_result;
}

int ceph_ll_removexattr(struct ceph_mount_info *cmount, struct Inode *in,
			const char *name, const UserPerm *perms)
{
	assert_string_equal(name, ACL_EA_DEFAULT);
	return remove_result;
}

/* --- Ganesha */

__thread struct req_op_context *op_ctx;

static struct req_op_context request;
static struct gsh_export gsh_export;
static struct casync_export exp;
static fsal_acl_t nfs4;
static bool no_acl_is_made;

fsal_ace_t *nfs4_ace_alloc(int nace)
{
	return calloc((size_t)nace, sizeof(fsal_ace_t));
}

fsal_acl_t *nfs4_acl_new_entry(fsal_acl_data_t *acldata,
			       fsal_acl_status_t *status)
{
	if (no_acl_is_made) {
		free(acldata->aces);
		return NULL;
	}
	nfs4.aces = acldata->aces;
	nfs4.naces = acldata->naces;
	return &nfs4;
}

/* An ACL of three entries. */
acl_t fsal_acl_2_posix_acl(fsal_acl_t *p_fsalacl, acl_type_t type)
{
	return acl_from_text("u::rw,g::r,o::-");
}

size_t posix_acl_xattr_size(int count)
{
	return 4 + 8 * (size_t)count;
}

int posix_acl_2_xattr(acl_t acl, void *buf, size_t size)
{
	memset(buf, 'x', size);
	return (int)size;
}

static int up(void **state)
{
	memset(&access_acl, 0, sizeof(access_acl));
	memset(&default_acl, 0, sizeof(default_acl));
	memset(&label, 0, sizeof(label));
	access_acl.error = default_acl.error = label.error = -ENODATA;
	reads = 0;
	set_result = remove_result = 0;
	set_name[0] = '\0';
	set_size = 0;
	no_acl_is_made = false;
	gsh_export.options = 0;
	exp.keys.sec_label_xattr = LABEL;
	request.ctx_export = &gsh_export;
	request.fsal_export = &exp.export;
	op_ctx = &request;
	nfs4 = (fsal_acl_t){.naces = 0};
	return 0;
}

static int down(void **state)
{
	free(nfs4.aces);
	return 0;
}

/* --- POSIX ACLs in words: "u:7,u5:6,g:4,m:4,o:0" */

static unsigned int tag_of(char kind, bool named)
{
	switch (kind) {
	case 'u':
		return named ? ACL_USER : ACL_USER_OBJ;
	case 'g':
		return named ? ACL_GROUP : ACL_GROUP_OBJ;
	case 'm':
		return ACL_MASK;
	default:
		return ACL_OTHER;
	}
}

static void put_entry(struct value *value, unsigned int tag, unsigned int perm,
		      unsigned int id)
{
	struct acl_ea_entry entry = {.e_tag = htole16((uint16_t)tag),
				     .e_perm = htole16((uint16_t)perm),
				     .e_id = htole32(id)};

	memcpy(value->bytes + value->size, &entry, sizeof(entry));
	value->size += sizeof(entry);
}

static void begin_acl(struct value *value, uint32_t version)
{
	const uint32_t stored = htole32(version);

	value->error = 0;
	memcpy(value->bytes, &stored, sizeof(stored));
	value->size = sizeof(stored);
}

static void put_acl(struct value *value, const char *words)
{
	unsigned int id, perm;
	char kind;

	begin_acl(value, ACL_EA_VERSION);
	for (; words != NULL; words = strchr(words, ',')) {
		words += *words == ',';
		id = 0;
		kind = *words++;
		if (*words != ':')
			id = (unsigned int)strtoul(words, NULL, 10);
		words = strchr(words, ':');
		perm = (unsigned int)words[1] - '0';
		put_entry(value, tag_of(kind, id != 0), perm, id);
	}
}

/* --- NFSv4 ACLs in words: allow or deny, who, rights, "/" what the mask took */

#define WORDS_BYTES 1024

static void add(char *text, const char *word)
{
	size_t used = strlen(text);

	(void)snprintf(text + used, WORDS_BYTES - used, "%s", word);
}

static void add_who(char *text, const fsal_ace_t *ace)
{
	static const char *const special[] = {"?", "o", "g", "e"};
	char who[16];

	if (ace->iflag & FSAL_ACE_IFLAG_SPECIAL_ID)
		add(text, special[ace->who.uid & 3]);
	else {
		(void)snprintf(who, sizeof(who), "%s%u",
			       ace->flag & FSAL_ACE_FLAG_GROUP_ID ? "g" : "u",
			       ace->who.uid);
		add(text, who);
	}
}

static void add_right(char *text, const char *word, fsal_aceperm_t *left,
		      fsal_aceperm_t right)
{
	if ((*left & right) != right)
		return;
	add(text, word);
	*left &= ~right;
}

static void add_ace(char *text, const fsal_ace_t *ace)
{
	fsal_aceperm_t left = ace->perm;

	if (text[0] != '\0')
		add(text, " ");
	add(text, ace->type == FSAL_ACE_TYPE_DENY ? "D" : "A");
	add_who(text, ace);
	add(text, ":");
	add_right(text, "r", &left, FSAL_ACE_PERM_READ_DATA);
	add_right(text, "w", &left, FSAL_ACE_PERM_SET_DEFAULT_WRITE);
	add_right(text, "x", &left, FSAL_ACE_PERM_EXECUTE);
	add_right(text, "c", &left, FSAL_ACE_PERM_SET_OWNER_WRITE);
	add_right(text, "d", &left, FSAL_ACE_PERM_DELETE_CHILD);
	/* Each entry that allows has these, and no other has. */
	if (ace->type == FSAL_ACE_TYPE_ALLOW) {
		assert_int_equal(left & FSAL_ACE_PERM_SET_DEFAULT,
				 FSAL_ACE_PERM_SET_DEFAULT);
		left &= ~FSAL_ACE_PERM_SET_DEFAULT;
	}
	assert_int_equal(left, 0);
	if (ace->iflag & FSAL_ACE_FLAG_MASK_READ_DENY)
		add(text, "/r");
	if (ace->iflag & FSAL_ACE_FLAG_MASK_WRITE_DENY)
		add(text, "/w");
	if (ace->iflag & FSAL_ACE_FLAG_MASK_EXECUTE_DENY)
		add(text, "/x");
	if ((ace->flag & FSAL_ACE_FLAG_INHERIT) == FSAL_ACE_FLAG_INHERIT)
		add(text, "i");
}

static int get_acl(object_file_type_t type, uint16_t mode,
		   struct fsal_attrlist *attrs)
{
	const struct casync_acl_file file = {.type = type};
	const struct ceph_statx stx = {.stx_mode = mode};

	*attrs = (struct fsal_attrlist){0};
	return casync_acl_get(&file, &stx, attrs);
}

static const struct acl_case {
	const char *name;
	object_file_type_t type;
	uint16_t mode;
	const char *access, *inherited; /* NULL: none. */
	const char *seen;
} acls[] = {
	{"mode", REGULAR_FILE, S_IFREG | 0640, NULL, NULL, "Ao:rwc Ag:r Ae:"},
	{"mode_of_a_folder", DIRECTORY, S_IFDIR | 0751, NULL, NULL,
	 "Ao:rwxcd Ag:rx Ae:x"},
	{"mode_that_gives_others_more", REGULAR_FILE, S_IFREG | 0046, NULL,
	 NULL, "Do:rwc Ao: Dg:w Ag:r Ae:rw"},
	{"folder_that_gives_others_more", DIRECTORY, S_IFDIR | 0012, NULL, NULL,
	 "Do:wxcd Ao: Dg:wd Ag:x Ae:wd"},
	{"setuid_is_no_right", REGULAR_FILE, S_IFREG | 07700, NULL, NULL,
	 "Ao:rwxc Ag: Ae:"},
	{"acl_is_seen_and_not_the_mode", REGULAR_FILE, S_IFREG | 0777,
	 "u:6,g:4,o:0", NULL, "Ao:rwc Ag:r Ae:"},
	{"named_user_whom_the_mask_limits", REGULAR_FILE, S_IFREG | 0740,
	 "u:7,u1000:6,g:4,m:4,o:0", NULL, "Ao:rwxc Au1000:r/w Ag:r Ae:"},
	{"owner_has_less_than_a_named_user", REGULAR_FILE, S_IFREG | 0460,
	 "u:4,u1000:6,g:0,m:7,o:0", NULL, "Do:wc Ao:r Au1000:rw Ag: Ae:"},
	{"owner_has_less_than_a_group", REGULAR_FILE, S_IFREG | 0460,
	 "u:4,g:5,g70:2,m:7,o:0", NULL, "Do:wxc Ao:r Ag:rx Ag70:w Ae:"},
	{"user_is_in_a_group_that_may_more", REGULAR_FILE, S_IFREG | 0670,
	 "u:7,u1000:0,g:5,m:7,o:2", NULL,
	 "Ao:rwxc Du1000:rwx Au1000: Dg:w Ag:rx Ae:w"},
	{"others_may_what_the_mask_takes", REGULAR_FILE, S_IFREG | 0606,
	 "u:6,u1000:7,g:7,m:1,o:6", NULL,
	 "Do:x Ao:rwc Du1000:rw Au1000:x/r/w Dg:rw Ag:x/r/w Ae:rw"},
	{"mask_takes_execute", REGULAR_FILE, S_IFREG | 0660,
	 "u:6,g:7,g70:5,m:6,o:0", NULL, "Do:x Ao:rwc Ag:rw/x Ag70:r/x Ae:"},
	{"folder_has_two", DIRECTORY, S_IFDIR | 0750, NULL,
	 "u:7,u1000:5,g:5,m:5,o:0",
	 "Ao:rwxcd Ag:rx Ae: Ao:rwxcdi Au1000:rxi Ag:rxi Ae:i"},
	{"file_has_no_default", REGULAR_FILE, S_IFREG | 0600, NULL,
	 "u:7,g:5,o:0", "Ao:rwc Ag: Ae:"},
	{"symbolic_link_has_its_mode", SYMBOLIC_LINK, S_IFLNK | 0777,
	 "u:0,g:0,o:0", NULL, "Ao:rwxc Ag:rwx Ae:rwx"},
};

TEST_ROWS(check_acl, acls, up, down)
{
	const struct acl_case *c = *state;
	struct fsal_attrlist attrs;
	char text[WORDS_BYTES] = "";
	uint32_t i;

	if (c->access != NULL)
		put_acl(&access_acl, c->access);
	if (c->inherited != NULL)
		put_acl(&default_acl, c->inherited);
	assert_int_equal(get_acl(c->type, c->mode, &attrs), 0);
	assert_ptr_equal(attrs.acl, &nfs4);
	assert_true(attrs.valid_mask == ATTR_ACL);
	for (i = 0; i < nfs4.naces; i++)
		add_ace(text, &nfs4.aces[i]);
	assert_string_equal(text, c->seen);
}

/* --- what a client of the MDS has stored is no ACL */

static const struct bytes_case {
	const char *name;
	uint32_t version;
	unsigned int tags[6];
	int cut; /* So many bytes less. */
	int rc;
} bytes[] = {
	{"right",
	 ACL_EA_VERSION,
	 {ACL_USER_OBJ, ACL_GROUP_OBJ, ACL_OTHER},
	 0,
	 0},
	{"right_with_a_mask",
	 ACL_EA_VERSION,
	 {ACL_USER_OBJ, ACL_GROUP_OBJ, ACL_MASK, ACL_OTHER},
	 0,
	 0},
	{"right_with_two_of_a_kind",
	 ACL_EA_VERSION,
	 {ACL_USER_OBJ, ACL_GROUP_OBJ, ACL_GROUP, ACL_GROUP, ACL_MASK,
	  ACL_OTHER},
	 0,
	 0},
	{"other_version", 1, {ACL_USER_OBJ, ACL_GROUP_OBJ, ACL_OTHER}, 0, -EIO},
	{"half_an_entry",
	 ACL_EA_VERSION,
	 {ACL_USER_OBJ, ACL_GROUP_OBJ, ACL_OTHER},
	 4,
	 -EIO},
	{"half_a_header", ACL_EA_VERSION, {0}, 2, -EIO},
	{"header_alone", ACL_EA_VERSION, {0}, 0, -EIO},
	{"no_owner", ACL_EA_VERSION, {ACL_GROUP_OBJ, ACL_OTHER}, 0, -EIO},
	{"no_group", ACL_EA_VERSION, {ACL_USER_OBJ, ACL_OTHER}, 0, -EIO},
	{"no_others", ACL_EA_VERSION, {ACL_USER_OBJ, ACL_GROUP_OBJ}, 0, -EIO},
	{"two_owners",
	 ACL_EA_VERSION,
	 {ACL_USER_OBJ, ACL_USER_OBJ, ACL_GROUP_OBJ, ACL_OTHER},
	 0,
	 -EIO},
	{"two_masks",
	 ACL_EA_VERSION,
	 {ACL_USER_OBJ, ACL_GROUP_OBJ, ACL_MASK, ACL_MASK, ACL_OTHER},
	 0,
	 -EIO},
	{"named_user_without_a_mask",
	 ACL_EA_VERSION,
	 {ACL_USER_OBJ, ACL_USER, ACL_GROUP_OBJ, ACL_OTHER},
	 0,
	 -EIO},
	{"named_group_without_a_mask",
	 ACL_EA_VERSION,
	 {ACL_USER_OBJ, ACL_GROUP_OBJ, ACL_GROUP, ACL_OTHER},
	 0,
	 -EIO},
	{"named_user_with_a_mask",
	 ACL_EA_VERSION,
	 {ACL_USER_OBJ, ACL_USER, ACL_GROUP_OBJ, ACL_MASK, ACL_OTHER},
	 0,
	 0},
	{"wrong_order",
	 ACL_EA_VERSION,
	 {ACL_GROUP_OBJ, ACL_USER_OBJ, ACL_OTHER},
	 0,
	 -EIO},
	{"two_tags_in_one",
	 ACL_EA_VERSION,
	 {ACL_USER_OBJ | ACL_GROUP_OBJ, ACL_GROUP_OBJ, ACL_OTHER},
	 0,
	 -EIO},
	{"unknown_tag",
	 ACL_EA_VERSION,
	 {ACL_USER_OBJ, ACL_GROUP_OBJ, ACL_OTHER, ACL_OTHER << 1},
	 0,
	 -EIO},
};

TEST_ROWS(check_bytes, bytes, up, down)
{
	const struct bytes_case *c = *state;
	struct fsal_attrlist attrs;
	size_t i;

	begin_acl(&access_acl, c->version);
	for (i = 0; i < COUNT(c->tags) && c->tags[i] != 0; i++)
		put_entry(&access_acl, c->tags[i], 4, 0);
	access_acl.size -= (size_t)c->cut;
	assert_int_equal(get_acl(REGULAR_FILE, 0, &attrs), c->rc);
	assert_true((attrs.valid_mask == ATTR_ACL) == (c->rc == 0));
}

TEST_WITH(no_tag_is_no_entry, up, down)
{
	struct fsal_attrlist attrs;

	begin_acl(&access_acl, ACL_EA_VERSION);
	put_entry(&access_acl, 0, 4, 0);
	put_entry(&access_acl, ACL_USER_OBJ, 4, 0);
	put_entry(&access_acl, ACL_GROUP_OBJ, 4, 0);
	put_entry(&access_acl, ACL_OTHER, 4, 0);
	assert_int_equal(get_acl(REGULAR_FILE, 0, &attrs), -EIO);
}

/* --- what Ceph answers */

TEST_WITH(file_system_without_acls_shows_modes, up, down)
{
	struct fsal_attrlist attrs;

	access_acl.error = -EOPNOTSUPP;
	assert_int_equal(get_acl(REGULAR_FILE, S_IFREG | 0600, &attrs), 0);
	assert_int_equal(nfs4.naces, 3);
}

TEST_WITH(acl_that_cannot_be_read_is_an_error, up, down)
{
	struct fsal_attrlist attrs;

	access_acl.error = -EACCES;
	assert_int_equal(get_acl(REGULAR_FILE, 0, &attrs), -EACCES);
	access_acl.error = -ENODATA;
	default_acl.error = -EACCES;
	assert_int_equal(get_acl(DIRECTORY, 0, &attrs), -EACCES);
	assert_true(attrs.valid_mask == 0);
}

TEST_WITH(acl_that_grows_is_read_again, up, down)
{
	struct fsal_attrlist attrs;

	put_acl(&access_acl, "u:6,g:4,o:0");
	access_acl.size -= 1;
	access_acl.grows = 1;
	assert_int_equal(get_acl(REGULAR_FILE, 0, &attrs), 0);
	assert_int_equal(nfs4.naces, 3);
	assert_int_equal(reads, 4);
}

TEST_WITH(acl_that_goes_on_growing_is_asked_for_later, up, down)
{
	struct fsal_attrlist attrs;

	put_acl(&access_acl, "u:6,g:4,o:0");
	access_acl.grows = 100;
	assert_int_equal(get_acl(REGULAR_FILE, 0, &attrs), -EAGAIN);
	assert_int_equal(reads, 8);
}

TEST_WITH(acl_that_ganesha_does_not_make_is_an_error, up, down)
{
	struct fsal_attrlist attrs;

	no_acl_is_made = true;
	assert_int_equal(get_acl(REGULAR_FILE, 0, &attrs), -EIO);
	assert_true(attrs.valid_mask == 0);
}

/* --- setting */

static int set_acl(object_file_type_t type, fsal_acl_t *acl)
{
	const struct casync_acl_file file = {.type = type};
	const struct fsal_attrlist attrs = {.acl = acl};

	return casync_acl_set(&file, &attrs);
}

TEST_WITH(nothing_is_set_on_a_symbolic_link, up, down)
{
	assert_int_equal(set_acl(SYMBOLIC_LINK, &nfs4), -EINVAL);
	assert_int_equal(set_acl(REGULAR_FILE, NULL), -EINVAL);
	assert_string_equal(set_name, "");
}

TEST_WITH(file_gets_its_access_acl, up, down)
{
	assert_int_equal(set_acl(REGULAR_FILE, &nfs4), 0);
	assert_string_equal(set_name, ACL_EA_ACCESS);
	assert_int_equal(set_size, 28);
	set_result = -EDQUOT;
	assert_int_equal(set_acl(REGULAR_FILE, &nfs4), -EDQUOT);
}

TEST_WITH(default_that_is_not_there_need_not_be_removed, up, down)
{
	remove_result = -ENODATA;
	assert_int_equal(set_acl(DIRECTORY, &nfs4), 0);
	assert_string_equal(set_name, ACL_EA_ACCESS);
}

TEST_WITH(default_that_is_not_removed_leaves_all_as_it_was, up, down)
{
	remove_result = -EACCES;
	assert_int_equal(set_acl(DIRECTORY, &nfs4), -EACCES);
	assert_string_equal(set_name, "");
}

static const struct inherit_case {
	const char *name;
	fsal_aceflag_t flag;
	bool inherited;
} inherits[] = {
	{"to_files", FSAL_ACE_FLAG_FILE_INHERIT, true},
	{"to_folders", FSAL_ACE_FLAG_DIR_INHERIT, true},
	{"to_those_below_only",
	 FSAL_ACE_FLAG_DIR_INHERIT | FSAL_ACE_FLAG_INHERIT_ONLY, true},
	{"to_nobody", 0, false},
	{"only_to_nobody", FSAL_ACE_FLAG_INHERIT_ONLY, false},
};

/* The second entry alone is inherited: that is enough. */
TEST_ROWS(check_inheritance, inherits, up, down)
{
	const struct inherit_case *c = *state;
	fsal_ace_t aces[2] = {{.flag = 0}, {.flag = c->flag}};
	fsal_acl_t acl = {.naces = 2, .aces = aces};

	/* The default ACL is set, and refused; or it is removed, and that is. */
	set_result = -EDQUOT;
	remove_result = -EACCES;
	assert_int_equal(set_acl(DIRECTORY, &acl),
			 c->inherited ? -EDQUOT : -EACCES);
	assert_string_equal(set_name, c->inherited ? ACL_EA_DEFAULT : "");
}

/* --- labels */

static const struct casync_acl_file labelled = {.type = REGULAR_FILE};

TEST_WITH(label_is_what_is_stored, up, down)
{
	struct fsal_attrlist attrs = {0};

	label = (struct value){.size = 5, .bytes = "abcde"};
	assert_int_equal(casync_acl_label_get(&labelled, &attrs), 0);
	assert_true(attrs.valid_mask == ATTR4_SEC_LABEL);
	assert_int_equal(attrs.sec_label.slai_data.slai_data_len, 5);
	assert_memory_equal(attrs.sec_label.slai_data.slai_data_val, "abcde",
			    5);
	/* The next one takes its place. */
	label = (struct value){.size = 1, .bytes = "f"};
	assert_int_equal(casync_acl_label_get(&labelled, &attrs), 0);
	assert_int_equal(attrs.sec_label.slai_data.slai_data_len, 1);
	free(attrs.sec_label.slai_data.slai_data_val);
}

TEST_WITH(file_without_a_label_has_none, up, down)
{
	struct fsal_attrlist attrs = {0};

	assert_int_equal(casync_acl_label_get(&labelled, &attrs), 0);
	assert_true(attrs.valid_mask == 0);
	assert_int_equal(attrs.sec_label.slai_data.slai_data_len, 0);
	assert_null(attrs.sec_label.slai_data.slai_data_val);
	label = (struct value){.size = 0};
	assert_int_equal(casync_acl_label_get(&labelled, &attrs), 0);
	assert_true(attrs.valid_mask == 0);
}

TEST_WITH(label_that_cannot_be_read_is_an_error, up, down)
{
	struct fsal_attrlist attrs = {0};

	label.error = -EACCES;
	assert_int_equal(casync_acl_label_get(&labelled, &attrs), -EACCES);
	assert_true(attrs.valid_mask == 0);
}

TEST_WITH(label_is_stored_as_it_is, up, down)
{
	static char long_label[65537];
	struct fsal_attrlist attrs = {0};

	attrs.sec_label.slai_data.slai_data_val = long_label;
	attrs.sec_label.slai_data.slai_data_len = 65537;
	assert_int_equal(casync_acl_label_set(&labelled, &attrs), -E2BIG);
	assert_string_equal(set_name, "");
	attrs.sec_label.slai_data.slai_data_len = 65536;
	assert_int_equal(casync_acl_label_set(&labelled, &attrs), 0);
	assert_string_equal(set_name, LABEL);
	assert_int_equal(set_size, 65536);
	set_result = -EDQUOT;
	assert_int_equal(casync_acl_label_set(&labelled, &attrs), -EDQUOT);
}

/* --- what the export offers */

TEST_WITH(options_of_the_export_say_what_is_offered, up, down)
{
	assert_true(casync_acl_offered());
	assert_false(casync_acl_label_offered());
	gsh_export.options = EXPORT_OPTION_DISABLE_ACL;
	assert_false(casync_acl_offered());
	assert_false(casync_acl_label_offered());
	gsh_export.options = EXPORT_OPTION_SECLABEL_SET;
	assert_true(casync_acl_offered());
	assert_true(casync_acl_label_offered());
}
