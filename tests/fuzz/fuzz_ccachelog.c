/* Any bytes as ccache's log of statistics: sums and lists agree. */
#include <string.h>

#include "core/ninja/ninja.h"
#include "fuzz.h"

static const struct ccache_source *source_of(const struct ccache_stats *s, const char *path)
{
	return text_find(path, s->sources, s->sources_count, sizeof(*s->sources));
}

static unsigned counter(const struct ccache_stats *s, const char *name)
{
	for (size_t i = 0; i < s->counters_count; i++) {
		if (strcmp(s->counters[i].name, name) == 0)
			return s->counters[i].count;
	}

	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_ARENA struct arena a = {0};
	struct ccache_stats s;
	unsigned hits = 0, misses = 0;

	ccache_stats_parse((const char *)data, size, &a, &s);
	for (size_t i = 0; i < s.sources_count; i++) {
		fail_unless(i == 0 || strcmp(s.sources[i - 1].path, s.sources[i].path) < 0);
		fail_unless(source_of(&s, s.sources[i].path) == &s.sources[i]);
		hits += s.sources[i].hits;
		misses += s.sources[i].misses;
	}

	fail_unless(hits <= s.direct_hits + s.preprocessed_hits && misses <= s.misses);
	for (size_t i = 1; i < s.counters_count; i++)
		fail_unless(strcmp(s.counters[i - 1].name, s.counters[i].name) < 0);
	if (s.counters_count < 256)
		fail_unless(counter(&s, "cache_miss") == s.misses &&
			    counter(&s, "direct_cache_hit") == s.direct_hits);
	return 0;
}
