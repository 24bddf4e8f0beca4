/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ceph_options.h"

/* Options that are not the administrator's, and why. */
static const struct {
	const char *name, *why;
} reserved[] = {
	{"client_oc",
	 "it stays false: with libcephfs' object cache write-back errors would be hidden from COMMIT"},
	{"client_acl_type", "it stays posix_acl, which NFSv4 ACLs are kept in"},
	{"client_permissions",
	 "it stays true: what clients may do is checked there"},
	{"client_force_lazyio",
	 "it lets files be read and written without the MDS' leave, so that other clients and gateways would see old data"},
	{"client_use_faked_inos",
	 "file handles have the true inode numbers; clients would lose their mounts"},
	{"client_mountpoint", "the root is Cmount_Path or the export's Path"},
	{"client_fs", "the file system is chosen by Filesystem"},
	{"client_mds_namespace", "the file system is chosen by Filesystem"},
	{"client_mount_timeout", "that is Mount_Timeout"},
	{"rados_osd_op_timeout",
	 "a write that has timed out may still be done, after a later one of the same bytes"},
	{"key", "that is Secret_Access_Key"},
	{"keyfile", "that is Secret_Access_Key"},
};

static bool ceph_options_refuse(const char *because, char *why, size_t size)
{
	(void)snprintf(why, size, "%s", because);
	return false;
}

/* Without the white space at both ends. */
static void ceph_options_trim(const char **begin, const char **end)
{
	while (*begin < *end && isspace((unsigned char)**begin))
		(*begin)++;
	while (*begin < *end && isspace((unsigned char)(*end)[-1]))
		(*end)--;
}

/* Ceph's names are lower case; it takes spaces for underscores. */
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

static bool ceph_options_is_reserved(const char *name, char *why, size_t size)
{
	size_t i;

	for (i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++) {
		if (strcmp(reserved[i].name, name) == 0) {
			(void)snprintf(why, size, "%s: %s", name,
				       reserved[i].why);
			return true;
		}
	}
	return false;
}

bool casync_ceph_option_parse(const char *text, char *line, char *why,
			      size_t size)
{
	const char *end = text + strlen(text);
	const char *equals = strchr(text, '=');
	const char *name = text, *value, *name_end;
	size_t length;

	if (end - text > CASYNC_CEPH_OPTION_MAX)
		return ceph_options_refuse("it is too long", why, size);
	if (equals == NULL)
		return ceph_options_refuse("it must be \"name = value\"", why,
					   size);
	name_end = equals;
	ceph_options_trim(&name, &name_end);
	value = equals + 1;
	ceph_options_trim(&value, &end);
	if (name == name_end || !ceph_options_copy_name(name, name_end, line))
		return ceph_options_refuse(
			"it must be \"name = value\", with a name of letters, digits and underscores",
			why, size);
	if (ceph_options_is_reserved(line, why, size))
		return false;
	/* A line of its own in the list. */
	if (memchr(value, '\n', (size_t)(end - value)) != NULL)
		return ceph_options_refuse("a value has one line only", why,
					   size);

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
		(void)snprintf(why, size, "Ceph refuses %s = '%s': %s", line,
			       value, strerror(-rc));
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
