/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include <nfsc/libnfs.h>

#include "nfsmeta.h"

static struct nfs_context *nfs;

static int begin(const char *where)
{
	struct nfs_url *url;
	int rc;

	nfs = nfs_init_context();
	if (nfs == NULL)
		return -ENOMEM;
	url = nfs_parse_url_dir(nfs, where);
	if (url == NULL)
		return -EINVAL;
	rc = nfs_mount(nfs, url->server, url->path);
	if (rc != 0)
		fprintf(stderr, "nfsmeta: %s: %s\n", where, nfs_get_error(nfs));
	nfs_destroy_url(url);
	return rc;
}

static int make_directory(const char *path)
{
	return nfs_mkdir2(nfs, path, 0755);
}

static int create(const char *path)
{
	struct nfsfh *fh;
	int rc = nfs_create(nfs, path, O_CREAT | O_EXCL | O_WRONLY, 0644, &fh);

	return rc < 0 ? rc : nfs_close(nfs, fh);
}

static int stat_file(const char *path)
{
	struct nfs_stat_64 st;

	return nfs_lstat64(nfs, path, &st);
}

static int list(const char *path)
{
	struct nfsdirent *entry;
	struct nfsdir *dir;
	int rc = nfs_opendir(nfs, path, &dir);
	int count = 0;

	if (rc < 0)
		return rc;
	while ((entry = nfs_readdir(nfs, dir)) != NULL)
		count += entry->name[0] != '.' && S_ISREG(entry->mode);
	nfs_closedir(nfs, dir);
	return count;
}

static int rename_file(const char *from, const char *to)
{
	return nfs_rename(nfs, from, to);
}

static int unlink_file(const char *path)
{
	return nfs_unlink(nfs, path);
}

static int remove_directory(const char *path)
{
	return nfs_rmdir(nfs, path);
}

const struct way by_libnfs = {
	.begin = begin,
	.make_directory = make_directory,
	.create = create,
	.stat = stat_file,
	.list = list,
	.rename = rename_file,
	.unlink = unlink_file,
	.remove_directory = remove_directory,
};
