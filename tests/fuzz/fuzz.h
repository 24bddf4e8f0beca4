/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file fuzz.h
 * @brief What the fuzzers share: libFuzzer's entry, checks that end in a
 * finding, and input that is taken from the front.
 *
 * A fuzzer is a function and what must hold for any input.  libFuzzer calls
 * it (ci/fuzz.sh); corpus.c does, for the files in corpus/, as an ordinary
 * test.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** @return 0, or -1 for an input not worth keeping. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/** Not assert(): NDEBUG must not take it away. */
#define FUZZ_CHECK(holds)                                              \
	do {                                                           \
		if (!(holds)) {                                        \
			fprintf(stderr, "%s:%d: '%s' does not hold\n", \
				__FILE__, __LINE__, #holds);           \
			abort();                                       \
		}                                                      \
	} while (0)

struct fuzz_input {
	const uint8_t *data;
	size_t left;
};

/** The next @p size bytes; what is missing is zero. */
static inline void fuzz_take(struct fuzz_input *input, void *to, size_t size)
{
	size_t there = size < input->left ? size : input->left;

	memset(to, 0, size);
	if (there == 0)
		return;
	memcpy(to, input->data, there);
	input->data += there;
	input->left -= there;
}

static inline uint64_t fuzz_number(struct fuzz_input *input)
{
	uint64_t number;

	fuzz_take(input, &number, sizeof(number));
	return number;
}

/** A copy with nothing behind it, so that a sanitizer sees each overrun. */
static inline void *fuzz_copy(const void *data, size_t size)
{
	void *copy = malloc(size);

	FUZZ_CHECK(copy != NULL || size == 0);
	if (size != 0)
		memcpy(copy, data, size);
	return copy;
}

#endif /* FUZZ_H */
