/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <pthread.h>
#include <stdlib.h>

#include "strict.h"

static __thread int watched;
static int offences; /* atomic */

void strict_begin(void)
{
	watched = 1;
}

void strict_end(void)
{
	watched = 0;
}

int strict_offences(void)
{
	return __atomic_exchange_n(&offences, 0, __ATOMIC_ACQ_REL);
}

static void note(void)
{
	if (watched)
		__atomic_add_fetch(&offences, 1, __ATOMIC_ACQ_REL);
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*start)(void *), void *arg);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*start)(void *), void *arg);

void *__wrap_malloc(size_t size)
{
	note();
	return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	note();
	return __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	note();
	return __real_realloc(old, size);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*start)(void *), void *arg)
{
	note();
	return __real_pthread_create(thread, attr, start, arg);
}
