/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file pin.h
 * @brief Keeps the plugin mapped if a libcephfs call does not return.
 */
#ifndef CASYNC_PIN_H
#define CASYNC_PIN_H

#include <stdbool.h>

/**
 * Keep the plugin's code mapped until the process ends.  A thread or a callback
 * may still return into it after Ganesha has unloaded the plugin.  Any thread
 * may call it; repeated calls are harmless.
 */
void casync_pin_module(void);

/** Has casync_pin_module() been called?  Then our threads are not joined. */
bool casync_pin_is_set(void);

#endif /* CASYNC_PIN_H */
