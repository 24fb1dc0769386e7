#include "step/bench/bench.h"

#include <math.h>

#include "base/sys/json.h"

#define MARK "{\"bench\": "
#define LINE_MAX_BYTES (256U << 10) /* what is said of a workload has some hundred */
/* Seconds or bytes: ratios of any two are numbers. */
#define VALUE_MIN 1e-12
#define VALUE_MAX 1e15
#define WHY_MAX 500

/* Names and units are shown and compared: plain characters alone. */
static bool is_name(const char *s)
{
	size_t len = s ? strlen(s) : 0;
	if (len == 0 || len > BENCH_NAME_MAX || s[0] == ' ' || s[len - 1] == ' ')
		return false;
	for (; *s; s++)
		if (*s < ' ' || *s > '~')
			return false;
	return true;
}

static bool is_number(const json_t *j, double most, double *ret)
{
	double x = json_number_value(j);
	if (!json_is_number(j) || !isfinite(x) || fabs(x) > most)
		return false;
	*ret = x;
	return true;
}

static const char *add_about(struct bench_said *s, const json_t *row)
{
	const char *torch = json_member(row, "torch"), *cpu = json_member(row, "cpu");
	bool valid_cpu = cpu && (!*cpu || is_name(cpu));
	if (s->torch || !is_name(torch) || !valid_cpu)
		return "not what is known of a torch";
	s->torch = arena_strdup(s->arena, torch);
	s->cpu = arena_strdup(s->arena, cpu);
	s->cuda = json_is_true(json_object_get(row, "cuda"));
	return NULL;
}

static const char *add_begin(struct bench_said *s, const json_t *row)
{
	const char *name = json_member(row, "name");
	if (s->open || !is_name(name) || bench_said_find(s, name) || s->count == BENCH_WORKLOADS_MAX)
		return "not the begin of a workload";
	s->open = arena_strdup(s->arena, name);
	return NULL;
}

static void add(struct bench_said *s, const struct bench_answer *answer)
{
	s->answers = arena_room(s->arena, s->answers, s->count, &s->cap, 64, sizeof(*s->answers));
	s->answers[s->count++] = *answer;
	s->open = NULL;
}

static bool read_sums(const json_t *row, struct bench_answer *a)
{
	const json_t *sums = json_object_get(row, "sums"), *tolerance = json_object_get(row, "tolerance");
	if (json_is_null(sums) && json_is_null(tolerance))
		return true;
	a->has_sums = true;
	if (json_array_size(sums) != 2)
		return false;
	for (size_t i = 0; i < 2; i++)
		if (!is_number(json_array_get(sums, i), INFINITY, &a->sums[i]))
			return false;
	return is_number(tolerance, 1, &a->tolerance) && a->tolerance > 0;
}

/* Words of a Python exception: cut between two characters, and nothing in them moves a cursor. */
static const char *plain(const char *text, struct arena *a)
{
	size_t len = strnlen(text, WHY_MAX);
	while (len > 0 && text[len] && ((unsigned char)text[len] & 0xc0) == 0x80)
		len--;
	char *copy = arena_strndup(a, text, len);
	for (char *p = copy; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = ' ';
	return copy;
}

static const char *add_why(struct bench_said *s, const json_t *row, bool skipped)
{
	const char *why = json_member(row, "why");
	if (!why || !*why)
		return "no reason";
	const struct bench_answer a = {.name = s->open, .why = plain(why, s->arena), .skipped = skipped};
	add(s, &a);
	return NULL;
}

static const char *add_row(struct bench_said *s, const json_t *row)
{
	const char *kind = json_member(row, "bench"), *name = json_member(row, "name");
	if (!kind || s->done)
		return kind ? "a line behind the end" : "not one of its lines";
	if (strcmp(kind, "about") == 0)
		return add_about(s, row);
	if (strcmp(kind, "begin") == 0)
		return add_begin(s, row);
	if (strcmp(kind, "end") == 0) {
		s->done = !s->open;
		return s->done ? NULL : "the end, within a workload";
	}
	if (!name || !s->open || strcmp(name, s->open) != 0)
		return "an answer to what did not begin";
	if (strcmp(kind, "value") == 0) {
		struct bench_answer a = {.name = s->open, .in_mean = json_is_true(json_object_get(row, "mean"))};
		const char *unit = json_member(row, "unit");
		if (!unit || (strcmp(unit, "s") != 0 && strcmp(unit, "bytes") != 0))
			return "a unit that is not known";
		if (!is_number(json_object_get(row, "value"), VALUE_MAX, &a.value) || a.value < VALUE_MIN)
			return "not a value";
		if (!read_sums(row, &a))
			return "not the sums of a result";
		a.unit = arena_strdup(s->arena, unit);
		add(s, &a);
		return NULL;
	}
	if (strcmp(kind, "failed") == 0 || strcmp(kind, "skipped") == 0)
		return add_why(s, row, *kind == 's');
	return "a kind that is not known";
}

void bench_said_line(struct bench_said *s, const char *line, size_t len)
{
	json_error_t why;
	s->lines++;
	if (len < strlen(MARK) || memcmp(line, MARK, strlen(MARK)) != 0) {
		/* The end of a text is kept, which has the error. */
		const size_t room = sizeof(s->words) - 2;
		if (len > room) {
			line += len - room;
			len = room;
		}
		if (s->words_len + len > room) {
			size_t drop = s->words_len + len - room;
			memmove(s->words, s->words + drop, s->words_len - drop);
			s->words_len -= drop;
		}
		memcpy(s->words + s->words_len, line, len);
		s->words_len += len;
		for (size_t i = s->words_len - len; i < s->words_len; i++)
			if (!s->words[i])
				s->words[i] = ' ';
		s->words[s->words_len++] = '\n';
		s->words[s->words_len] = '\0';
		return;
	}
	if (s->wrong)
		return;
	AUTO_JSON json_t *row = len <= LINE_MAX_BYTES ? json_loadb(line, len, JSON_REJECT_DUPLICATES, &why) : NULL;
	const char *wrong = json_is_object(row) ? add_row(s, row) : "not an object";
	if (wrong)
		s->wrong = arena_printf(s->arena, "line %zu: %s", s->lines, wrong);
}

void bench_said_close(struct bench_said *s, const char *why)
{
	const struct bench_answer a = {.name = s->open, .why = why};
	if (s->open)
		add(s, &a);
}

const struct bench_answer *bench_said_find(const struct bench_said *s, const char *name)
{
	return text_search(name, s->answers, s->count, sizeof(*s->answers));
}
