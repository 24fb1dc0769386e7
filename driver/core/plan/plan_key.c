#include "base/sys/digest.h"
#include "core/code/code.h"
#include "core/plan/plan_parts.h"
#include "core/zip/zip.h"

#define BLAS_BEGINNING (1U << 20)

struct text {
	struct arena *a;
	struct strlist lines;
};

/* A value stays on its line whatever it holds. */
static const char *escape(const char *value, struct arena *a)
{
	AUTO_BUF struct buf b = {0};

	if (!strpbrk(value, "\\\n"))
		return value;
	for (const char *c = value; *c; c++) {
		if (*c == '\\')
			buf_addstr(&b, "\\\\");
		else if (*c == '\n')
			buf_addstr(&b, "\\n");
		else
			buf_addc(&b, *c);
	}

	return arena_strdup(a, buf_cstr(&b));
}

/* "NAME: VALUE", or "NAME: ITEM=VALUE". */
static void put_item(struct text *t, const char *name, const char *item, const char *value)
{
	value = escape(value, t->a);
	char *line = arena_alloc(t->a, strlen(name) + strlen(item) + strlen(value) + sizeof(": ="));
	stpcpy(stpcpy(stpcpy(stpcpy(stpcpy(line, name), ": "), item), *item ? "=" : ""), value);
	strlist_ref(&t->lines, t->a, line);
}

static void put(struct text *t, const char *name, const char *value)
{
	put_item(t, name, "", value);
}

/* Lists whose order matters carry it in the name: "patch 01". */
static void put_nth(struct text *t, const char *name, size_t i, const char *value)
{
	put(t, arena_printf(t->a, "%s %02zu", name, i + 1), value);
}

static void put_settings(struct text *t, const char *name, const struct settings *s)
{
	for (size_t i = 0; i < s->count; i++)
		put_item(t, name, s->items[i].name, s->items[i].value);
}

static char *finish(struct text *t, char key[65])
{
	strlist_sort(&t->lines);
	strlist_ref(&t->lines, t->a, ""); /* the last line ends too */
	char *all = strlist_join(&t->lines, t->a, "\n");
	t->lines.count--;
	digest_data(all, strlen(all), key);
	return all;
}

static void put_sources(struct text *t, const struct package_row *row)
{
	for (unsigned i = 0; i < row->sources_count; i++) {
		const struct source_row *s = &row->sources[i];
		put_nth(t, "source", i,
			arena_printf(t->a, "%s into '%s'%s", s->sha256, s->into,
				     s->keep_top ? " with its top directory" : ""));
	}

	put(t, "series", row->series);
	for (unsigned i = 0; i < row->skip_patches_count; i++)
		put(t, "skipped patch", row->skip_patches[i]);
	for (unsigned i = 0; i < row->prepare_count; i++) {
		struct strlist argv = {0};
		for (unsigned k = 0; k < row->prepare[i].argv_count; k++)
			strlist_addf(&argv, t->a, "'%s'", row->prepare[i].argv[k]);
		put_nth(t, "prepare", i,
			arena_printf(t->a, "in '%s': %s", row->prepare[i].dir,
				     strlist_join(&argv, t->a, " ")));
	}
}

static void put_lines(struct text *t, const char *name, const char *text)
{
	struct strlist lines = {0};

	strlist_split(&lines, t->a, text, "\n");
	for (size_t i = 0; i < lines.count; i++)
		put(t, name, lines.items[i]);
}

/* Adds a BLAS from no package of the root, which the root's fingerprint therefore lacks. A file
 * counts with its size and its beginning, which in an archive is the list of its members. */
static int put_blas(struct text *t, const struct plan_context *c, const struct plan *p,
		    struct err *e)
{
	const struct toolchain *tc = c->request->toolchain;
	const char *place =
		c->blas && *c->blas->place ? settings_value(&p->cache, c->blas->place) : NULL;
	char digest[DIGEST_HEX_LEN + 1];

	if (!tc || !tc->root || !place)
		return 0;
	for (unsigned i = 0; i < c->blas->files_count; i++) {
		const char *real;
		AUTO_MAPPING struct fs_mapping m = {0};
		if (root_find(tc->root, path_join(t->a, place, c->blas->files[i]), t->a, &real, e) <
		    0)
			return -1;
		if (!real) {
			put(t, "blas file", arena_printf(t->a, "%s: absent", c->blas->files[i]));
			continue;
		}

		if (fs_map(root_host_path(tc->root, real, t->a), &m, e) < 0)
			return -1;
		digest_data(m.data, m.size < BLAS_BEGINNING ? m.size : BLAS_BEGINNING, digest);
		put(t, "blas file",
		    arena_printf(t->a, "%s: %zu bytes, %s", c->blas->files[i], m.size, digest));
	}

	return 0;
}

/* Digest of a file that many plans share; "none" if it does not exist and is not `needed`. */
static int digest_of(const struct plan_context *c, const char *path, bool needed, const char **ret,
		     struct err *e)
{
	struct plan_digests *kept = c->request->digests;
	char hex[DIGEST_HEX_LEN + 1] = "none";

	if (kept && (*ret = kvlist_get(&kept->files, path)))
		return 0;
	if ((needed || fs_exists(TRUSTED, path)) && digest_file(path, hex, e) < 0)
		return -1;
	if (kept)
		kvlist_set(&kept->files, kept->arena, path, hex);
	*ret = arena_strdup(c->arena, hex);
	return 0;
}

static int put_requirements(struct text *t, const struct plan_context *c, struct err *e)
{
	const char *name = c->package->requirements;

	if (!*name) {
		put(t, "requirements", "the root's");
		return 0;
	}

	const char *dir = path_join(t->a, c->tables->dir, "requirements"), *digest;
	if (digest_of(c, requirements_path(dir, name, t->a), true, &digest, e) < 0) {
		e->kind = ERR_CONFIG;
		return err_wrap(e, "locked requirements of release '%s'", c->release->name);
	}

	put(t, "requirements", digest);
	return 0;
}

/* `bytes`: the key of what the bytes depend on, which is not who watched over the build. */
static int compile_key(const struct plan_context *c, struct plan *p, char bytes[65], struct err *e)
{
	const struct toolchain *tools = c->request->toolchain;
	struct text t = {.a = c->arena};

	put(&t, "schema", arena_printf(t.a, "%d", PLAN_SCHEMA));
	put(&t, "builder", arena_printf(t.a, "%d", PLAN_BUILDER));
	put(&t, "package", p->package);
	put(&t, "backend", p->package_row->backend);
	put(&t, "platform", p->platform);
	put(&t, "python", p->python);
	put(&t, "cuda", p->cuda ? p->cuda : "none");
	put(&t, "cpu flags", strlist_join(&p->cpu_flags, t.a, " "));
	put(&t, "torch", *p->torch ? p->torch : "none");
	put_settings(&t, "env", &p->env);
	put_settings(&t, "cmake", &p->cmake);
	put_settings(&t, "cache", &p->cache);
	put_sources(&t, p->package_row);
	for (size_t i = 0; i < p->patches_count; i++)
		put_nth(&t, "patch", i, p->patches[i].sha256);
	if (tools)
		put(&t, "root", tools->fingerprint);
	put_lines(&t, "toolchain", tools ? tools->text : "not probed");
	if (put_blas(&t, c, p, e) < 0)
		return -1;
	put_lines(&t, "toolkit", p->torch_toolkit ? p->torch_toolkit->text : "");
	for (unsigned i = 0; i < p->package_row->python_requires_count; i++)
		put(&t, "python requires", p->package_row->python_requires[i]);
	if (put_requirements(&t, c, e) < 0)
		return -1;
	/* Without a sandbox the compiler sees where the machine has things. */
	if (p->elsewhere)
		put(&t, "elsewhere", "the paths are not those in the sandbox");
	if (c->request->sandbox == SANDBOX_NONE && p->torch_toolkit && p->torch_toolkit->mount_from)
		put(&t, "elsewhere", "the toolkit's paths are not those in the sandbox");
	finish(&t, bytes);
	put(&t, "sandbox", p->sandbox);
	p->compile_text = finish(&t, p->compile_key);
	return 0;
}

/* What decides the verdict on the wheel: whole tables where any of their rows may. */
static int put_rules(struct text *t, const struct plan_context *c, const struct plan *p,
		     struct err *e)
{
	const struct tables *tables = c->tables;
	char decoder[32];
	const char *digest;
	const char *checks[] = {"check_common.py", "check_config.py",
				arena_printf(t->a, "check_%s.py",
					     plan_is_extension(p) ? "extension" : p->distribution)};

	put(t, "decoder", decoder_id(decoder));
	put(t, "extensions", tables->extensions_digest);
	put(t, "dispatch", tables->dispatch_digest);
	put(t, "manylinux", tables->manylinux_digest);
	put(t, "threads", tables->threads_digest);
	for (unsigned i = 0; p->isa_row && i < p->isa_row->cpuinfo_count; i++)
		put(t, "promised feature", p->isa_row->cpuinfo[i]);
	if (p->blas_row)
		put(t, "blas info", p->blas_row->info);
	for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
		const char *path =
			path_join(t->a, path_join(t->a, tables->dir, "checks"), checks[i]);
		if (digest_of(c, path, false, &digest, e) < 0)
			return -1;
		put(t, checks[i], digest);
	}

	if (!c->toolkit)
		return 0;
	put(t, "cuda libraries of packages", tables->cuda_libraries_digest);
	/* Kernels that PyTorch's build adds for targets of the plan. */
	const struct profile *profile = &c->variant.profile;
	for (unsigned i = 0; i < c->tables->gpu_extras_count && package_is_torch(p->package); i++) {
		const struct gpu_extra_row *row = &c->tables->gpu_extras[i];
		for (unsigned k = 0;
		     k < profile->targets_count && version_cmp(p->version, row->since) >= 0; k++) {
			const struct gpu_target *g = &profile->targets[k];
			if (strcmp(arena_printf(t->a, "%s%s", g->row->sm, g->suffix), row->base) ==
			    0)
				put(t, "extra target", row->extra);
		}
	}

	return 0;
}

static int output_key(const struct plan_context *c, struct plan *p, const char *bytes,
		      struct err *e)
{
	struct text t = {.a = c->arena};

	put(&t, "schema", arena_printf(t.a, "%d", PLAN_SCHEMA));
	put(&t, "packer", arena_printf(t.a, "%d", PLAN_PACKER));
	put(&t, "zip", zip_writer_id());
	put(&t, "generator", PTBUILD_VERSION);
	put(&t, "tag", p->platform_tag);
	put(&t, "compiled bytes", bytes);
	put(&t, "distribution", p->distribution);
	put(&t, "version", p->version);
	put(&t, "label", p->local_label);
	put(&t, "torch version", *p->torch_version ? p->torch_version : "none");
	/* The SBOM inside the wheel names them. */
	for (unsigned i = 0; i < p->package_row->sources_count; i++)
		put_nth(&t, "source name", i, p->package_row->sources[i].name);
	for (size_t i = 0; i < p->patches_count; i++)
		put_nth(&t, "patch name", i, p->patches[i].name);
	if (p->blas_row && *p->blas_row->linked)
		put(&t, "linked",
		    arena_printf(t.a, "%s, %s", p->blas_row->linked, p->blas_row->licence));
	for (size_t i = 0; i < p->requires.count; i++)
		put(&t, "requires", p->requires.items[i]);
	for (unsigned i = 0; c->toolkit && i < c->toolkit->libraries_count; i++)
		put_nth(&t, "cuda library", i,
			arena_printf(t.a, "%s in %s, %s, below %s",
				     c->toolkit->libraries[i].package, c->toolkit->libraries[i].dir,
				     c->toolkit->libraries[i].older,
				     c->toolkit->libraries[i].below));
	if (c->toolkit)
		put(&t, "cuda libraries", p->cuda_libraries);
	if (put_rules(&t, c, p, e) < 0)
		return -1;
	finish(&t, p->pack_key);
	put(&t, "compile key", p->compile_key);
	put(&t, "metadata rev", arena_printf(t.a, "%u", p->metadata_rev));
	p->output_text = finish(&t, p->output_key);
	return 0;
}

int plan_keys(const struct plan_context *c, struct plan *p, struct err *e)
{
	char bytes[65];
	return compile_key(c, p, bytes, e) < 0 || output_key(c, p, bytes, e) < 0 ? -1 : 0;
}
