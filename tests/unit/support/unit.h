/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file unit.h
 * @brief cmocka, with the headers that it wants to be included before it.
 */
#ifndef UNIT_H
#define UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif /* UNIT_H */
