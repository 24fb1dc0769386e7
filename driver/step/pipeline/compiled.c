#include "step/pipeline/make.h"

#include <inttypes.h>

/* The oldest ccache with CCACHE_REMOTE_STORAGE. */
#define CCACHE_OLDEST "4.7"
#define USUAL_BYTES (UINT64_C(30) << 30)
/* Where ptbuild 0.2 and older kept ccache's own directory. */
#define OLD_CACHE "ccache"

/* What shards of a wheel compile was verified by nobody: it has a domain that the
 * last build of that wheel alone reads, and enters another when that is verified. */
static const char *shard_domain(const struct make *m)
{
	return arena_printf(m->arena, "shards-%.32s", m->plan->compile_key);
}

static int domains(const struct make *m, const char **keep, struct strlist *read, struct err *e)
{
	const char *text = m->q->options.ccache_domain;

	if (ccache_domain_parse(text ? text : CCACHE_DEFAULT_DOMAIN, m->arena, keep, read, e) < 0)
		return -1;
	if (m->q->shard.count || m->q->shard.last)
		strlist_ref(read, m->arena, shard_domain(m));
	if (m->q->shard.count)
		*keep = shard_domain(m);
	return 0;
}

/* Packages do not share: whose sources these are, and
 * who could put something into an object, differs. */
static const char *prefix_of(const struct make *m, const char *domain)
{
	return path_join(m->arena, domain, m->plan->package);
}

static const char *place_of(const struct make *m, const char *store, const char *prefix)
{
	return path_join(m->arena, path_join(m->arena, store, STORE_COMPILED), prefix);
}

static const char *group_of(const struct make *m)
{
	AUTO_BUF struct buf text = {0};
	char *digest = arena_alloc(m->arena, DIGEST_HEX_LEN + 1);
	const struct package_row *row = m->plan->package_row;

	for (unsigned i = 0; i < row->sources_count; i++)
		buf_printf(&text, "%s %s\n", row->sources[i].sha256, row->sources[i].into);
	digest_data(buf_cstr(&text), text.len, digest);
	return digest;
}

static const char *server_of(const struct make *m)
{
	return m->q->fetch.offline ? NULL : m->q->options.ccache_remote;
}

int compiled_start(struct make *m, struct err *e)
{
	const struct tool *ccache = toolchain_get(m->toolchain, "ccache");
	struct ccache_relay_request r = {.url = server_of(m)};
	struct arena *a = m->arena;
	struct strlist read;
	const char *keep;

	if (domains(m, &keep, &read, e) < 0)
		return -1;
	if (!ccache->path && !r.url)
		return 0;
	if (!ccache->path || version_cmp(ccache->version, CCACHE_OLDEST) < 0) {
		log_warn(m->run->log,
			 "no compiled objects are taken from the store: the root has %s%s, it "
			 "needs ccache %s",
			 ccache->path ? "ccache " : "no ccache",
			 ccache->path ? ccache->version : "", CCACHE_OLDEST);
		return 0;
	}

	const char *const *lowers;
	size_t count = store_fallbacks(m->q->store, &lowers), n = 0;
	struct ccache_place *places =
		arena_array(a, (count + 1) * (read.count + 1), sizeof(*places));
	for (size_t i = 0; i < read.count; i++)
		strlist_ref(&r.prefixes, a, prefix_of(m, read.items[i]));
	for (size_t k = 0; k <= count; k++) {
		const char *store = k ? lowers[k - 1] : store_dir(m->q->store);
		for (size_t i = 0; i < read.count; i++)
			places[n++] = (struct ccache_place){
				.dir = place_of(m, store, r.prefixes.items[i]), .own = !k};
		if (strlist_contains(&read, CCACHE_DEFAULT_DOMAIN) &&
		    fs_is_dir(TRUSTED, path_join(a, store, OLD_CACHE)))
			places[n++] =
				(struct ccache_place){path_join(a, store, OLD_CACHE), !k, true};
	}

	r.shared = (struct ccache_shared){places, n, m->plan->compile_key, group_of(m)};
	if (store_stage(m->q->store, a, &r.dir, e) < 0)
		return -1;
	if (ccache_relay_start(&r, m->run, &m->compiled.remote, e) < 0) {
		store_drop_stage(m->q->store, r.dir);
		return -1;
	}

	m->compiled.dir = r.dir;
	return 0;
}

void compiled_stop(struct make *m)
{
	struct ccache_relay_stats s = {0};

	if (!m->compiled.remote)
		return;
	ccache_relay_stop(m->compiled.remote, &s);
	store_drop_stage(m->q->store, m->compiled.dir);
	m->compiled =
		(struct compiled){.remote_hits = s.remote_hits, .server_failed = s.failures > 0};
	if (s.asked)
		log_info(m->run->log,
			 "compiler cache: %" PRIu64 " requests, %" PRIu64
			 " found in the store, %" PRIu64 " in fallback stores, %" PRIu64
			 " on the server%s",
			 s.asked, s.own, s.lower, s.hits,
			 s.failures ? "; some requests failed" : "");
}

/* `url`: of the server; NULL: none. */
static int keep_and_send(const struct make *m, const char *url, struct err *e)
{
	struct strlist read;
	struct ccache_promoted made;
	struct arena *a = m->arena;
	const char *domain;
	size_t sent = 0;

	if (domains(m, &domain, &read, e) < 0)
		return -1;
	if (!domain || !fs_exists(m->build_dir, COMPILED_FRONT))
		return 0;
	const char *prefix = prefix_of(m, domain), *store = store_dir(m->q->store);
	const uint64_t max = m->q->options.ccache_bytes ? m->q->options.ccache_bytes : USUAL_BYTES;
	struct ccache_promote_request r = {.run = m->run,
					   .top = m->build_dir,
					   .front = COMPILED_FRONT,
					   .place = place_of(m, store, prefix),
					   .scope = m->plan->compile_key,
					   .group = group_of(m),
					   .max_bytes = max};
	if (store_stage(m->q->store, a, &r.stage, e) < 0)
		return -1;
	int rc = ccache_promote(&r, a, &made, e);
	store_drop_stage(m->q->store, r.stage);
	if (rc < 0)
		return -1;
	if (made.refused)
		log_warn(
			m->run->log,
			"compiler cache: left out %zu file%s of the build that ccache did not make",
			made.refused, plural(made.refused));
	if (!made.names.count)
		return 0;
	const struct ccache_send to = {url, prefix, r.place, r.group, made.names};
	rc = url ? ccache_relay_send(&to, m->run, &sent, e) : 0;
	log_info(m->run->log, "compiler cache: %zu new entries, %.1f MB, kept in domain '%s'%s",
		 made.names.count, (double)made.bytes / 1e6, domain,
		 sent ? arena_printf(a, "; %zu sent to the server", sent) : "");
	const struct gc_options limit = {
		.kind = GC_CCACHE, .keep_seconds = -1, .max_bytes = (int64_t)max};
	AUTO_ARENA struct arena scratch = {0};
	struct gc_result gone;
	return store_gc(m->q->store, &limit, m->run, &scratch, &gone, rc < 0 ? ERR_IGNORED : e) < 0
		       ? -1
		       : rc;
}

int compiled_keep(const struct make *m, struct err *e)
{
	return keep_and_send(m, server_of(m), e);
}

void compiled_publish(const struct make *m)
{
	struct err e = {0};

	if (keep_and_send(m, m->compiled.server_failed ? NULL : server_of(m), &e) < 0)
		log_warn(m->run->log,
			 "%s: the wheel is done, but not all that was compiled for it is kept",
			 e.msg);
	if (m->q->shard.last &&
	    fs_remove(TRUSTED, place_of(m, store_dir(m->q->store), shard_domain(m)), &e) < 0)
		log_warn(m->run->log, "what the shards compiled could not be removed: %s", e.msg);
}
