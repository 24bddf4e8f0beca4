/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ceph_options.h"
#include "text.h"

/* Options that the administrator may not set, with the reason. */
static const struct {
	const char *name, *why;
} reserved[] = {
	{"client_oc",
	 "it must stay false: libcephfs' object cache hides write-back errors from COMMIT"},
	{"client_acl_type",
	 "it must stay posix_acl: NFSv4 ACLs are stored as POSIX ACLs"},
	{"client_permissions",
	 "it must stay true: libcephfs checks access with it"},
	{"client_force_lazyio",
	 "with it libcephfs reads and writes without capabilities of the MDS; other clients and gateways would see old data"},
	{"client_use_faked_inos",
	 "file handles contain the true inode numbers; clients would lose their mounts"},
	{"client_mountpoint", "use Cmount_Path or the export's Path"},
	{"client_fs", "use Filesystem"},
	{"client_mds_namespace", "use Filesystem"},
	{"client_mount_timeout", "use Mount_Timeout"},
	{"rados_osd_op_timeout",
	 "a write that timed out may still reach the disk, after a later write of the same bytes"},
	{"key", "use Secret_Access_Key"},
	{"keyfile", "use Secret_Access_Key"},
};

/* Drop white space at both ends. */
static void ceph_options_trim(const char **begin, const char **end)
{
	while (*begin < *end && isspace((unsigned char)**begin))
		(*begin)++;
	while (*begin < *end && isspace((unsigned char)(*end)[-1]))
		(*end)--;
}

/* Ceph's names are lower case.  It accepts spaces as underscores. */
static bool ceph_options_copy_name(const char *begin, const char *end,
				   char *name)
{
	for (; begin < end; begin++) {
		if (isalnum((unsigned char)*begin))
			*name++ = (char)tolower((unsigned char)*begin);
		else if (strchr("_- \t", *begin) != NULL)
			*name++ = '_';
		else
			return false;
	}
	*name = '\0';
	return true;
}

static bool ceph_options_is_free(const char *name, char *why, size_t size)
{
	size_t i;

	for (i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++) {
		if (strcmp(reserved[i].name, name) == 0)
			return casync_text_refuse(why, size, "remove %s: %s",
						  name, reserved[i].why);
	}
	return true;
}

bool casync_ceph_options_parse(const char *text, char *line, char *why,
			       size_t size)
{
	const char *end = text + strlen(text);
	const char *equals = strchr(text, '=');
	const char *name = text, *value, *name_end;
	size_t length;

	if (end - text > CASYNC_CEPH_OPTION_MAX)
		return casync_text_refuse(why, size, "it is too long");
	if (equals == NULL)
		return casync_text_refuse(why, size,
					  "it must be \"name = value\"");
	name_end = equals;
	ceph_options_trim(&name, &name_end);
	value = equals + 1;
	ceph_options_trim(&value, &end);
	if (name == name_end || !ceph_options_copy_name(name, name_end, line))
		return casync_text_refuse(
			why, size,
			"it must be \"name = value\", with a name of letters, digits and underscores");
	if (!ceph_options_is_free(line, why, size))
		return false;
	/* Each option is one line of the list. */
	if (memchr(value, '\n', (size_t)(end - value)) != NULL)
		return casync_text_refuse(why, size,
					  "the value must be one line");

	length = strlen(line);
	line[length++] = '=';
	memcpy(line + length, value, (size_t)(end - value));
	length += (size_t)(end - value);
	line[length++] = '\n';
	line[length] = '\0';
	return true;
}

static int ceph_options_set_line(struct ceph_mount_info *ceph, char *line,
				 char *why, size_t size)
{
	char *value = strchr(line, '=');
	int rc;

	*value++ = '\0';
	rc = ceph_conf_set(ceph, line, value);
	if (rc == -ENOENT)
		(void)snprintf(why, size, "Ceph %s has no option '%s'",
			       ceph_version(NULL, NULL, NULL), line);
	else if (rc < 0)
		(void)snprintf(why, size, "Ceph refuses the value of %s: %s",
			       line, strerror(-rc));
	return rc;
}

int casync_ceph_options_set(struct ceph_mount_info *ceph, const char *list,
			    char *why, size_t size)
{
	char line[CASYNC_CEPH_OPTION_MAX + 2];
	const char *end;
	int rc = 0;

	while (rc >= 0 && list != NULL && *list != '\0') {
		end = strchr(list, '\n');
		memcpy(line, list, (size_t)(end - list));
		line[end - list] = '\0';
		list = end + 1;
		rc = ceph_options_set_line(ceph, line, why, size);
	}
	return rc;
}

bool casync_ceph_options_have(const char *list, const char *name)
{
	size_t length = strlen(name);

	while (list != NULL && *list != '\0') {
		if (strncmp(list, name, length) == 0 && list[length] == '=')
			return true;
		list = strchr(list, '\n') + 1;
	}
	return false;
}
