#include "core/plan/buildenv.h"

char *settings_origin(const struct setting *item, struct arena *a)
{
	return item->line ? arena_printf(a, "%s:%u", item->file, item->line)
			  : arena_strdup(a, item->file);
}

void settings_put(struct settings *s, struct arena *a, const struct setting *item)
{
	size_t at = 0, end = s->count;

	while (at < end) {
		size_t middle = at + (end - at) / 2;
		if (strcmp(s->items[middle].name, item->name) < 0)
			at = middle + 1;
		else
			end = middle;
	}

	struct setting new = *item;
	if (at == s->count || strcmp(s->items[at].name, item->name) != 0) {
		s->items = arena_room(a, s->items, s->count, &s->cap, 128, sizeof(*s->items));
		memmove(&s->items[at + 1], &s->items[at], (s->count++ - at) * sizeof(*s->items));
		s->items[at] = new;
		return;
	}

	const struct setting *old = &s->items[at];
	new.check = item->check || old->check;
	new.cache = item->cache || old->cache;
	if (strcmp(old->value, item->value) != 0)
		new.why = arena_printf(a, "%s (instead of '%s' from %s)", item->why, old->value,
				       settings_origin(old, a));
	s->items[at] = new;
}

const struct setting *settings_get(const struct settings *s, const char *name)
{
	return text_find(name, s->items, s->count, sizeof(*s->items));
}

const char *settings_value(const struct settings *s, const char *name)
{
	const struct setting *item = settings_get(s, name);
	return item ? item->value : NULL;
}

bool settings_on(const struct settings *s, const char *name)
{
	const char *value = settings_value(s, name);
	return value && (strcmp(value, "ON") == 0 || strcmp(value, "1") == 0);
}

struct work {
	const struct buildenv_request *q;
	struct arena *a;
	struct settings all;
	struct strlist notes;
};

static const struct setting every_build = {
	.file = SETTING_BUILT_IN, .rule = "every build", .fixed = true};

static struct setting from(const char *file, unsigned line, const char *rule)
{
	return (struct setting){.file = file, .line = line, .rule = rule};
}

static void put(struct work *w, struct setting s, const char *name, const char *value,
		const char *why)
{
	s.name = name;
	s.value = value;
	s.why = why;
	settings_put(&w->all, w->a, &s);
}

static void put_fixed(struct work *w, const char *name, const char *value, const char *why)
{
	put(w, every_build, name, value, why);
}

/* What makes nvcc's objects equal from one run to the next, and small. */
static const char *nvcc_flags(const struct buildenv_request *q, struct arena *a)
{
	const struct toolkit *k = q->toolkit;
	const struct toolkit_row *row = tables_toolkit(q->tables, k->version);
	struct strlist flags = {0};

	/* PyTorch itself has it among its flags. */
	if (!package_is_torch(q->package))
		strlist_ref(&flags, a, "-Xfatbin -compress-all");
	if (row && *row->compress && strlist_contains(&k->options, "--compress-mode"))
		strlist_addf(&flags, a, "-compress-mode=%s", row->compress);
	if (strlist_contains(&k->options, "--objdir-as-tempdir"))
		strlist_ref(&flags, a, "-objtemp");
	return strlist_join(&flags, a, " ");
}

/* What a CUDA build must know of the toolkit: its place, the compilers that its
 * nvcc accepts, nvcc's flags, for which each package has a variable of its own. */
static void layer_cuda(struct work *w)
{
	static const struct setting of_toolkit = {
		.file = SETTING_BUILT_IN, .rule = "the root's CUDA toolkit", .fixed = true};
	static const struct {
		const char *package, *backend, *name;
	} names[] = {{"torchvision", "setuptools", "NVCC_FLAGS"},
		     {"torchaudio", "setuptools-cmake", "CUDAFLAGS"},
		     /* Its setup.py has no variable for flags; nvcc reads this one itself. */
		     {"torchaudio", "setuptools", "NVCC_APPEND_FLAGS"}};
	const struct buildenv_request *q = w->q;
	const struct toolkit *k = q->toolkit;

	if (!k || q->profile->gpu != GPU_CUDA)
		return;
	const char *accepts =
		arena_printf(w->a, "nvcc %s accepts GCC up to %u", k->version, k->gcc_max);
	put(w, of_toolkit, "CC", k->cc, accepts);
	put(w, of_toolkit, "CXX", k->cxx, accepts);
	put(w, of_toolkit, "CUDAHOSTCXX", k->cxx_path,
	    "nvcc's host compiler is the one that "
	    "compiles all else");
	put(w, of_toolkit, "CUDA_HOME", k->home,
	    arena_printf(w->a, "CUDA %s of the root", k->version));
	put(w, of_toolkit, "CUDACXX", k->nvcc, arena_printf(w->a, "nvcc of CUDA %s", k->version));
	if (k->layout != TOOLKIT_DISTRIBUTION) {
		put(w, of_toolkit, "CUDA_PATH", k->home, "where CMake looks for the toolkit");
		put(w, of_toolkit, "PATH",
		    arena_printf(w->a, "%s:%s", path_dir(w->a, k->nvcc), q->path),
		    "the toolkit's nvcc before any other");
	}

	/* For an extension: nvcc reads this variable itself, whatever the extension does. */
	const char *name = q->row->name ? "NVCC_APPEND_FLAGS" : "TORCH_NVCC_FLAGS",
		   *flags = nvcc_flags(q, w->a);
	for (size_t i = 0; i < ARRAY_LEN(names) && !q->row->name; i++)
		if (strcmp(q->package, names[i].package) == 0 &&
		    strcmp(q->row->backend, names[i].backend) == 0)
			name = names[i].name;
	if (*flags)
		put(w, of_toolkit, name, flags,
		    "GPU code is compressed; temporary files are named after the object, not after "
		    "the process, so "
		    "that objects are equal");
}

bool buildenv_uses_cmake(const char *backend)
{
	return strcmp(backend, "setuptools") != 0 && strcmp(backend, TABLES_EXTENSION_BACKEND) != 0;
}

char *buildenv_capability(const struct gpu_target *t, struct arena *a)
{
	return arena_printf(a, "%s%s%s", t->row->capability, t->suffix, t->ptx ? "+PTX" : "");
}

char *buildenv_arch_list(const struct profile *p, struct arena *a)
{
	struct strlist l = {0};

	for (unsigned i = 0; i < p->targets_count; i++)
		strlist_ref(&l, a, buildenv_capability(&p->targets[i], a));
	return strlist_join(&l, a, ";");
}

/* Compares only as many components as `max` has: 9.10.2.21
 * is not newer than a "9.10" that means all of 9.10. */
static bool newer_than_line(const char *version, const char *max)
{
	unsigned dots = 0;

	for (const char *c = max; *c; c++)
		dots += *c == '.';
	char cut[64];
	size_t n = 0;
	for (; version[n] && n + 1 < sizeof(cut); n++) {
		if (version[n] == '.' && dots-- == 0)
			break;
		cut[n] = version[n];
	}

	cut[n] = '\0';
	return version_cmp(cut, max) > 0;
}

const struct gpu_target *buildenv_cudnn_dropped(const struct profile *p)
{
	for (unsigned i = 0; i < p->targets_count; i++) {
		if (*p->targets[i].row->cudnn_max)
			return &p->targets[i];
	}

	return NULL;
}

char *buildenv_cudnn_reason(const struct gpu_target *t, const struct package_row *row,
			    struct arena *a)
{
	const char *max = t->row->cudnn_max, *which = "this release names none";

	if (*row->cudnn && newer_than_line(row->cudnn, max))
		which = arena_printf(a, "this release uses %s", row->cudnn);
	else if (*row->cudnn)
		which = "a root may hold a newer one (--set USE_CUDNN=ON where it does not)";
	return arena_printf(a, "cuDNN %s is the last that supports sm%s, and %s", max, t->row->sm,
			    which);
}

/* What holds for every build, whatever is built. */
static void layer_common(struct work *w)
{
	bool apple = strcmp(w->q->profile->platform, "aarch64-darwin") == 0;

	put_fixed(w, "PATH", w->q->path, "the root's own tools, nothing of the user's");
	put_fixed(w, "LC_ALL", "C.UTF-8", "messages and sorting do not depend on the machine");
	put_fixed(w, "TZ", "UTC", "times do not depend on the machine");
	put_fixed(w, "HOME", SANDBOX_HOME, "an empty home: no configuration of the user's");
	put_fixed(w, "TMPDIR", SANDBOX_TMP, "the same path in every build");
	put_fixed(w, "PYTHONHASHSEED", "0",
		  "code generators walk sets in the same order each time");
	put_fixed(w, "PYTHONDONTWRITEBYTECODE", "1", "no .pyc files in the source tree");
	put_fixed(w, "SOURCE_DATE_EPOCH",
		  arena_printf(w->a, "%lu", w->q->release->source_date_epoch),
		  "compilers and packers write the release's time, not today's");
	put_fixed(w, "CC", apple ? "clang" : "gcc", "the C compiler is named, not guessed");
	put_fixed(w, "CXX", apple ? "clang++" : "g++", "the C++ compiler is named, not guessed");
	if (!buildenv_uses_cmake(w->q->row->backend))
		return;
	put_fixed(w, "CMAKE_TOOLCHAIN_FILE", SANDBOX_CFG "/entries.cmake",
		  "CMake reads the generated cache entries before anything else");
}

static void layer_flags(struct work *w)
{
	const struct profile *p = w->q->profile;
	struct strlist flags = {0};

	if (p->isa)
		strlist_refs(&flags, w->a, p->isa->flags, p->isa->flags_count);
	tables_cflags(w->q->row, p->platform, w->a, &flags);
	strlist_append(&flags, w->a, &p->extra_cflags);
	if (!flags.count)
		return;
	struct setting s = p->isa ? from("isa.yaml", p->isa->line,
					 arena_printf(w->a, "instruction set %s", p->isa->name))
				  : from(SETTING_BUILT_IN, 0, "flags of the package");
	const char *text = strlist_join(&flags, w->a, " ");
	const char *why = "CPU instruction set; only here, so that nvcc's objects depend on the "
			  "GPU list alone";
	s.fixed = true;
	put(w, s, "CFLAGS", text, why);
	put(w, s, "CXXFLAGS", text, why);
}

static void layer_arch_list(struct work *w)
{
	const struct profile *p = w->q->profile;

	if (p->gpu != GPU_CUDA)
		return;
	struct setting s = from("gpu.yaml", p->targets[0].row->line, "GPU targets");
	s.check = package_is_torch(w->q->package);
	s.fixed = true;
	put(w, s, "TORCH_CUDA_ARCH_LIST", buildenv_arch_list(p, w->a),
	    "the GPU targets of the profile");
}

static void layer_package(struct work *w)
{
	const struct buildenv_request *q = w->q;
	const char *full = arena_printf(w->a, "%s+%s", tables_version(q->row), q->label);

	if (package_is_torch(w->q->package)) {
		put_fixed(w, "PYTORCH_BUILD_VERSION", full,
			  "the wheel's version with the profile's label");
		put_fixed(w, "PYTORCH_BUILD_NUMBER", "1",
			  "required with PYTORCH_BUILD_VERSION; 1 adds no '.post'");
		struct setting checked = every_build;
		checked.check = true;
		put(w, checked, "CMAKE_BUILD_TYPE", "Release",
		    "optimised, without debug information");
		put_fixed(w, "CMAKE_GENERATOR", "Ninja", "one scheduler for all jobs");
		put_fixed(w, "CMAKE_EXPORT_COMPILE_COMMANDS", "ON",
			  "the flags of each unit are read back after configure");
		return;
	}

	if (w->q->row->name) { /* Variables that many extensions read. */
		const bool cuda = w->q->profile->gpu == GPU_CUDA;
		put_fixed(w, "FORCE_CUDA", cuda ? "1" : "0",
			  "the profile says it, not whether this machine has a GPU");
		if (cuda)
			put_fixed(w, "NVCC_THREADS", "1",
				  "jobs are counted by their memory: one compiler each");
		return;
	}

	put_fixed(w, "BUILD_VERSION", full,
		  "the wheel's version with the profile's label; else version.txt's, which ends in "
		  "a0");
	if (*q->torch_version)
		put_fixed(w, "PYTORCH_VERSION", q->torch_version,
			  "the wheel requires exactly this torch");
}

static const char *kind_name(enum gpu_kind kind)
{
	return kind == GPU_CUDA ? "cuda" : kind == GPU_MPS ? "mps" : "cpu";
}

static void layer_toggles(struct work *w)
{
	const struct buildenv_request *q = w->q;
	const char *rule = arena_printf(w->a, "toggle for %s", kind_name(q->profile->gpu));

	for (unsigned i = 0; i < q->tables->toggles_count; i++) {
		const struct toggle_row *row = &q->tables->toggles[i];
		if (strcmp(row->package, q->package) != 0 || !toggle_applies(row, q->row->version))
			continue;
		const char *value = q->profile->gpu == GPU_CUDA  ? row->cuda
				    : q->profile->gpu == GPU_MPS ? row->mps
								 : row->cpu;
		if (!*value)
			continue;
		struct setting s = from("toggles.yaml", row->line, rule);
		s.source = row->source;
		s.check = row->check;
		s.cache = row->cache;
		put(w, s, row->name, value, row->why);
	}
}

/* Within its versions, and no toggle that only other versions have. */
static bool setting_applies(const struct buildenv_request *q, const struct table_setting *s)
{
	const char *version = q->row->version;

	if ((*s->since && version_cmp(version, s->since) < 0) ||
	    (*s->until && version_cmp(version, s->until) >= 0))
		return false;
	if (*s->gpu && strcmp(s->gpu, kind_name(q->profile->gpu)) != 0)
		return false;
	return tables_toggle(q->tables, q->package, s->name, version) ||
	       !tables_toggle(q->tables, q->package, s->name, NULL);
}

/* Settings of a row of the tables. */
struct row_settings {
	const struct table_setting *items;
	unsigned count;
	const char *file, *rule;
	const char *package; /* of those that name none */
};

static void layer_rows(struct work *w, const struct row_settings *q)
{
	const struct table_setting *rows = q->items;

	for (unsigned i = 0; i < q->count; i++) {
		const char *package = *rows[i].package ? rows[i].package : q->package;
		if (strcmp(package, w->q->package) != 0 || !setting_applies(w->q, &rows[i]))
			continue;
		struct setting s = from(q->file, rows[i].line, q->rule);
		s.source = rows[i].source;
		s.cache = rows[i].cache;
		s.fixed = rows[i].fixed;
		put(w, s, rows[i].name, rows[i].value, rows[i].why);
	}
}

static void layer_isa(struct work *w)
{
	const struct isa_row *isa = w->q->profile->isa;

	if (!isa)
		return;
	const char *rule = arena_printf(w->a, "implied by %s", isa->name);
	layer_rows(w, &(struct row_settings){isa->settings, isa->settings_count, "isa.yaml", rule,
					     PACKAGE_TORCH});
}

/* What the release's table says, or that of the extensions. */
static void layer_release(struct work *w)
{
	const struct package_row *row = w->q->row;
	struct row_settings s = {row->settings, row->settings_count, "torch_extensions.yaml",
				 w->q->package, w->q->package};

	if (!row->name) {
		const char *release = w->q->release->name;
		s.file = arena_printf(w->a, "releases/%s.yaml", release);
		s.rule = arena_printf(w->a, "release %s", release);
	}

	layer_rows(w, &s);
}

static void layer_gpu(struct work *w)
{
	const struct profile *p = w->q->profile;

	for (unsigned i = 0; i < p->targets_count; i++) {
		const struct gpu_row *row = p->targets[i].row;
		const char *rule = arena_printf(w->a, "implied by sm%s", row->sm);
		layer_rows(w, &(struct row_settings){row->settings, row->settings_count, "gpu.yaml",
						     rule, PACKAGE_TORCH});
	}

	if (!package_is_torch(w->q->package))
		return;
	const struct gpu_target *t = buildenv_cudnn_dropped(p);
	if (!t)
		return;
	struct setting s =
		from("gpu.yaml", t->row->line, arena_printf(w->a, "cuDNN and sm%s", t->row->sm));
	s.check = true;
	put(w, s, "USE_CUDNN", "OFF", buildenv_cudnn_reason(t, w->q->row, w->a));
}

static void layer_blas(struct work *w)
{
	const struct blas_row *blas = w->q->blas;

	if (!blas)
		return;
	const char *rule = arena_printf(w->a, "implied by %s", blas->name);
	layer_rows(w, &(struct row_settings){blas->settings, blas->settings_count, "blas.yaml",
					     rule, PACKAGE_TORCH});
	const char *why =
		w->q->blas_origin
			? arena_printf(w->a, "asked for in %s", w->q->blas_origin)
			: arena_printf(w->a,
				       "the default of %s; unset, PyTorch falls back to Eigen",
				       w->q->profile->platform);
	struct setting s = from("blas.yaml", blas->line, "BLAS");
	s.check = s.fixed = true;
	put(w, s, "BLAS", blas->cmake, why);
}

static int layer_user(struct work *w, struct err *e)
{
	const struct buildenv_request *q = w->q;

	for (unsigned i = 0; i < q->profile->toggles_count; i++) {
		const struct table_setting *t = &q->profile->toggles[i];
		struct setting s = {.name = t->name,
				    .value = t->value,
				    .file = *q->profile->file ? q->profile->file : t->why,
				    .line = t->line,
				    .rule = "the profile",
				    .why = "asked for by the profile"};
		if (toggle_set(q, &s, w->a, &w->all, &w->notes, e) < 0)
			return -1;
	}

	struct setting s = {.file = SETTING_COMMAND_LINE, .rule = "the command line"};
	for (size_t i = 0; i < q->options->without.count; i++) {
		s.name = toggle_name(q, q->options->without.items[i], w->a);
		s.value = "OFF";
		s.why = arena_printf(w->a, TOGGLE_WITHOUT "%s", q->options->without.items[i]);
		if (toggle_set(q, &s, w->a, &w->all, &w->notes, e) < 0)
			return -1;
	}

	for (size_t i = 0; i < q->options->toggles.count; i++) {
		s.name = q->options->toggles.items[i].key;
		s.value = q->options->toggles.items[i].value;
		s.why = "asked for with --set";
		if (toggle_set(q, &s, w->a, &w->all, &w->notes, e) < 0)
			return -1;
	}

	return 0;
}

/* torchaudio's setup.py turns TORCH_CUDA_ARCH_LIST into
 * this entry: "9.0" is real code only, "9.0+PTX" is both. */
static void add_audio_arch(struct work *w, struct settings *cmake)
{
	const struct profile *p = w->q->profile;

	if (strcmp(w->q->row->backend, "setuptools-cmake") != 0 || p->gpu != GPU_CUDA)
		return;
	struct strlist l = {0};
	for (unsigned i = 0; i < p->targets_count; i++)
		strlist_addf(&l, w->a, "%s%s%s", p->targets[i].row->sm, p->targets[i].suffix,
			     p->targets[i].ptx ? "" : "-real");
	struct setting s = from("gpu.yaml", p->targets[0].row->line, "GPU targets");
	s.name = "CMAKE_CUDA_ARCHITECTURES";
	s.value = strlist_join(&l, w->a, ";");
	s.why = "what torchaudio makes of TORCH_CUDA_ARCH_LIST";
	s.check = true;
	settings_put(cmake, w->a, &s);
}

static void split(struct work *w, struct buildenv *ret)
{
	for (size_t i = 0; i < w->all.count; i++) {
		const struct setting *s = &w->all.items[i];
		settings_put(s->cache ? &ret->cache : &ret->env, w->a, s);
		if (s->cache || s->check)
			settings_put(&ret->cmake, w->a, s);
	}

	add_audio_arch(w, &ret->cmake);
}

int buildenv_resolve(const struct buildenv_request *q, struct arena *a, struct buildenv *ret,
		     struct err *e)
{
	struct work w = {.q = q, .a = a};

	layer_common(&w);
	layer_flags(&w);
	layer_arch_list(&w);
	layer_cuda(&w);
	layer_package(&w);
	layer_toggles(&w);
	layer_isa(&w);
	layer_gpu(&w);
	layer_release(&w);
	layer_blas(&w);
	if (layer_user(&w, e) < 0 || toggle_settle(q, a, &w.all, e) < 0)
		return -1;
	struct buildenv env = {.notes = w.notes};
	split(&w, &env);
	*ret = env;
	return 0;
}
