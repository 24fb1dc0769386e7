#include "step/pipeline/make.h"

#include <inttypes.h>

/* The oldest ccache with CCACHE_REMOTE_STORAGE. */
#define CCACHE_OLDEST "4.7"
#define USUAL_BYTES (UINT64_C(30) << 30)
/* Where ptbuild 0.2 and older kept ccache's own directory. */
#define OLD_CACHE "ccache"

/* What shards of a wheel compile was verified by nobody: it has a domain that the last build of that wheel alone reads,
 * and enters another when that is verified. */
static const char *shard_domain(const struct plan *p, struct arena *a)
{
	return arena_printf(a, "shards-%.32s", p->compile_key);
}

static int domains(const struct pipeline_request *q, const struct plan *p, struct arena *a, const char **keep,
		   struct strlist *read, struct err *e)
{
	const char *text = q->options.ccache_domain;
	if (ccache_domain_parse(text ? text : CCACHE_DEFAULT_DOMAIN, a, keep, read, e) < 0)
		return -1;
	if (q->shard.count || q->shard.last)
		strlist_ref(read, a, shard_domain(p, a));
	if (q->shard.count)
		*keep = shard_domain(p, a);
	return 0;
}

/* Packages do not share: whose sources these are, and who could put something into an object, differs. */
static const char *prefix_of(const struct plan *p, const char *domain, struct arena *a)
{
	return path_join(a, domain, p->package);
}

static const char *place_of(const char *store, const char *prefix, struct arena *a)
{
	return path_join(a, path_join(a, store, STORE_COMPILED), prefix);
}

static const char *group_of(const struct plan *p, struct arena *a)
{
	AUTO_BUF struct buf text = {0};
	char *digest = arena_alloc(a, DIGEST_HEX_LEN + 1);
	for (unsigned i = 0; i < p->package_row->sources_count; i++)
		buf_printf(&text, "%s %s\n", p->package_row->sources[i].sha256, p->package_row->sources[i].into);
	digest_data(buf_cstr(&text), text.len, digest);
	return digest;
}

int compiled_start(const struct pipeline_request *q, const struct plan *p, const struct toolchain *t,
		   const struct run *run, struct arena *a, struct compiled *ret, struct err *e)
{
	const struct tool *ccache = toolchain_get(t, "ccache");
	struct ccache_remote_request r = {.url = q->fetch.offline ? NULL : q->options.ccache_remote};
	struct strlist read;
	const char *keep;
	*ret = (struct compiled){0};
	if (domains(q, p, a, &keep, &read, e) < 0)
		return -1;
	if (!ccache->path && !r.url)
		return 0;
	if (!ccache->path || version_cmp(ccache->version, CCACHE_OLDEST) < 0) {
		log_warn(run->log,
			 "no compiled objects are taken from the store: the root has %s%s, it needs ccache %s",
			 ccache->path ? "ccache " : "no ccache", ccache->path ? ccache->version : "", CCACHE_OLDEST);
		return 0;
	}
	const char *const *lowers;
	size_t count = store_fallbacks(q->store, &lowers), n = 0;
	struct ccache_place *places = arena_array(a, (count + 1) * (read.count + 1), sizeof(*places));
	for (size_t i = 0; i < read.count; i++)
		strlist_ref(&r.prefixes, a, prefix_of(p, read.items[i], a));
	for (size_t k = 0; k <= count; k++) {
		const char *store = k ? lowers[k - 1] : store_dir(q->store);
		for (size_t i = 0; i < read.count; i++)
			places[n++] = (struct ccache_place){.dir = place_of(store, r.prefixes.items[i], a), .own = !k};
		if (strlist_contains(&read, CCACHE_DEFAULT_DOMAIN) &&
		    fs_is_dir(TRUSTED, path_join(a, store, OLD_CACHE)))
			places[n++] = (struct ccache_place){path_join(a, store, OLD_CACHE), !k, true};
	}
	r.shared = (struct ccache_shared){places, n, p->compile_key, group_of(p, a)};
	if (store_stage(q->store, a, &r.dir, e) < 0)
		return -1;
	struct compiled c = {.dir = r.dir};
	if (ccache_remote_start(&r, run, &c.remote, e) < 0) {
		store_drop_stage(q->store, r.dir);
		return -1;
	}
	*ret = c;
	return 0;
}

void compiled_stop(struct compiled *c, const struct pipeline_request *q, const struct run *run)
{
	struct ccache_remote_stats s = {0};
	if (!c->remote)
		return;
	ccache_remote_stop(c->remote, &s);
	store_drop_stage(q->store, c->dir);
	*c = (struct compiled){.remote_hits = s.remote_hits, .server_failed = s.failures > 0};
	if (s.asked)
		log_info(run->log,
			 "compiler cache: %" PRIu64 " requests, %" PRIu64 " found in the store, %" PRIu64
			 " in fallback stores, %" PRIu64 " on the server%s",
			 s.asked, s.own, s.lower, s.hits, s.failures ? "; some requests failed" : "");
}

int compiled_keep(const struct pipeline_request *q, const struct plan *p, const char *build_dir, const char *domain,
		  const struct run *run, struct arena *a, struct err *e)
{
	const char *url = q->fetch.offline ? NULL : q->options.ccache_remote;
	struct strlist read;
	struct ccache_promoted made;
	size_t sent = 0;
	if (!domain && domains(q, p, a, &domain, &read, e) < 0)
		return -1;
	if (!domain || !fs_exists(build_dir, COMPILED_FRONT))
		return 0;
	const char *prefix = prefix_of(p, domain, a), *store = store_dir(q->store);
	const uint64_t max = q->options.ccache_bytes ? q->options.ccache_bytes : USUAL_BYTES;
	struct ccache_promote_request r = {.top = build_dir,
					   .front = COMPILED_FRONT,
					   .place = place_of(store, prefix, a),
					   .scope = p->compile_key,
					   .group = group_of(p, a),
					   .max_bytes = max};
	if (store_stage(q->store, a, &r.stage, e) < 0)
		return -1;
	int rc = ccache_promote(&r, run, a, &made, e);
	store_drop_stage(q->store, r.stage);
	if (rc < 0)
		return -1;
	if (made.refused)
		log_warn(run->log,
			 "compiler cache: %zu files that the build left there are not what ccache makes: left out",
			 made.refused);
	if (!made.names.count)
		return 0;
	const struct ccache_send to = {url, prefix, r.place, r.group, made.names};
	rc = url ? ccache_remote_send(&to, run, &sent, e) : 0;
	log_info(run->log, "compiler cache: %zu new entries, %.1f MB, kept in domain '%s'%s", made.names.count,
		 (double)made.bytes / 1e6, domain, sent ? arena_printf(a, "; %zu sent to the server", sent) : "");
	const struct gc_options limit = {.kind = GC_CCACHE, .keep_seconds = -1, .max_bytes = (int64_t)max};
	AUTO_ARENA struct arena scratch = {0};
	struct gc_result gone;
	return store_gc(q->store, &limit, run, &scratch, &gone, rc < 0 ? ERR_IGNORED : e) < 0 ? -1 : rc;
}

void compiled_publish(const struct compiled *c, const struct pipeline_request *q, const struct plan *p,
		      const char *build_dir, const struct run *run, struct arena *a)
{
	struct pipeline_request r = *q;
	struct err e = {0};
	if (c->server_failed)
		r.options.ccache_remote = NULL;
	if (compiled_keep(&r, p, build_dir, NULL, run, a, &e) < 0)
		log_warn(run->log, "%s: the wheel is done, but not all that was compiled for it is kept", e.msg);
	err_clear(&e);
	if (q->shard.last && fs_remove(TRUSTED, place_of(store_dir(q->store), shard_domain(p, a), a), &e) < 0)
		log_warn(run->log, "what the shards compiled could not be removed: %s", e.msg);
}
