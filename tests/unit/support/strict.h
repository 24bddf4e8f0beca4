/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file strict.h
 * @brief What a thread of libcephfs' must not do: allocate, start a thread, take
 *        a lock.
 *
 * A callback may take a few locks that nobody holds across a call of libcephfs
 * (docs/threads.md).  A test learns them before it begins.
 *
 * Linked by casync_strict_test() of CMakeLists.txt, which has the linker lead
 * the calls here.
 */
#ifndef STRICT_H
#define STRICT_H

/** From here on this thread is one of libcephfs'. */
void strict_begin(void);

/** Up to here. */
void strict_end(void);

/** From here on this thread takes the locks that a callback may take. */
void strict_allow_begin(void);

/** Up to here. */
void strict_allow_end(void);

/** What was done in between, by all threads; counts from 0 again. */
int strict_offences(void);

#endif /* STRICT_H */
