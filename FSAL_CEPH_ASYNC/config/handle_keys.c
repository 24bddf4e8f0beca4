/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "handle_keys.h"
#include "text.h"

#define HEX_DIGITS ((size_t)2 * CASYNC_HANDLE_KEY_BYTES)

static bool handle_keys_decode(const char *hex, uint8_t *key)
{
	size_t i;

	for (i = 0; i < HEX_DIGITS; i++) {
		unsigned char digit = (unsigned char)hex[i];
		unsigned int value;

		if (!isxdigit(digit))
			return false;
		value = isdigit(digit) ? digit - '0'
				       : (tolower(digit) - 'a') + 10;
		if (i % 2 == 0)
			key[i / 2] = (uint8_t)(value << 4);
		else
			key[i / 2] |= (uint8_t)value;
	}
	return true;
}

/* The line without spaces around it, and without a comment. */
static char *handle_keys_strip(char *line)
{
	char *end = strpbrk(line, "#\n");
	size_t len;

	if (end != NULL)
		*end = '\0';
	line += strspn(line, " \t\r");
	len = strlen(line);
	while (len > 0 && isspace((unsigned char)line[len - 1]))
		line[--len] = '\0';
	return line;
}

static bool handle_keys_add(struct casync_handle_keys *keys, const char *text,
			    unsigned int line, char *why, size_t size)
{
	if (keys->count == CASYNC_HANDLE_KEYS_MAX)
		return casync_text_refuse(
			why, size,
			"line %u: there are more than %d keys; the first one signs, the second one is the one before it",
			line, CASYNC_HANDLE_KEYS_MAX);
	if (strlen(text) != HEX_DIGITS ||
	    !handle_keys_decode(text, keys->key[keys->count]))
		return casync_text_refuse(
			why, size,
			"line %u is no key: it must be %zu hexadecimal digits, as \"openssl rand -hex %d\" prints them",
			line, HEX_DIGITS, CASYNC_HANDLE_KEY_BYTES);
	keys->count++;
	return true;
}

static bool handle_keys_parse(FILE *file, struct casync_handle_keys *keys,
			      char *why, size_t size)
{
	unsigned int number = 0;
	char *line = NULL;
	size_t room = 0;
	bool right = true;

	while (right && getline(&line, &room, file) >= 0) {
		const char *text = handle_keys_strip(line);

		number++;
		if (text[0] != '\0')
			right = handle_keys_add(keys, text, number, why, size);
		explicit_bzero(line, room);
	}
	free(line);
	if (!right)
		return false;
	if (ferror(file) != 0)
		return casync_text_refuse(why, size, "it cannot be read: %s",
					  strerror(errno));
	if (keys->count == 0)
		return casync_text_refuse(
			why, size,
			"it has no key; \"openssl rand -hex %d\" makes one",
			CASYNC_HANDLE_KEY_BYTES);
	return true;
}

static bool handle_keys_is_safe(int fd, char *why, size_t size)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return casync_text_refuse(why, size, "%s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return casync_text_refuse(why, size, "it is no regular file");
	if ((st.st_mode & (S_IRWXG | S_IRWXO)) != 0)
		return casync_text_refuse(
			why, size,
			"its mode is %04o: others than its owner may use it, and so could sign handles; chmod 600",
			st.st_mode & 07777U);
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return casync_text_refuse(
			why, size,
			"its owner is user %u, who could sign handles; it must be root or the user that runs Ganesha",
			(unsigned int)st.st_uid);
	return true;
}

static bool handle_keys_take(FILE *file, struct casync_handle_keys *keys,
			     char *why, size_t size)
{
	bool right;

	/* No copy of a key stays in a buffer of stdio. */
	(void)setvbuf(file, NULL, _IONBF, 0);
	right = handle_keys_parse(file, keys, why, size);
	(void)fclose(file);
	if (!right)
		casync_handle_keys_wipe(keys);
	return right;
}

bool casync_handle_keys_read(const char *path, struct casync_handle_keys *keys,
			     char *why, size_t size)
{
	/* The mode is asked for before the first byte is: opening a FIFO must
	 * not wait for its writer. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	FILE *file;

	memset(keys, 0, sizeof(*keys));
	if (fd < 0)
		return casync_text_refuse(why, size, "%s", strerror(errno));
	if (!handle_keys_is_safe(fd, why, size)) {
		(void)close(fd);
		return false;
	}
	file = fdopen(fd, "r");
	if (file == NULL) {
		(void)snprintf(why, size, "%s", strerror(errno));
		(void)close(fd);
		return false;
	}
	return handle_keys_take(file, keys, why, size);
}

bool casync_handle_keys_read_text(char *text, struct casync_handle_keys *keys,
				  char *why, size_t size)
{
	size_t length = strlen(text);
	FILE *file = fmemopen(text, length + 1, "r");
	bool right;

	memset(keys, 0, sizeof(*keys));
	if (file == NULL)
		return casync_text_refuse(why, size, "%s", strerror(errno));
	right = handle_keys_take(file, keys, why, size);
	explicit_bzero(text, length);
	return right;
}

void casync_handle_keys_wipe(struct casync_handle_keys *keys)
{
	explicit_bzero(keys, sizeof(*keys));
}
