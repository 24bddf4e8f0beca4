/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <pthread.h>
#include <stdlib.h>

#include "strict.h"

#define ALLOWED_MAX 16

static __thread int watched;
static __thread int learning;
static int offences; /* atomic */

/* The locks that a callback may take.  Nobody adds one while a thread is
 * watched. */
static const void *allowed[ALLOWED_MAX];
static unsigned int allowed_count;

void strict_begin(void)
{
	watched = 1;
}

void strict_end(void)
{
	watched = 0;
}

void strict_allow_begin(void)
{
	learning = 1;
}

void strict_allow_end(void)
{
	learning = 0;
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

static int is_allowed(const void *lock)
{
	unsigned int i;

	for (i = 0; i < allowed_count; i++) {
		if (allowed[i] == lock)
			return 1;
	}
	return 0;
}

static void note_lock(const void *lock)
{
	if ((!watched && !learning) || is_allowed(lock))
		return;
	if (!learning) {
		note();
		return;
	}
	if (allowed_count == ALLOWED_MAX)
		abort();
	allowed[allowed_count++] = lock;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*start)(void *), void *arg);
int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __real_pthread_rwlock_rdlock(pthread_rwlock_t *lock);
int __real_pthread_rwlock_wrlock(pthread_rwlock_t *lock);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*start)(void *), void *arg);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t *lock);
int __wrap_pthread_rwlock_wrlock(pthread_rwlock_t *lock);

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

int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
	note_lock(lock);
	return __real_pthread_mutex_lock(lock);
}

int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
	note_lock(lock);
	return __real_pthread_rwlock_rdlock(lock);
}

int __wrap_pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
	note_lock(lock);
	return __real_pthread_rwlock_wrlock(lock);
}
