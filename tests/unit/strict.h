/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file strict.h
 * @brief What a thread of libcephfs' must not do: allocate, start a thread.
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

/** What was done in between, by all threads; counts from 0 again. */
int strict_offences(void);

#endif /* STRICT_H */
