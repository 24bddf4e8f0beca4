/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cephfs/libcephfs.h>

#include "fsal.h"
#include "FSAL/fsal_commonlib.h"
#include "FSAL/fsal_init.h"
#include "export_mgr.h"

#include "text.h"
#include "versions.h"

const struct casync_versions casync_versions_built = {
	.ganesha = GANESHA_VERSION,
	.ceph = CASYNC_CEPH_BUILT,
};

void casync_versions_of_file(const char *path, char *version, size_t size)
{
	const char *name = strrchr(path, '/');
	const char *end = strstr(name != NULL ? name : path, ".so.");

	(void)snprintf(version, size, "%s",
		       end != NULL ? end + strlen(".so.") : "");
}

void casync_versions_running(struct casync_versions *running)
{
	int major, minor, patch;
	char path[PATH_MAX];
	Dl_info library;

	/* No symbol of Ganesha has its version.  The name of the loaded file
	 * has it: the soname contains the whole version. */
	running->ganesha[0] = '\0';
	if (dladdr((const void *)register_fsal, &library) != 0 &&
	    realpath(library.dli_fname, path) != NULL)
		casync_versions_of_file(path, running->ganesha,
					sizeof(running->ganesha));
	(void)ceph_version(&major, &minor, &patch);
	(void)snprintf(running->ceph, sizeof(running->ceph), "%d.%d.%d", major,
		       minor, patch);
}

static bool versions_ceph_is_old(const char *version)
{
	int major = 0, minor = 0;

	if (sscanf(version, "%d.%d", &major, &minor) != 2)
		return false;
	return major < CASYNC_CEPH_MAJOR_MIN ||
	       (major == CASYNC_CEPH_MAJOR_MIN &&
		minor < CASYNC_CEPH_MINOR_MIN);
}

bool casync_versions_fit(const struct casync_versions *built,
			 const struct casync_versions *running, char *why,
			 size_t size)
{
	if (running->ganesha[0] != '\0' &&
	    strcmp(running->ganesha, built->ganesha) != 0)
		return casync_text_refuse(
			why, size,
			"this is Ganesha %s: install nfs-ganesha-ceph-async built for %s, or Ganesha %s",
			running->ganesha, running->ganesha, built->ganesha);
	if (versions_ceph_is_old(running->ceph))
		return casync_text_refuse(
			why, size,
			"libcephfs is %s: install libcephfs2 %d.%d or later",
			running->ceph, CASYNC_CEPH_MAJOR_MIN,
			CASYNC_CEPH_MINOR_MIN);
	return true;
}

/*
 * Where is export_id in Ganesha's own struct gsh_export?
 *
 * fsal_export_init() copies it from there, and it is in Ganesha's library.
 * Each 16-bit word of the export that it gets here is its own number.  The
 * memory is larger than the struct: Ganesha's may be larger than ours.
 */
static size_t versions_export_id_offset(void)
{
	_Alignas(struct gsh_export) uint16_t numbered[4096 / sizeof(uint16_t)];
	struct req_op_context context = {
		.ctx_export = (struct gsh_export *)numbered,
	};
	struct req_op_context *saved = op_ctx;
	struct fsal_export made;
	size_t i;

	for (i = 0; i < sizeof(numbered) / sizeof(numbered[0]); i++)
		numbered[i] = (uint16_t)i;
	op_ctx = &context;
	fsal_export_init(&made);
	op_ctx = saved;
	return made.export_id * sizeof(numbered[0]);
}

bool casync_versions_layout_fits(char *why, size_t size)
{
	size_t ours = offsetof(struct gsh_export, export_id);
	size_t theirs = versions_export_id_offset();

	if (theirs == ours)
		return true;
	return casync_text_refuse(
		why, size,
		"this Ganesha was configured with other flags (gsh_export.export_id is at byte %zu, not %zu; ENABLE_QOS moves it by 16): build the plugin with the config.h of this Ganesha",
		theirs, ours);
}
