#include "base/sys/json.h"
#include "base/sys/machine.h"
#include "core/root/sandbox.h"
#include "core/world/world.h"
#include "step/compile/build_parts.h"
#include "step/pack/pack.h"
#include "step/pipeline/make.h"

/* Fewer units say nothing of a machine's speed. */
#define ENOUGH_UNITS 10

/* The packages that the root is made of; null for a root that is not a world's. */
static json_t *world(const struct pipeline_request *q)
{
	const struct world *w = q->world;

	if (!w)
		return json_null();
	json_t *packages = json_array();
	for (size_t i = 0; i < w->count; i++)
		for (size_t k = 0; k < w->pieces[i].lock.count; k++) {
			const struct world_entry *entry = &w->pieces[i].lock.entries[k];
			json_array_append_new(packages,
					      json_pack("{s:s,s:s,s:s,s:s}", "part",
							w->pieces[i].part->part, "name",
							entry->name, "version", entry->version,
							"sha256", entry->sha256));
		}
	return json_pack("{s:s,s:s,s:s,s:o,s:o}", "name", w->name, "platform", w->platform, "key",
			 w->key, "drift", json_from_strlist(&q->drift), "packages", packages);
}

static json_t *inputs(const struct make *m)
{
	const struct package_row *row = m->plan->package_row;

	JSON_FIELDS(of_source, JSON_FIELD(struct source_row, name),
		    JSON_FIELD(struct source_row, sha256));
	JSON_FIELDS(of_patch, JSON_FIELD(struct plan_patch, name),
		    JSON_FIELD(struct plan_patch, sha256));
	json_t *sources =
		json_rows(row->sources, row->sources_count, sizeof(*row->sources), of_source);
	json_t *patches = json_rows(m->plan->patches, m->plan->patches_count,
				    sizeof(*m->plan->patches), of_patch);
	json_t *torch = m->torch ? json_pack("{s:s,s:s}", "identity", m->torch->identity, "version",
					     m->torch->version)
				 : json_null();
	json_t *root = json_pack("{s:s,s:s}", "id", m->q->root->id, "fingerprint",
				 m->q->root->fingerprint);
	return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "sources", sources, "patches",
			 patches, "python", json_from_strlist(&m->pyenv.have), "torch", torch,
			 "root", root, "world", world(m->q), "toolchain",
			 json_or_null(m->toolchain->text), "sandbox",
			 json_or_null(m->plan->sandbox), "protections",
			 sandbox_protections_json(m->q->kind, m->run));
}

#define REDUCTION(member) JSON_FIELD(struct build_reduction, member)
JSON_FIELDS(reduction_fields, REDUCTION(at), REDUCTION(after), REDUCTION(from), REDUCTION(to),
	    REDUCTION(why));

/* ccache's settings, from the function that gave them to the build. */
static json_t *compiler_cache(const struct make *m)
{
	AUTO_ARENA struct arena a = {0};
	const struct tool *ccache = toolchain_get(m->toolchain, "ccache");
	const struct backend *b;
	struct kvlist env = {0};

	if (!ccache->path || backend_find(m->plan->package_row->backend, &b, ERR_IGNORED) < 0)
		return json_null();
	const struct backend_options o = {.jobs = 1, .ccache = ccache->path};
	backend_env(m->plan, b, &o, &a, &env);
	struct ccache_stats stats = m->units.ccache;
	/* to ccache the store is remote as well */
	stats.remote_hits = (unsigned)m->compiled.remote_hits;
	return report_ccache_json(&stats, ccache->version,
				  kvlist_get(&env, "CCACHE_DEPEND") ? "depend" : "direct",
				  kvlist_get(&env, "CCACHE_SLOPPINESS"));
}

static json_t *build(const struct make *m)
{
	const struct build_result *b = &m->build;
	const struct ccache_stats *c = &m->units.ccache;
	json_t *out = json_pack(
		"{s:f,s:i,s:b,s:i,s:i,s:i,s:i,s:i,s:i}", "seconds", b->seconds, "jobs",
		(int)b->jobs, "resumed", b->resumed, "compiler_cache_hits",
		(int)(c->direct_hits + c->preprocessed_hits), "compiler_cache_misses",
		(int)c->misses, "cache_entries_checked", (int)b->checked.entries,
		"host_units_checked", (int)b->checked.host_units, "device_units_checked",
		(int)b->checked.device_units, "overridden_units", (int)b->checked.overridden);

	json_object_set_new(out, "pools",
			    json_pack("{s:i,s:i,s:i,s:i,s:b}", "total", (int)b->pools.total,
				      "compile", (int)b->pools.compile, "heavy",
				      (int)b->pools.heavy, "link", (int)b->pools.link,
				      "heavy_first", (int)b->pools.heavy_first));
	/* Without any limit there is no figure. */
	json_object_set_new(out, "memory",
			    b->memory > INT64_MAX ? json_null()
						  : json_integer((json_int_t)b->memory));
	json_object_set_new(out, "reductions",
			    json_rows(b->reductions, b->reductions_count, sizeof(*b->reductions),
				      reduction_fields));
	json_object_set_new(out, "processors", json_integer(machine_processors()));
	json_object_set_new(out, "units", report_units_json(&m->units));
	json_object_set_new(out, "compiler_cache", compiler_cache(m));
	return out;
}

static json_t *base_name(const void *file)
{
	return json_string(path_base(*(const char *const *)file));
}

#define LIBRARY(member) JSON_FIELD(struct wheel_vendored, member)
JSON_FIELDS(library_fields, LIBRARY(needed),
	    JSON_BY(struct wheel_vendored, file, "name", base_name), LIBRARY(source),
	    LIBRARY(package), LIBRARY(sha256));

static json_t *checks(const struct verify_run_result *u)
{
	JSON_FIELDS(fields, JSON_AS(struct verify_run_check, name, "check"),
		    JSON_FIELD(struct verify_run_check, ok),
		    JSON_FIELD(struct verify_run_check, detail));
	json_t *out =
		json_pack("{s:b,s:o,s:o}", "ran", u->ran, "why_not", json_or_null(u->why_not),
			  "checks", json_rows(u->checks, u->count, sizeof(*u->checks), fields));
	if (u->run_by)
		json_object_set_new(out, "run_by", json_string(u->run_by));
	return out;
}

static json_t *step(const struct watch_step *s)
{
	return json_pack("{s:s,s:f,s:f,s:I,s:i,s:I,s:I,s:f}", "step", s->name, "seconds",
			 s->end - s->begin, "cpu_seconds", s->cpu_seconds, "peak_memory_bytes",
			 (json_int_t)s->peak_memory, "peak_processes", (int)s->peak_processes,
			 "least_disk_free_bytes", (json_int_t)s->least_disk_free, "tree_bytes",
			 (json_int_t)s->tree_bytes, "peak_memory_pressure", s->peak_pressure);
}

#define PLAN(member) JSON_FIELD(struct plan, member)
#define PACKED(member) JSON_FIELD(struct pack_result, member)

static json_t *record(const struct make *m)
{
	const struct plan *p = m->plan;

	JSON_FIELDS(of_plan, PLAN(variant), PLAN(release), PLAN(isa), PLAN(metadata_rev),
		    PLAN(compile_key), PLAN(pack_key), PLAN(compile_text), PLAN(output_key),
		    PLAN(output_text), PLAN(notes));
	JSON_FIELDS(of_pack, JSON_AS(struct pack_result, file, "wheel"), PACKED(sha256),
		    PACKED(bytes), PACKED(unpacked_bytes), PACKED(files));
	JSON_FIELDS(of_defect, JSON_AS(struct kv, key, "check"), JSON_AS(struct kv, value, "why"));
	json_t *out = json_pack("{s:i, s:s, s:s, s:s}", "schema", 1, "ptbuild", PTBUILD_VERSION,
				"generator", "ptbuild " PTBUILD_VERSION, "made_at",
				size_utc((int64_t)m->watched.started, m->arena));
	json_t *steps = json_array();
	json_add(out, p, of_plan);
	json_add(out, &m->packed, of_pack);
	if (m->captured) /* not built: whose files they are */
		json_object_set_new(out, "captured", json_string(m->captured->package));
	if (p->captured)
		json_object_set_new(out, "code_beyond", json_string(m->verified.code_beyond));
	for (size_t i = 0; i < m->watched.steps_count; i++)
		json_array_append_new(steps, step(&m->watched.steps[i]));
	json_object_update_new(
		out,
		json_pack("{s:s, s:o, s:o, s:o, s:o, s:I, s:I, s:o, s:o, s:o, s:o}", "tag",
			  m->verified.name.platform, "tag_why", json_or_null(m->verified.tag_why),
			  "inputs", inputs(m), "build", build(m), "vendored",
			  json_rows(m->relocated.libraries, m->relocated.count,
				    sizeof(*m->relocated.libraries), library_fields),
			  "rpaths_in_place", (json_int_t)m->relocated.in_place, "elf_files",
			  (json_int_t)m->relocated.elf_files, "verified", verify_json(&m->verified),
			  "used", checks(&m->used), "known_defects",
			  json_rows(p->defects.items, p->defects.count, sizeof(*p->defects.items),
				    of_defect),
			  "steps", steps));
	return out;
}

void collect_units(struct make *m)
{
	double took = 0, expected = 0, walls = 0, cpu = 0;
	size_t count = 0;

	report_units_collect(m->build_dir, &m->watched, m->watched.started,
			     m->plan->package_row->memory, m->run, m->arena, &m->units);
	/* The time of a cache hit would measure the cache. */
	for (size_t i = 0; i < m->units.count; i++) {
		const struct report_unit *u = &m->units.units[i];
		const double seconds =
			u->state == REPORT_MADE ? weights_find(m->weights, u->path) : 0;
		walls += u->end - u->start;
		took += seconds > 0 ? u->end - u->start : 0;
		expected += seconds;
		count += seconds > 0;
	}

	for (size_t i = 0; i < m->watched.steps_count; i++)
		cpu += strcmp(m->watched.steps[i].name, "build") == 0
			       ? m->watched.steps[i].cpu_seconds
			       : 0;
	/* Emulated programs do not show how fast this machine is. */
	if (count >= ENOUGH_UNITS && !m->shard && !m->q->root->emulation)
		weights_learn(m->q->store, m->plan->package, m->weights, took, expected,
			      walls > 0 ? cpu / walls : 0);
}

/* What the build needed of Python, if it was resolved for it. */
static int write_lock(const struct make *m, struct err *e)
{
	const char *lock = m->plan->package_row->requirements;

	return lock && requirements_is_lock(lock)
		       ? fs_copy(TRUSTED, lock, path_join(m->arena, m->stage, PACK_LOCK), e)
		       : 0;
}

int write_record(const struct make *m, struct err *e)
{
	AUTO_JSON json_t *doc = record(m);
	const struct report_request q = {
		.record = doc, .units = &m->units, .watched = &m->watched, .wheel = m->packed.path};

	if (write_lock(m, e) < 0 ||
	    json_write(doc, TRUSTED, path_join(m->arena, m->stage, "build.json"), e) < 0)
		return -1;
	return report_write(&q, path_join(m->arena, m->stage, "build.html"), e);
}

/* A setting of the plan, "" without one. */
static const char *setting(const struct settings *s, const char *name)
{
	const char *value = settings_value(s, name);
	return value ? value : "";
}

/* What the BLAS leaves in the wheel's libraries, with
 * what the world's lock knows of it; NULL: nothing. */
static const struct sbom_linked *sbom_linked(const struct make *m)
{
	const struct blas_row *blas = m->plan->blas_row;
	const struct world *w = m->q->world;

	if (!blas || !*blas->linked)
		return NULL;
	struct sbom_linked *out = arena_alloc(m->arena, sizeof(*out));
	*out = (struct sbom_linked){.name = blas->linked,
				    .version = "",
				    .licence = blas->licence,
				    .sha256 = "",
				    .place = setting(&m->plan->cache, blas->place),
				    .module = blas->pkgconf,
				    .module_dirs = setting(&m->plan->env, "PKG_CONFIG_PATH")};
	for (size_t i = 0; w && i < w->count; i++)
		for (size_t k = 0; k < w->pieces[i].lock.count; k++) {
			const struct world_entry *f = &w->pieces[i].lock.entries[k];
			if (f->kind == WORLD_WHEEL && strcmp(f->name, blas->linked) == 0) {
				out->version = f->version;
				out->sha256 = f->sha256;
			}
		}
	return out;
}

int write_sbom(struct make *m, const char *tree, struct err *e)
{
	const struct sbom_request q = {.run = m->run,
				       .tree = tree,
				       .root = m->q->root,
				       .plan = m->plan,
				       .world = m->q->world,
				       .generator = "ptbuild " PTBUILD_VERSION,
				       .linked = sbom_linked(m),
				       .libraries = m->relocated.libraries,
				       .libraries_count = m->relocated.count};

	return sbom_write(&q, m->arena, &m->licenses, e);
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

	return json_pack("{s:s,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:f,s:f}", "variant", m->plan->variant,
			 "shard", (int)m->shard->index, "shards", (int)m->shard->count, "units",
			 (int)b->share.outputs.count, "of", (int)b->share.units, "common",
			 (int)b->share.common, "compiler_cache_hits",
			 (int)(c->direct_hits + c->preprocessed_hits), "compiler_cache_misses",
			 (int)c->misses, "seconds", seconds, "cpu_seconds", cpu);
}
