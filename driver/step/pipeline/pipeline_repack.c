#include "step/pipeline/make.h"

#include "base/sys/json.h"
#include "step/pack/pack.h"

/* Finds the first wheel of the store, by key, with this pack key and not built with fewer
 * protections, which the pack key lacks, or (`by_name`) of this variant and release, whatever its
 * keys; the caller owns its record. */
/* A wheel in the store that is looked for, and what is found. */
struct search {
	struct store *store;
	const struct plan *plan;
	bool by_name; /* and release, instead of by keys */
	struct arena *arena;
	const char *object; /* NULL: none */
	json_t *record;
};

static void search_release(struct search *s)
{
	json_decref(s->record);
}

static int find(struct search *s, struct err *e)
{
	struct store *store = s->store;
	const struct plan *p = s->plan;
	const bool by_name = s->by_name;
	struct arena *a = s->arena;
	const char *const want[][2] = {
		{by_name ? "variant" : "pack_key", by_name ? p->variant : p->pack_key},
		{by_name ? "release" : "compile_key", by_name ? p->release : p->compile_key}};
	struct store_object *objects;
	size_t count;

	if (store_list(store, a, &objects, &count, e) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		AUTO_JSON json_t *record = NULL;
		if (strcmp(objects[i].kind, STORE_WHEEL) != 0)
			continue;
		const char *path = path_join(a, objects[i].path, "build.json");
		if (json_read(TRUSTED, path, &record, ERR_IGNORED) < 0)
			continue;
		if (strcmp(json_text(record, want[0][0]), want[0][1]) != 0 ||
		    strcmp(json_text(record, want[1][0]), want[1][1]) != 0)
			continue;
		if (!path_is_safe_relative(json_text(record, "wheel")))
			continue;
		if (store_find(store, STORE_WHEEL, objects[i].key, a, &s->object, e) < 0)
			return -1;
		if (s->object) { /* it is not damaged */
			s->record = json_incref(record);
			return 0;
		}
	}

	return 0;
}

static int repack(const struct make *m, const struct search *s, const char *stage, struct err *e)
{
	const char *object = s->object;
	json_t *record = s->record;
	const struct plan *p = m->plan;
	struct pack_result r;
	double start = log_seconds();
	const struct repack_request q = {
		.run = m->run,
		.wheel = path_join(m->arena, object, json_text(record, "wheel")),
		.metadata_rev = p->metadata_rev,
		.generator = "ptbuild " PTBUILD_VERSION,
		.expect_sha256 = json_text(record, "sha256"),
		.level = PACK_LEVEL,
		.out_dir = stage};

	if (repack_wheel(&q, m->arena, &r, e) < 0)
		return -1;
	double seconds = log_seconds() - start;
	json_object_update_new(record,
			       json_pack("{s:s,s:s,s:s,s:I,s:I,s:i,s:s,s:o,s:[{s:s,s:f}]}",
					 "repacked_from", json_text(record, "output_key"), "wheel",
					 r.file, "sha256", r.sha256, "bytes", (json_int_t)r.bytes,
					 "unpacked_bytes", (json_int_t)r.unpacked_bytes,
					 "metadata_rev", (int)p->metadata_rev, "output_key",
					 p->output_key, "output_text", json_or_null(p->output_text),
					 "steps", "step", "repack", "seconds", seconds));
	if (json_write(record, TRUSTED, path_join(m->arena, stage, STORE_RECORD), e) < 0)
		return -1;
	return fs_copy(TRUSTED, path_join(m->arena, object, "build.log"),
		       path_join(m->arena, stage, "build.log"), e);
}

int pipeline_can_repack(struct store *store, const struct plan *p, bool by_name, struct arena *a,
			bool *ret, struct err *e)
{
	struct search s CLEANUP(search_release) = {
		.store = store, .plan = p, .by_name = by_name, .arena = a};
	int rc = find(&s, e);

	*ret = s.object != NULL;
	return rc;
}

int pipeline_repack(const struct make *m, const char **ret, struct err *e)
{
	struct store *store = m->q->store;
	struct search s CLEANUP(search_release) = {
		.store = store, .plan = m->plan, .arena = m->arena};
	const char *stage, *made;

	*ret = NULL;
	if (find(&s, e) < 0)
		return -1;
	if (!s.object)
		return 0;
	log_info(m->run->log, "%s: only the metadata revision is new: repacking %s",
		 m->plan->package, json_text(s.record, "wheel"));
	if (store_stage(store, m->arena, &stage, e) < 0)
		return -1;
	if (repack(m, &s, stage, e) < 0 ||
	    store_publish(store, STORE_WHEEL, m->plan->output_key, stage, m->arena, &made, e) < 0) {
		store_drop_stage(store, stage);
		return -1;
	}

	*ret = made;
	return 0;
}

int pipeline_no_repack(const char *variant, const char *build_line, struct err *e)
{
	err_set(e, ERR_POLICY, "the store has no wheel of '%s'%s", variant,
		build_line ? " that differs in its metadata revision only" : "");
	return build_line ? err_hint(e, "this builds it: %s", build_line) : -1;
}
