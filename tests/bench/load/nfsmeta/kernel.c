/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nfsmeta.h"

static int result(int rc)
{
	return rc < 0 ? -errno : 0;
}

static int begin(const char *where)
{
	return result(chdir(where));
}

static int make_directory(const char *path)
{
	return result(mkdir(path, 0755));
}

static int create(const char *path)
{
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0644);

	return fd < 0 ? -errno : result(close(fd));
}

static int stat_file(const char *path)
{
	struct stat st;

	return result(lstat(path, &st));
}

static int list(const char *path)
{
	struct dirent *entry;
	DIR *dir = opendir(path);
	struct stat st;
	int count = 0;

	if (dir == NULL)
		return -errno;
	while ((entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		/* NOLINTNEXTLINE(clang-analyzer-unix.*): dir is open. */
		if (fstatat(dirfd(dir), entry->d_name, &st,
			    AT_SYMLINK_NOFOLLOW) < 0) {
			count = -errno;
			break;
		}
		count += S_ISREG(st.st_mode);
	}
	closedir(dir);
	return count;
}

static int rename_file(const char *from, const char *to)
{
	return result(rename(from, to));
}

static int unlink_file(const char *path)
{
	return result(unlink(path));
}

static int remove_directory(const char *path)
{
	return result(rmdir(path));
}

const struct way by_kernel = {
	.begin = begin,
	.make_directory = make_directory,
	.create = create,
	.stat = stat_file,
	.list = list,
	.rename = rename_file,
	.unlink = unlink_file,
	.remove_directory = remove_directory,
};
