/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules.h"

#define MILLION 1000000
#define MOST_MS 3600000
#define MOST_TIMES 1024
#define REORDER_WAIT_MS 50
#define ERRNO_MAX 4095

struct name {
	const char *name;
	int value;
};

static const struct name kinds[] = {
	{"read", FAULT_READ},
	{"write", FAULT_WRITE},
	{"flush", FAULT_FLUSH},
	{"repair", FAULT_REPAIR},
	{"lock", FAULT_LOCK},
	{"setattr", FAULT_SETATTR},
	{"any", FAULT_READ | FAULT_WRITE},
	{NULL, 0},
};

static const struct name actions[] = {
	{"delay", FAULT_DELAY},
	{"error", FAULT_ERROR},
	{"refuse", FAULT_REFUSE},
	{"short", FAULT_SHORT},
	{"hold", FAULT_HOLD},
	{"reorder", FAULT_REORDER},
	{"duplicate", FAULT_DUPLICATE},
	{"never", FAULT_NEVER},
	{NULL, 0},
};

static const struct name *find(const struct name *names, const char *name)
{
	while (names->name != NULL && strcmp(names->name, name) != 0)
		names++;
	return names->name != NULL ? names : NULL;
}

static const char *name_of(const struct name *names, int value)
{
	while (names->name != NULL && names->value != value)
		names++;
	return names->name;
}

const char *fault_kind_name(enum fault_kind kind)
{
	return name_of(kinds, (int)kind);
}

const char *fault_action_name(enum fault_action action)
{
	return name_of(actions, (int)action);
}

static bool parse_number(const char *text, uint64_t most, uint64_t *value)
{
	char *end;

	/* strtoull takes a sign. */
	if (text == NULL || text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	*value = strtoull(text, &end, 0);
	return errno == 0 && *end == '\0' && *value <= most;
}

static bool parse_positive(const char *text, uint64_t *value)
{
	return parse_number(text, UINT64_MAX, value) && *value != 0;
}

/* "A" or "A-B". */
static bool parse_range(char *text, uint64_t most, uint64_t *first,
			uint64_t *last)
{
	char *dash = text != NULL ? strchr(text, '-') : NULL;

	if (dash != NULL)
		*dash++ = '\0';
	if (!parse_number(text, most, first))
		return false;
	*last = *first;
	return dash == NULL ||
	       (parse_number(dash, most, last) && *last >= *first);
}

static bool parse_percent(const char *text, uint64_t *millionths)
{
	double percent;
	char *end;

	if (text == NULL || text[0] < '0' || text[0] > '9')
		return false;
	percent = strtod(text, &end);
	*millionths = (uint64_t)(percent * MILLION / 100);
	return *end == '\0' && percent <= 100 && *millionths != 0;
}

/* A number, or a name that the C library knows. */
static bool parse_errno(const char *text, int *error)
{
	uint64_t number;
	int i;

	if (text == NULL)
		return false;
	if (parse_number(text, ERRNO_MAX, &number)) {
		*error = (int)number;
		return number != 0;
	}
	if (strcmp(text, "EBLOCKLISTED") == 0)
		text = "ESHUTDOWN"; /* the same number, Ceph's name */
	for (i = 1; i <= ERRNO_MAX; i++) {
		const char *name = strerrorname_np(i);

		if (name != NULL && strcmp(name, text) == 0) {
			*error = i;
			return true;
		}
	}
	return false;
}

static bool parse_ms(char *text, struct fault_rule *rule)
{
	uint64_t min, max;

	if (!parse_range(text, MOST_MS, &min, &max))
		return false;
	rule->min_ms = (unsigned int)min;
	rule->max_ms = (unsigned int)max;
	return true;
}

static bool parse_times(const char *text, unsigned int least,
			unsigned int *times)
{
	uint64_t number;

	if (!parse_number(text, MOST_TIMES, &number) || number < least)
		return false;
	*times = (unsigned int)number;
	return true;
}

static bool parse_short(const char *text, struct fault_rule *rule)
{
	rule->half = text != NULL && strcmp(text, "half") == 0;
	return rule->half || parse_number(text, UINT64_MAX, &rule->bytes);
}

/* The words that say which calls; false: not one of them, or wrong. */
static bool parse_filter(const char *key, char *value, struct fault_rule *rule)
{
	if (strcmp(key, "nth") == 0)
		return parse_positive(value, &rule->nth);
	if (strcmp(key, "every") == 0)
		return parse_positive(value, &rule->every);
	if (strcmp(key, "count") == 0)
		return parse_positive(value, &rule->count);
	if (strcmp(key, "percent") == 0)
		return parse_percent(value, &rule->millionths);
	if (strcmp(key, "ino") == 0)
		return parse_positive(value, &rule->ino);
	if (strcmp(key, "offset") == 0)
		return parse_range(value, INT64_MAX, &rule->first_byte,
				   &rule->last_byte);
	return false;
}

static bool parse_argument(enum fault_action action, char *value,
			   struct fault_rule *rule)
{
	switch (action) {
	case FAULT_DELAY:
		return parse_ms(value, rule);
	case FAULT_ERROR:
	case FAULT_REFUSE:
		return parse_errno(value, &rule->error);
	case FAULT_SHORT:
		return parse_short(value, rule);
	case FAULT_REORDER:
		return parse_times(value, 2, &rule->times);
	case FAULT_DUPLICATE:
		rule->times = 1;
		return value == NULL || parse_times(value, 1, &rule->times);
	case FAULT_HOLD:
	case FAULT_NEVER:
		return value == NULL;
	case FAULT_NONE:
		break;
	}
	return false;
}

/* A delay may stand beside an error or a short result; else one action. */
static bool combine(enum fault_action action, struct fault_rule *rule)
{
	enum fault_action before = rule->action;
	bool delay = action == FAULT_DELAY || before == FAULT_DELAY;

	if (before == FAULT_NONE || before == FAULT_DELAY)
		rule->action = action;
	if (before == FAULT_NONE)
		return true;
	return delay && before != action &&
	       (rule->action == FAULT_ERROR || rule->action == FAULT_SHORT);
}

static bool parse_word(char *word, struct fault_rule *rule)
{
	char *value = strchr(word, '=');
	const struct name *action;

	if (value != NULL)
		*value++ = '\0';
	action = find(actions, word);
	if (action != NULL)
		return combine((enum fault_action)action->value, rule) &&
		       parse_argument((enum fault_action)action->value, value,
				      rule);
	if (strcmp(word, "after") == 0) {
		rule->later = true;
		return rule->action == FAULT_DUPLICATE && parse_ms(value, rule);
	}
	return parse_filter(word, value, rule);
}

/* What the blocking calls can have done to them. */
static bool fits(const struct fault_rule *rule)
{
	bool blocking = (rule->kinds & (FAULT_FLUSH | FAULT_REPAIR |
					FAULT_LOCK | FAULT_SETATTR)) != 0;

	if (rule->action == FAULT_NONE)
		return false;
	if ((rule->nth != 0) + (rule->every != 0) + (rule->millionths != 0) > 1)
		return false;
	if (blocking && rule->ino != 0)
		return false;
	return !blocking || rule->action == FAULT_DELAY ||
	       rule->action == FAULT_ERROR || rule->action == FAULT_HOLD;
}

static const char *parse_rule(char *first, char **save, unsigned int line,
			      struct fault_rules *rules)
{
	const struct name *kind = find(kinds, first);
	struct fault_rule *rule = &rules->rules[rules->count];
	char *word;

	if (kind == NULL)
		return "no such first word";
	if (rules->count == FAULT_RULES_MAX)
		return "too many rules";

	memset(rule, 0, sizeof(*rule));
	rule->line = line;
	rule->kinds = (unsigned int)kind->value;
	rule->last_byte = UINT64_MAX;
	while ((word = strtok_r(NULL, " \t", save)) != NULL) {
		if (!parse_word(word, rule))
			return "unknown word, wrong value or two actions";
	}
	if (!fits(rule))
		return "no action, two ways to choose, or not for this kind";
	rules->count++;
	return NULL;
}

/* NULL, or what is wrong. */
static const char *parse_line(char *text, unsigned int line,
			      struct fault_rules *rules)
{
	char *save;
	char *first = strtok_r(text, " \t", &save);
	char *word;

	if (first == NULL)
		return NULL;
	if (strcmp(first, "seed") == 0) {
		word = strtok_r(NULL, " \t", &save);
		return parse_number(word, UINT64_MAX, &rules->seed) &&
				       strtok_r(NULL, " \t", &save) == NULL
			       ? NULL
			       : "seed takes one number";
	}
	if (strcmp(first, "release") != 0)
		return parse_rule(first, &save, line, rules);

	word = strtok_r(NULL, " \t", &save);
	if (word != NULL && strcmp(word, "reversed") != 0)
		return "release takes nothing, or reversed";
	rules->release = word != NULL ? FAULT_RELEASE_REVERSED
				      : FAULT_RELEASE_IN_ORDER;
	return NULL;
}

bool fault_rules_parse(char *text, struct fault_rules *rules, char *why,
		       size_t size)
{
	unsigned int line = 0;
	char whole[128];
	char *next;
	const char *wrong;

	memset(rules, 0, sizeof(*rules));
	while ((next = strsep(&text, "\n")) != NULL) {
		line++;
		next[strcspn(next, "#\r")] = '\0';
		(void)snprintf(whole, sizeof(whole), "%s", next);
		wrong = parse_line(next, line, rules);
		if (wrong != NULL) {
			(void)snprintf(why, size, "line %u, '%s': %s", line,
				       whole, wrong);
			memset(rules, 0, sizeof(*rules));
			return false;
		}
	}
	return true;
}

/* splitmix64's mixing of a counter, so that no state is kept. */
static uint64_t draw(uint64_t seed, uint64_t line, uint64_t count)
{
	uint64_t z = seed + line * 0xD1B54A32D192ED03ULL +
		     count * 0x9E3779B97F4A7C15ULL;

	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
	return z ^ (z >> 31);
}

static bool concerns(const struct fault_rule *rule,
		     const struct fault_call_id *call)
{
	uint64_t last = call->offset;

	if (call->length_bytes != 0)
		last += call->length_bytes - 1;
	return (rule->kinds & call->kind) != 0 &&
	       (rule->ino == 0 || rule->ino == call->ino) &&
	       call->offset <= rule->last_byte && last >= rule->first_byte;
}

static bool fires(const struct fault_rules *rules,
		  const struct fault_rule *rule)
{
	if (rule->count != 0 && rule->fired >= rule->count)
		return false;
	if (rule->nth != 0)
		return rule->matched == rule->nth;
	if (rule->every != 0)
		return rule->matched % rule->every == 0;
	if (rule->millionths != 0)
		return draw(rules->seed, rule->line, rule->matched) % MILLION <
		       rule->millionths;
	return true;
}

static struct fault_hit hit_of(const struct fault_rules *rules,
			       const struct fault_rule *rule,
			       const struct fault_call_id *call)
{
	uint64_t half = (call->length_bytes + 1) / 2; /* never nothing */
	struct fault_hit hit = {
		.action = rule->action,
		.rule = rule->line,
		.wait_ms = rule->min_ms,
		.error = rule->error,
		.bytes = rule->half ? half : rule->bytes,
		.times = rule->times,
		.later = rule->later,
	};

	/* The upper bits, which did not decide whether it fires. */
	hit.wait_ms += (draw(rules->seed, rule->line, rule->matched) >> 32) %
		       (rule->max_ms - rule->min_ms + 1);
	if (rule->action == FAULT_REORDER)
		hit.wait_ms = REORDER_WAIT_MS;
	return hit;
}

struct fault_hit fault_rules_match(struct fault_rules *rules,
				   const struct fault_call_id *call)
{
	struct fault_hit none = {.action = FAULT_NONE};
	unsigned int i;

	for (i = 0; i < rules->count; i++) {
		struct fault_rule *rule = &rules->rules[i];

		if (!concerns(rule, call))
			continue;
		rule->matched++;
		if (fires(rules, rule)) {
			rule->fired++;
			return hit_of(rules, rule, call);
		}
	}
	return none;
}
