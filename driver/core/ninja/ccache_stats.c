#include "core/ninja/ninja.h"

#define MAX_COUNTERS 256
#define MAX_NAME 64

static bool is_name(const char *p, size_t len)
{
	if (len == 0 || len > MAX_NAME)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (!((p[i] >= 'a' && p[i] <= 'z') || (p[i] >= '0' && p[i] <= '9') || p[i] == '_'))
			return false;
	}
	return true;
}

static void count(struct ccache_stats *s, const char *name, size_t len, struct arena *a)
{
	for (size_t i = 0; i < s->counters_count; i++) {
		if (strncmp(s->counters[i].name, name, len) == 0 && !s->counters[i].name[len]) {
			s->counters[i].count++;
			return;
		}
	}
	if (s->counters_count < MAX_COUNTERS)
		s->counters[s->counters_count++] = (struct ccache_counter){arena_strndup(a, name, len), 1};
}

static bool is(const char *p, size_t len, const char *name)
{
	return strlen(name) == len && memcmp(p, name, len) == 0;
}

static void take_counter(struct ccache_stats *s, struct ccache_source *source, const char *p, size_t len,
			 struct arena *a)
{
	if (!is_name(p, len))
		return;
	count(s, p, len, a);
	bool direct = is(p, len, "direct_cache_hit"), preprocessed = is(p, len, "preprocessed_cache_hit"),
	     miss = is(p, len, "cache_miss");
	s->direct_hits += direct;
	s->preprocessed_hits += preprocessed;
	s->misses += miss;
	s->remote_hits += is(p, len, "remote_storage_hit");
	if (source) {
		source->hits += direct || preprocessed;
		source->misses += miss;
	}
}

/* A source that is compiled several times becomes one. */
static size_t join_sources(struct ccache_source *sources, size_t n)
{
	size_t kept = 0;
	array_sort(sources, n, sizeof(*sources), text_cmp);
	for (size_t i = 0; i < n; i++) {
		if (kept && strcmp(sources[kept - 1].path, sources[i].path) == 0) {
			sources[kept - 1].hits += sources[i].hits;
			sources[kept - 1].misses += sources[i].misses;
		} else {
			sources[kept++] = sources[i];
		}
	}
	return kept;
}

void ccache_stats_parse(const char *text, size_t len, struct arena *a, struct ccache_stats *ret)
{
	struct ccache_stats s = {.counters = arena_array(a, MAX_COUNTERS, sizeof(*s.counters))};
	const char *end = text + len;
	size_t calls = 0;
	for (const char *p = text; p < end; p++)
		calls += *p == '#';
	s.sources = arena_array(a, calls + 1, sizeof(*s.sources));
	struct ccache_source *source = NULL;
	for (const char *p = text; p < end;) {
		const char *stop = memchr(p, '\n', (size_t)(end - p));
		size_t n = stop ? (size_t)(stop - p) : (size_t)(end - p);
		if (n > 2 && p[0] == '#' && p[1] == ' ') {
			source = NULL;
			if (!memchr(p, '\0', n)) {
				source = &s.sources[s.sources_count++];
				source->path = arena_strndup(a, p + 2, n - 2);
			}
		} else {
			take_counter(&s, source, p, n, a);
		}
		p = stop ? stop + 1 : end;
	}
	array_sort(s.counters, s.counters_count, sizeof(*s.counters), text_cmp);
	s.sources_count = join_sources(s.sources, s.sources_count);
	*ret = s;
}

const struct ccache_source *ccache_stats_source(const struct ccache_stats *s, const char *path)
{
	return text_find(path, s->sources, s->sources_count, sizeof(*s->sources));
}
