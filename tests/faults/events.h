/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file events.h
 * @brief What the shim did, one JSON object a line, appended to "events".
 *
 * A call's line is there before the call is answered.
 */
#ifndef FAULTS_EVENTS_H
#define FAULTS_EVENTS_H

#include "rules.h"

/** CASYNC_FAULTS_DIR, or its default. */
const char *fault_dir(void);

/** Create the folder if need be, and say that a process begins. */
void fault_events_open(void);

/** New rules are in force. */
void fault_event_rules(unsigned int count);

/** The rules file is wrong, none is in force; goes to stderr too. */
void fault_event_bad_rules(const char *why);

/** This happens to that call. */
void fault_event_hit(const struct fault_call_id *call,
		     const struct fault_hit *hit);

/** libcephfs answered such a call itself: nothing happens to it. */
void fault_event_returned(const struct fault_call_id *call, int64_t rc);

/** So many completions are "held", or were "released" or "reordered". */
void fault_event_count(const char *event, unsigned int count);

#endif /* FAULTS_EVENTS_H */
