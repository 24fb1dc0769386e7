#include "step/pipeline/shard.h"

#include <string.h>

#include "base/sys/digest.h"
#include "step/compile/backend.h"

int shard_check(const struct plan *p, const struct toolchain *t, struct err *e)
{
	const struct backend *b;
	if (backend_find(p->package_row->backend, &b, e) < 0 || backend_shares(b, p->package, e) < 0)
		return -1;
	if (toolchain_get(t, "ccache")->path)
		return 0;
	err_set(e, ERR_SYSTEM, "the root has no ccache, and nothing else keeps what a shard compiles");
	return err_hint(e, "install the package 'ccache' in the root");
}

const char *shard_tree_key(const struct pipeline_request *q, const struct plan *p, struct arena *a)
{
	char key[DIGEST_HEX_LEN + 1];
	/* The compiler sees where the tree is: elsewhere than in the sandbox all shards must be in the same. */
	if (!q->shard.count || p->elsewhere)
		return p->compile_key;
	const char *text = arena_printf(a, "%s shard %u of %u", p->compile_key, q->shard.index, q->shard.count);
	digest_data(text, strlen(text), key);
	return arena_strdup(a, key);
}

struct build_shard *shard_new(const struct make *m)
{
	struct build_shard *s = arena_alloc(m->arena, sizeof(*s));
	*s = (struct build_shard){m->q->shard.index, m->q->shard.count};
	return m->q->shard.count ? s : NULL;
}

json_t *shard_record(const struct make *m)
{
	const struct build_result *b = &m->build;
	const struct ccache_stats *c = &m->units.ccache;
	double seconds = 0, cpu = 0;
	for (size_t i = 0; i < m->watched.steps_count; i++) {
		seconds += m->watched.steps[i].end - m->watched.steps[i].begin;
		cpu += m->watched.steps[i].cpu_seconds;
	}
	return json_pack("{s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:f,s:f}", "variant", m->plan->variant, "shard",
			 (int)m->shard->index, "shards", (int)m->shard->count, "units", (int)b->share.outputs.count,
			 "of", (int)b->share.units, "common", (int)b->share.common, "compiler_cache_hits",
			 (int)(c->direct_hits + c->preprocessed_hits), "compiler_cache_misses", (int)c->misses,
			 "seconds", seconds, "cpu_seconds", cpu);
}
