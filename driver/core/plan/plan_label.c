#include "base/sys/digest.h"
#include "core/plan/plan_parts.h"
#include "core/wheel/wheel.h"

/* Returns the nth package under one label: those of a release share one, by which the others
 * require torch; an extension is built against an existing torch. False: no more packages. */
static bool nth_package(const struct plan_context *c, const struct buildenv_request *request,
			size_t i, struct buildenv_request *q)
{
	const bool alone = c->package->name != NULL;

	*q = *request;
	q->package = alone ? c->variant.package : tables_packages[i];
	q->row = alone ? c->package : tables_package(c->release, q->package);
	q->label = "";
	return q->row && (!alone || i == 0);
}

/* Resolves the environment with a part of the options. False: refused; planning reports why. */
static bool resolve(const struct plan_context *c, struct buildenv_request *q,
		    const struct plan_options *options, struct buildenv *ret)
{
	q->options = options;
	*ret = (struct buildenv){0};
	return buildenv_resolve(q, c->arena, ret, ERR_IGNORED) == 0;
}

/* Whether some package of the release has the feature on without --without. */
static bool gives_up(struct plan_context *c, const struct buildenv_request *request,
		     const char *feature)
{
	struct plan_options usual = c->request->options;
	const struct setting *off = NULL;

	usual.without = (struct strlist){0};
	for (size_t i = 0; i < TABLES_PACKAGES; i++) {
		struct buildenv_request q;
		struct buildenv env;
		if (!nth_package(c, request, i, &q) || !resolve(c, &q, &usual, &env))
			continue;
		const char *name = toggle_name(&q, feature, c->arena);
		const struct setting *s = settings_get(&env.env, name);
		if (!s)
			s = settings_get(&env.cache, name);
		if (s && !setting_is_off(&q, s))
			return true;
		off = s ? s : off;
	}

	if (!off) /* unknown: refused later */
		return true;
	strlist_addf(&c->notes, c->arena, "--without %s changes nothing: %s is %s already (%s)",
		     feature, off->name, off->value, settings_origin(off, c->arena));
	return false;
}

static void add_changed(const struct settings *now, const struct settings *usual,
			const char *package, struct arena *a, struct strlist *ret)
{
	for (size_t i = 0; i < now->count; i++) {
		const struct setting *s = &now->items[i];
		const char *was = settings_value(usual, s->name);
		if (strcmp(s->file, SETTING_COMMAND_LINE) == 0 &&
		    (!was || strcmp(was, s->value) != 0))
			strlist_addf(ret, a, "%s: %s=%s", package, s->name, s->value);
	}
}

/* What sha256sum says of the patches in their order is
 * in the row's digest. Looked up once for many plans. */
static int add_patches(const struct plan_context *c, const struct buildenv_request *q,
		       struct strlist *ret, struct err *e)
{
	struct plan_digests *kept = c->request->digests;
	const char *pinned = q->row->patches ? q->row->patches : "";
	const char *of = arena_printf(c->arena, "patches of %s %s", q->package, c->release->name);
	const char *found = kept ? kvlist_get(&kept->files, of) : NULL;

	if (!c->request->patches_dir || q->row->own_version)
		return 0;
	if (!found) {
		AUTO_BUF struct buf list = {0};
		struct plan p = {.package = q->package};
		char hex[DIGEST_HEX_LEN + 1] = "";
		if (plan_patches(c->request->patches_dir, c->release->name, c->arena, &p, e) < 0)
			return -1;
		for (size_t i = 0; i < p.patches_count; i++)
			buf_printf(&list, "%s  %s\n", p.patches[i].sha256, p.patches[i].name);
		if (list.len)
			digest_data(buf_cstr(&list), list.len, hex);
		found = arena_strdup(c->arena, hex);
		if (kept)
			kvlist_set(&kept->files, kept->arena, of, found);
	}

	if (strcmp(found, pinned) != 0)
		strlist_addf(ret, c->arena, "%s: patches %s", q->package, *found ? found : "none");
	return 0;
}

/* What has the version of a source that is published, and is another: a row of the user's. */
static void add_doubts(const struct plan_context *c, const struct buildenv_request *q,
		       struct strlist *ret)
{
	for (unsigned i = 0; !q->row->name && !q->row->own_version && i < q->row->sources_count;
	     i++) {
		const struct source_row *s = &q->row->sources[i];
		if (*s->sha256 && tables_doubts(c->tables, q->package, q->row->version, s->sha256))
			strlist_addf(ret, c->arena, "%s: source '%s' %s", q->package, s->name,
				     s->sha256);
	}
}

/* Where --set, a patch or a source makes other bytes than the
 * release's own: a word for the label, "own3f9c21ab". */
static int add_own(struct plan_context *c, const struct buildenv_request *request,
		   struct strlist *words, struct err *e)
{
	const struct plan_options *asked = &c->request->options;
	struct plan_options usual = *asked;
	struct strlist lines = {0};
	char hex[DIGEST_HEX_LEN + 1];

	usual.toggles = (struct kvlist){0};
	for (size_t i = 0; i < TABLES_PACKAGES; i++) {
		struct buildenv_request q;
		struct buildenv now, was;
		if (!nth_package(c, request, i, &q))
			continue;
		if (asked->toggles.count && resolve(c, &q, &usual, &was) &&
		    resolve(c, &q, asked, &now)) {
			add_changed(&now.env, &was.env, q.package, c->arena, &lines);
			add_changed(&now.cache, &was.cache, q.package, c->arena, &lines);
		}

		add_doubts(c, &q, &lines);
		if (add_patches(c, &q, &lines, e) < 0)
			return -1;
	}

	if (!lines.count)
		return 0;
	const char *text = strlist_join(&lines, c->arena, ", ");
	digest_data(text, strlen(text), hex);
	strlist_addf(words, c->arena, "own%.8s", hex);
	strlist_addf(&c->notes, c->arena,
		     "the version label ends with 'own%.8s' because the build differs from the "
		     "release: %s%s",
		     hex, text,
		     strstr(text, " patches ")
			     ? "; whether patches apply is seen when the source is unpacked"
			     : "");
	return 0;
}

/* METADATA and search paths are other ones then. */
static void add_libraries(const struct plan_context *c, struct strlist *words)
{
	const char *asked = c->request->options.cuda_libraries;

	if (c->variant.cuda && asked && strcmp(asked, plan_usual_libraries(c)) != 0)
		strlist_addf(words, c->arena, "%scuda", asked);
}

int plan_label(struct plan_context *c, const struct buildenv_request *request, const char **ret,
	       struct err *e)
{
	const struct strlist *without = &c->request->options.without;
	struct strlist words = {0}, given_up = {0};
	const struct blas_row *blas = plan_other_blas(c);

	strlist_ref(&words, c->arena,
		    profile_label(&c->variant.profile, c->variant.cuda, c->arena));
	if (*c->release->label)
		strlist_ref(&words, c->arena, c->release->label);
	if (blas)
		strlist_ref(&words, c->arena, blas->name);
	for (size_t i = 0; i < without->count; i++) {
		AUTO_BUF struct buf word = {0};
		bool gone = gives_up(c, request, without->items[i]);
		for (const char *p = without->items[i]; gone && *p; p++)
			if (isalnum((unsigned char)*p))
				buf_addc(&word, (char)tolower((unsigned char)*p));
		if (word.len && !strlist_contains(&given_up, buf_cstr(&word)))
			strlist_add(&given_up, c->arena, buf_cstr(&word));
	}

	strlist_sort(&given_up);
	for (size_t i = 0; i < given_up.count; i++)
		strlist_addf(&words, c->arena, "no%s", given_up.items[i]);
	add_libraries(c, &words);
	if (add_own(c, request, &words, e) < 0)
		return -1;
	if (c->probed && c->probed->tegra)
		strlist_ref(&words, c->arena, LABEL_TEGRA);
	if (c->request->drift)
		strlist_ref(&words, c->arena, "drift");
	*ret = strlist_join(&words, c->arena, ".");
	return 0;
}

/* The torch that a package's version alone stands for: of
 * the first release that has this version; NULL: none. */
static const char *torch_by_version(const struct plan_context *c)
{
	const struct package_row *own = c->package;
	const char *version = tables_version(own);

	for (unsigned i = 0; i < c->tables->releases_count && !own->name; i++) {
		const struct release_row *r = &c->tables->releases[i];
		const struct package_row *p = tables_package(r, c->variant.package);
		if (p && r->pytorch && strcmp(p->version, version) == 0)
			return r->pytorch->version;
	}

	return NULL;
}

const char *plan_label_of_source(const struct package_row *row, const char *label, struct arena *a)
{
	return row->own_version ? arena_printf(a, "%s.own%.8s", label, row->sources[0].sha256)
				: label;
}

const char *plan_label_with_torch(const struct plan_context *c, const char *label,
				  const char *torch_version)
{
	const char *usual = torch_by_version(c),
		   *marked = plan_label_of_source(c->package, label, c->arena);

	if (!*torch_version ||
	    (usual && strcmp(torch_version, arena_printf(c->arena, "%s+%s", usual, label)) == 0))
		return marked;
	/* What an extension's --set makes other is not in its torch. */
	const struct profile *p = &c->variant.profile;
	const char *own = c->package->name ? profile_label(p, c->variant.cuda, c->arena) : label;
	return arena_printf(c->arena, "%s.%s", marked,
			    label_torch_word(torch_version, own, c->arena));
}
