/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stddef.h>
#include <string.h>

#include "unit.h"

#include "config.h"
#include "fsal.h"
#include "FSAL/fsal_commonlib.h"
#include "export_mgr.h"
#include "versions.h"

/* Ganesha's, of which only the address is asked for; it is in this program,
 * whose name has no version. */
int register_fsal(struct fsal_module *fsal_hdl, const char *name,
		  uint32_t major_version, uint32_t minor_version,
		  uint8_t fsal_id)
{
	return 0;
}

__thread struct req_op_context *op_ctx;

/* How much further back a Ganesha of other flags has export_id. */
static size_t moved_bytes;

/* Ganesha's: it copies the number of the export, from where it has it. */
void fsal_export_init(struct fsal_export *exp)
{
	const char *at = (const char *)op_ctx->ctx_export;

	memset(exp, 0, sizeof(*exp));
	memcpy(&exp->export_id,
	       at + offsetof(struct gsh_export, export_id) + moved_bytes,
	       sizeof(exp->export_id));
}

struct fit_case {
	const char *name;
	struct casync_versions built, running;
	const char *why; /* Words of the reason; NULL: it fits. */
};

static const struct fit_case fit_cases[] = {
	{"the_same", {"9.14", "20.2.4"}, {"9.14", "20.2.4"}, NULL},
	{"newer_libcephfs", {"9.14", "19.2.0"}, {"9.14", "20.2.4"}, NULL},
	{"older_libcephfs", {"9.14", "20.2.4"}, {"9.14", "19.2.0"}, NULL},
	{"libcephfs_of_next_century", {"9.14", ""}, {"9.14", "100.0.0"}, NULL},
	{"ganesha_is_unknown", {"9.14", "20.2.4"}, {"", "20.2.4"}, NULL},
	{"newer_ganesha",
	 {"9.14", "20.2.4"},
	 {"9.15", "20.2.4"},
	 "this is Ganesha 9.15: install nfs-ganesha-ceph-async built for 9.15, or Ganesha 9.14"},
	{"older_ganesha",
	 {"9.14", "20.2.4"},
	 {"9.1", "20.2.4"},
	 "install nfs-ganesha-ceph-async built for 9.1,"},
	{"point_release_of_ganesha",
	 {"9.14", ""},
	 {"9.14.1", "20.2.4"},
	 "built for 9.14.1"},
	{"libcephfs_without_nonblocking_io",
	 {"9.14", "20.2.4"},
	 {"9.14", "18.2.7"},
	 "libcephfs is 18.2.7: install libcephfs2 19.2 or later"},
	{"libcephfs_before_its_release",
	 {"9.14", "20.2.4"},
	 {"9.14", "19.1.9"},
	 "19.2 or later"},
};

TEST_ROWS(check_fit, fit_cases, NULL, NULL)
{
	const struct fit_case *c = *state;
	char why[256] = "untouched";
	bool fits =
		casync_versions_fit(&c->built, &c->running, why, sizeof(why));

	assert_int_equal(fits, c->why == NULL);
	if (c->why != NULL)
		assert_non_null(strstr(why, c->why));
	else
		assert_string_equal(why, "untouched");
}

TEST(version_is_what_follows_so)
{
	char version[32];

	casync_versions_of_file("/usr/lib/ganesha/libganesha_nfsd.so.9.14",
				version, sizeof(version));
	assert_string_equal(version, "9.14");
	casync_versions_of_file("libganesha_nfsd.so.10.2.1", version,
				sizeof(version));
	assert_string_equal(version, "10.2.1");
	casync_versions_of_file("/opt/some.so.where/ganesha.nfsd", version,
				sizeof(version));
	assert_string_equal(version, "");
	casync_versions_of_file("/usr/lib/libganesha_nfsd.so", version,
				sizeof(version));
	assert_string_equal(version, "");
}

TEST(a_long_one_is_cut)
{
	char version[5] = "full";

	casync_versions_of_file("x.so.1234567", version, sizeof(version));
	assert_string_equal(version, "1234");
}

TEST(running_libcephfs_is_that_of_the_build)
{
	struct casync_versions running;

	casync_versions_running(&running);
	assert_string_equal(running.ceph, casync_versions_built.ceph);
	assert_string_equal(running.ganesha, "");
	assert_string_equal(casync_versions_built.ganesha, GANESHA_VERSION);
}

TEST(ganesha_of_the_same_flags_fits)
{
	struct req_op_context context = {0};
	char why[256] = "untouched";

	moved_bytes = 0;
	op_ctx = &context;
	assert_true(casync_versions_layout_fits(why, sizeof(why)));
	assert_string_equal(why, "untouched");
	assert_ptr_equal(op_ctx, &context);
	op_ctx = NULL;
}

TEST(ganesha_with_qos_is_refused)
{
	size_t here = offsetof(struct gsh_export, export_id);
	char why[256], where[64];

	moved_bytes = 2 * sizeof(void *);
	assert_false(casync_versions_layout_fits(why, sizeof(why)));
	(void)snprintf(where, sizeof(where), "at byte %zu, not %zu;", here + 16,
		       here);
	assert_non_null(strstr(why, where));
	assert_non_null(strstr(why, "ENABLE_QOS"));
	/* Nothing of the line is cut. */
	assert_non_null(strstr(why, "the config.h of this Ganesha"));
	assert_null(op_ctx);
}
