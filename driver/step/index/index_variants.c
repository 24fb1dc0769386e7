/* PEP 825 (file names, variants.json) and PEP 850 (providers), drafts of 2026-08 and 2026-10. */

#include "base/sys/file_lock.h"
#include "base/sys/fs.h"
#include "base/sys/json.h"
#include "core/plan/plan.h"
#include "step/index/index_parts.h"

#define SCHEMA "https://variants-schema.wheelnext.dev/peps/850/v0.2.0.json"

struct candidate {
	struct index_wheel wheel;
	/* of the file that says what its variants are; NULL: a wheel without a label */
	const char *stem;
	json_t *props;
	const char *why; /* it is left out; NULL */
};

struct varying {
	const struct index_request *q;
	const struct tables *t;
	index_variant_fn *make;
	const char *to;
	const struct run *run;
	struct arena *a;
	struct index_variants *ret;
	struct candidate *all;
	size_t count;
	bool is_new;      /* the directory */
	json_t *versions; /* by the stem of the file that lists them: label and properties */
};

/* Installers prefer what comes first: code for the GPU. */
static json_t *description(json_t *variants)
{
	return json_pack("{s:s, s:{s:[s, s]}, s:{s:{s:[s], s:s}, s:{s:[s]}}, s:o}", "$schema",
			 SCHEMA, "default-priorities", "namespace", "nvidia", "x86_64", "providers",
			 "nvidia", "requires", "nvidia-variant-provider", "plugin-api",
			 "nvidia_variant_provider.plugin:NvidiaVariantPlugin", "x86_64", "requires",
			 "x86-64-variant-provider", "variants", variants);
}

static char *dump(json_t *doc, struct arena *a)
{
	AUTO_FREE char *text = json_dumps(doc, JSON_INDENT(1) | JSON_SORT_KEYS);
	json_decref(doc);
	return arena_printf(a, "%s\n", text);
}

/* What a label promises, as properties. NULL, with the reason, where there is no word for it.
 * Code for a GPU runs with every driver of its toolkit's major version, as fit_of has it. */
static json_t *properties(const struct varying *v, const struct index_wheel *w, const char **why)
{
	struct promise p;

	promise_of_label(v->t, w->label, v->a, &p);
	*why = !p.binding && !p.gpu_known ? "its label names no profile"
	       : p.isa && !*p.isa->level
		       ? arena_printf(v->a, "no level of processors says '%s'", p.isa->name)
	       : !p.isa && !p.gpu.count ? "its label declares nothing that a variant can express"
					: NULL;
	if (*why)
		return NULL;
	json_t *all = json_object();
	struct strlist archs = {0};
	for (size_t i = 0; i < p.gpu.count; i++) {
		unsigned major, minor;
		if (sscanf(p.gpu.items[i], "%u.%u", &major, &minor) == 2)
			strlist_once(&archs, v->a, arena_printf(v->a, "%u%u_real", major, minor));
	}

	if (archs.count)
		json_object_set_new(
			all, "nvidia",
			json_pack("{s:o, s:[o]}", "sm_arch", json_from_strlist(&archs),
				  "cuda_version_lower_bound",
				  json_sprintf("%.*s.0", (int)strcspn(p.cuda, "."), p.cuda)));
	if (p.isa)
		json_object_set_new(all, "x86_64", json_pack("{s:[s]}", "level", p.isa->level));
	return all;
}

/* Wheels for several Pythons share a label; two labels with
 * the same properties would be chosen between by chance. */
static const char *taken_by(json_t *labels, const char *label, json_t *props)
{
	const char *name;
	json_t *other;

	json_object_foreach(labels, name, other) if (strcmp(name, label) != 0 &&
						     json_equal(other, props)) return name;
	return NULL;
}

static int read_wheel(struct varying *v, const char *file, struct candidate *ret, struct err *e)
{
	struct index_wheel *w = &ret->wheel;

	if (run_check(v->run, e) < 0 || index_read(v->q->dir, file, v->a, w, e) < 0)
		return -1;
	if (!*w->label)
		return 0;
	ret->stem = arena_strndup(v->a, file, strcspn(file, "+"));
	ret->props = properties(v, w, &ret->why);
	if (w->yanked)
		ret->why = "it is yanked";
	json_t *labels = json_object_get(v->versions, ret->stem);
	if (!labels)
		json_object_set_new(v->versions, ret->stem, labels = json_object());
	const char *other = ret->why ? NULL : taken_by(labels, w->label, ret->props);
	if (other)
		ret->why = arena_printf(v->a, "'%s' declares the same", other);
	if (!ret->why)
		json_object_set(labels, w->label, ret->props);
	return 0;
}

/* Without its label a pin would be met by another maker's wheel. */
static const char *lacks(const struct varying *v, const struct index_wheel *w)
{
	for (size_t i = 0; i < w->pins.count; i++) {
		const struct kv *pin = &w->pins.items[i];
		bool found = !strchr(pin->value, '+');
		for (size_t k = 0; !found && k < v->count; k++)
			found = v->all[k].props && !v->all[k].why &&
				strcmp(v->all[k].wheel.project, pin->key) == 0 &&
				specifier_takes(arena_printf(v->a, "==%s", pin->value),
						v->all[k].wheel.version, v->a);
		if (!found)
			return arena_printf(v->a, "it requires %s==%s, which is not a variant",
					    pin->key, pin->value);
	}

	return NULL;
}

static int add_wheel(struct varying *v, struct candidate *c, struct err *e)
{
	const struct index_wheel *w = &c->wheel;
	const char *why = c->why ? c->why : lacks(v, w);

	if (!*w->label && !why) {
		strlist_ref(&v->ret->plain, v->a, w->file);
		return fs_copy(v->q->dir, w->file, path_join(v->a, v->to, w->file), e);
	}

	if (!why) {
		AUTO_JSON json_t *one = json_pack("{s:O}", w->label, c->props);
		const char *json = dump(description(json_incref(one)), v->a), *made;
		log_status(v->run->log, "variant of %s", w->file);
		if (v->make(path_join(v->a, v->q->dir, w->file), w->label, json, v->to, v->run,
			    v->a, &made, e) < 0) {
			if (e->kind != ERR_INTEGRITY)
				return -1;
			c->why = "ptbuild did not pack it";
			err_clear(e);
			return 0;
		}

		strlist_ref(&v->ret->made, v->a, made);
		return 0;
	}

	json_object_del(json_object_get(v->versions, c->stem ? c->stem : ""), w->label);
	strlist_addf(&v->ret->left, v->a, "%s: %s", w->file, why);
	return 0;
}

/* What came from wheels that are gone. */
static int remove_stale(struct varying *v, const struct strlist *files, struct err *e)
{
	struct strlist names = {0};

	if (fs_list(TRUSTED, v->to, v->a, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		const char *name = names.items[i];
		bool own =
			path_has_suffix(name, ".whl") || path_has_suffix(name, INDEX_VARIANTS_FILE);
		if (own && !strlist_contains(&v->ret->made, name) &&
		    !strlist_contains(&v->ret->plain, name) && !strlist_contains(files, name) &&
		    fs_remove(TRUSTED, path_join(v->a, v->to, name), e) < 0)
			return -1;
	}

	return 0;
}

/* What one requires that turns out to be no variant is known then: all is looked at again. */
static int add_all(struct varying *v, struct err *e)
{
	bool again = true;

	while (again) {
		again = false;
		v->ret->made = v->ret->plain = v->ret->left = (struct strlist){0};
		for (size_t i = 0; i < v->count; i++) {
			const char *before = v->all[i].why;
			if (add_wheel(v, &v->all[i], e) < 0)
				return -1;
			again = again || v->all[i].why != before;
		}
	}

	return 0;
}

static int make_all(struct varying *v, struct err *e)
{
	struct strlist names = {0}, files = {0};

	if (fs_list(TRUSTED, v->q->dir, v->a, &names, e) < 0)
		return -1;
	strlist_sort(&names);
	v->all = arena_array(v->a, names.count + 1, sizeof(*v->all));
	for (size_t i = 0; i < names.count; i++)
		if (names.items[i][0] != '.' && path_has_suffix(names.items[i], ".whl") &&
		    read_wheel(v, names.items[i], &v->all[v->count++], e) < 0)
			return -1;
	if (add_all(v, e) < 0)
		return -1;
	log_status_end(v->run->log);
	if (!v->ret->made.count && v->is_new) {
		err_set(e, ERR_USAGE, "no wheel in '%s' can be a variant%s%s", v->q->dir,
			v->ret->left.count ? ": " : "", strlist_join(&v->ret->left, v->a, "; "));
		return err_hint(e, "variants are made of the wheels that ptbuild labels, as "
				   "torch-2.6.0+cpu.avx2-...");
	}

	const char *stem;
	json_t *labels;
	json_object_foreach(v->versions, stem, labels)
	{
		if (!json_object_size(labels))
			continue;
		const char *file = arena_printf(v->a, "%s" INDEX_VARIANTS_FILE, stem);
		const char *text = dump(description(json_incref(labels)), v->a);
		strlist_ref(&files, v->a, file);
		if (fs_write(TRUSTED, path_join(v->a, v->to, file), text, strlen(text), 0644, e) <
		    0)
			return -1;
	}

	return remove_stale(v, &files, e);
}

/* A kill may leave it without its mark, and empty. */
static int check_own(const struct varying *v, const char *mark, struct err *e)
{
	struct strlist names = {0};

	if (!fs_exists(TRUSTED, v->to))
		return 0;
	if (fs_sweep(TRUSTED, v->to, e) < 0 || fs_list(TRUSTED, v->to, v->a, &names, e) < 0)
		return -1;
	if (!names.count || fs_exists(TRUSTED, mark))
		return 0;
	err_set(e, ERR_POLICY, "'%s' was not made by 'ptbuild index --variants'", v->to);
	return err_hint(e, "move it away");
}

static int make_locked(struct varying *v, const struct index_request *pages, struct err *e)
{
	const char *mark = path_join(v->a, v->to, ".ptbuild-variants");

	if (check_own(v, mark, e) < 0)
		return -1;
	v->is_new = !fs_exists(TRUSTED, v->to);
	int rc = fs_mkdirs(TRUSTED, v->to, e) < 0 || fs_write(TRUSTED, mark, "", 0, 0644, e) < 0
			 ? -1
			 : make_all(v, e);
	for (size_t i = 0; i < v->count; i++)
		json_decref(v->all[i].props);
	if (rc == 0)
		rc = index_write(pages, v->a, &v->ret->index, e);
	if (rc < 0 && v->is_new && fs_remove(TRUSTED, v->to, ERR_IGNORED) < 0)
		log_verbose(v->run->log, "'%s' stays", v->to);
	return rc;
}

int index_variants(const struct index_request *q, const struct tables *t, index_variant_fn *make,
		   struct arena *a, struct index_variants *ret, struct err *e)
{
	AUTO_JSON json_t *versions = json_object();
	struct index_variants r = {0};
	struct varying v = {q,      t,     make,    path_join(a, q->dir, VARIANTS_DIR),
			    q->run, a,     &r,      NULL,
			    0,      false, versions};
	const char *base = q->base_url ? arena_printf(a, "%s%s" VARIANTS_DIR "/", q->base_url,
						      path_has_suffix(q->base_url, "/") ? "" : "/")
				       : NULL;
	const struct index_request pages = {.run = q->run, .dir = v.to, .base_url = base};
	const char *path = path_join(a, q->dir, ".ptbuild-variants.lock");
	struct lock lock = LOCK_NONE;

	if (!fs_is_dir(TRUSTED, q->dir))
		return err_set(e, ERR_USAGE, "not a directory: '%s'", q->dir);
	if (lock_acquire(&lock, path, false, q->run, e) < 0)
		return -1;
	int rc = make_locked(&v, &pages, e);
	lock_drop(&lock, path);
	if (rc < 0)
		return -1;
	*ret = r;
	return 0;
}
