/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Feeds a fuzzer the files of a folder, as an ordinary test: no libFuzzer,
 * any compiler.
 */
#include <dirent.h>
#include <sys/stat.h>

#include "fuzz.h"

static void feed(const char *path)
{
	struct stat st;
	FILE *file = fopen(path, "rb");
	uint8_t *data;

	FUZZ_CHECK(file != NULL && fstat(fileno(file), &st) == 0);
	data = malloc((size_t)st.st_size);
	FUZZ_CHECK(data != NULL || st.st_size == 0);
	FUZZ_CHECK(fread(data, 1, (size_t)st.st_size, file) ==
		   (size_t)st.st_size);
	fclose(file);
	fprintf(stderr, "%s\n", path); /* the last one is to blame */
	(void)LLVMFuzzerTestOneInput(data, (size_t)st.st_size);
	free(data);
}

int main(int argc, char **argv)
{
	unsigned int fed = 0;
	struct dirent *entry;
	char path[4096];
	DIR *dir;

	FUZZ_CHECK(argc == 2);
	dir = opendir(argv[1]);
	FUZZ_CHECK(dir != NULL);
	while ((entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", argv[1],
			       entry->d_name);
		feed(path);
		fed++;
	}
	closedir(dir);
	printf("%u inputs\n", fed);
	FUZZ_CHECK(fed != 0);
	return 0;
}
