#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "core/tables/tables_parts.h"

#define EXTENSION_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789_"

/* A file name of its own: no directory, no option, nothing hidden. */
static bool is_file_name(const char *s)
{
	return path_is_safe_relative(s) && !strchr(s, '/') && *s != '-' && *s != '.';
}

/* ARCHIVE/PATH */
static bool is_deb_place(const char *s)
{
	const char *slash = strchr(s, '/');
	if (!slash || slash == s || !path_is_safe_relative(slash + 1))
		return false;
	for (const char *c = s; c < slash; c++)
		if (!islower((unsigned char)*c) && *c != '-')
			return false;
	for (const char *c = slash; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("/_.+-~", *c))
			return false;
	return true;
}

static bool is_place(const char *url)
{
	static const char *const schemes[] = {"https://", "http://", "file:///"};
	for (const char *c = url; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f)
			return false;
	if (strncmp(url, "deb:", 4) == 0)
		return is_deb_place(url + 4);
	if (strncmp(url, "wheel:", 6) == 0)
		return strstr(url, "==") && strchr(url, '/');
	for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
		if (strncmp(url, schemes[i], strlen(schemes[i])) == 0)
			return url[strlen(schemes[i])] != '\0';
	return false;
}

static int check_source(const char *file, const struct package_row *p, const struct source_row *s, struct err *e)
{
	const struct row_place at = {file, s->line};
	if (!is_file_name(s->name))
		return row_bad(&at, e, "not a safe file name: '%s'", s->name);
	if (!*s->sha256 == !*s->unproven)
		return row_bad(&at, e, "'%s' needs a 'sha256', or 'unproven' that says why none is known", s->name);
	if (*s->sha256 && !digest_valid_hex(s->sha256))
		return row_bad(&at, e, "'%s': not a sha256: '%s' (64 lower-case hex digits)", s->name, s->sha256);
	for (unsigned i = 0; i < s->urls_count; i++)
		if (!is_place(s->urls[i])) {
			row_bad(&at, e, "'%s': not a place to fetch it from: '%s'", s->name, s->urls[i]);
			return err_hint(
				e,
				"https://..., http://..., file:///..., deb:ARCHIVE/PATH or wheel:NAME==VERSION/FILE");
		}
	if (*s->into && !path_is_safe_relative(s->into))
		return row_bad(&at, e, "'%s' leaves the source tree", s->into);
	return row_first(&at, p->sources, sizeof(*s), offsetof(struct source_row, line), s, e);
}

/* "setuptools>=62.3,<80": a distribution's name and a range. */
static int check_requirement(const struct row_place *at, const char *key, const char *text, struct err *e)
{
	size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
	if (n == 0 || !isalnum((unsigned char)text[0]) || !isalnum((unsigned char)text[n - 1]))
		return row_bad(at, e, "'%s': not a requirement: '%s' (NAME or NAME>=1.2,<3)", key, text);
	return row_range(at, key, text + n, e);
}

static int check_platforms(const struct row_place *at, const char *const *list, unsigned count, struct err *e)
{
	static const char *const platforms[] = {"x86_64-linux", "aarch64-linux"};
	return row_all_of(at, "platforms", list, count, platforms, ARRAY_LEN(platforms), e);
}

static int check_cuda_require(const char *file, const struct cuda_require_row *row, struct err *e)
{
	const struct row_place at = {file, row->line};
	if (check_requirement(&at, "cuda_requires", row->requirement, e) < 0 ||
	    row_range(&at, "cuda", row->cuda, e) < 0)
		return -1;
	return check_platforms(&at, row->platforms, row->platforms_count, e);
}

static int check_requirements(const struct tables *t, const struct row_place *at, const struct package_row *p,
			      struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	for (unsigned i = 0; i < p->python_requires_count; i++)
		if (check_requirement(at, "python_requires", p->python_requires[i], e) < 0)
			return -1;
	for (unsigned i = 0; i < p->install_requires_count; i++)
		if (check_requirement(at, "install_requires", p->install_requires[i], e) < 0)
			return -1;
	for (unsigned i = 0; i < p->cuda_requires_count; i++)
		if (check_cuda_require(at->file, &p->cuda_requires[i], e) < 0)
			return -1;
	const char *lists[] = {p->requirements, p->tried_with};
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		if (!*lists[i])
			continue;
		if (!is_file_name(lists[i]))
			return row_bad(at, e, "not a safe file name: '%s'", lists[i]);
		if (!fs_exists(TRUSTED, path_join(&a, path_join(&a, t->dir, "requirements"), lists[i])))
			return row_bad(at, e, "no file '%s' in requirements/", lists[i]);
	}
	return 0;
}

static int check_patches_and_commands(const struct row_place *at, const struct package_row *p, struct err *e)
{
	if (*p->series && !path_is_safe_relative(p->series))
		return row_bad(at, e, "series '%s' leaves the source tree", p->series);
	if (p->skip_patches_count && !*p->series)
		return row_bad(at, e, "'skip_patches' without a 'series' to skip them in");
	for (unsigned i = 0; i < p->skip_patches_count; i++)
		if (!path_is_safe_relative(p->skip_patches[i]))
			return row_bad(at, e, "not a safe file name: '%s'", p->skip_patches[i]);
	for (unsigned i = 0; i < p->prepare_count; i++)
		if (*p->prepare[i].dir && !path_is_safe_relative(p->prepare[i].dir))
			return row_bad(at, e, "'%s' of 'prepare' leaves the source tree", p->prepare[i].dir);
	return 0;
}

static int check_size(const struct row_place *at, const char *key, const char *text, uint64_t least, struct err *e)
{
	uint64_t n;
	if (size_parse(text, &n, e) < 0)
		return err_wrap(e, "%s:%u: '%s'", at->file, at->line, key);
	return n < least ? row_bad(at, e, "'%s' of '%s' is less than 1M", text, key) : 0;
}

static int check_memory(const char *file, const struct memory_row *m, struct err *e)
{
	if (!m)
		return 0;
	/* Pools are sized by these: a figure that says nothing would let everything run at once. */
	const uint64_t least = UINT64_C(1) << 20;
	const struct row_place at = {file, m->line};
	if ((*m->compile && check_size(&at, "compile", m->compile, least, e) < 0) ||
	    (*m->link && check_size(&at, "link", m->link, least, e) < 0))
		return -1;
	for (unsigned i = 0; i < m->heavy_count; i++) {
		const struct row_place line = {file, m->heavy[i].line};
		if (check_size(&line, "bytes", m->heavy[i].bytes, least, e) < 0)
			return -1;
		if (strspn(m->heavy[i].units, "*?") == strlen(m->heavy[i].units))
			return row_bad(&line, e, "'%s' of 'units' fits every unit", m->heavy[i].units);
	}
	return 0;
}

static int check_cflags(const char *file, const struct package_row *p, struct err *e)
{
	for (unsigned i = 0; i < p->extra_cflags_count; i++) {
		const struct cflags_row *row = &p->extra_cflags[i];
		const struct row_place at = {file, row->line};
		if (row_flags(&at, "extra_cflags", row->flags, row->flags_count, e) < 0 ||
		    check_platforms(&at, row->platforms, row->platforms_count, e) < 0)
			return -1;
	}
	return 0;
}

static int check_package(const struct tables *t, const char *file, const struct package_row *p, const char *package,
			 struct err *e)
{
	static const char *const backends[] = {"setup-py-env", "setup-py-cmake-env", "scikit-build-core",
					       "setuptools",   "setuptools-cmake",   TABLES_EXTENSION_BACKEND};
	const struct row_place at = {file, p->line};
	if ((!p->name && row_version(&at, "version", p->version, false, e) < 0) ||
	    row_version(&at, "cudnn", p->cudnn, true, e) < 0 || row_range(&at, "torch", p->torch, e) < 0 ||
	    row_one_of(&at, "backend", p->backend, backends, ARRAY_LEN(backends), e) < 0)
		return -1;
	for (unsigned i = 0; i < p->sources_count; i++)
		if (check_source(file, p, &p->sources[i], e) < 0)
			return -1;
	if (check_patches_and_commands(&at, p, e) < 0 || check_requirements(t, &at, p, e) < 0 ||
	    check_cflags(file, p, e) < 0 || row_settings(t, file, p->settings, p->settings_count, e) < 0 ||
	    check_memory(file, p->memory, e) < 0)
		return -1;
	for (unsigned i = 0; i < p->settings_count; i++) {
		const struct row_place line = {file, p->settings[i].line};
		if (strcmp(p->settings[i].package, package) != 0)
			return row_bad(&line, e, "'%s' is a setting of %s inside %s", p->settings[i].name,
				       p->settings[i].package, package);
		const struct retired_row *gone = tables_retired(t, package, p->settings[i].name, p->version);
		if (gone)
			return row_bad(&line, e, "%s %s has no '%s': %s", package, p->version, gone->name, gone->why);
	}
	return 0;
}

/* "3.13": what a wheel's tag cp313 is made of. */
static bool is_python(const char *s)
{
	const char *minor = s + 2;
	return strncmp(s, "3.", 2) == 0 && strlen(minor) >= 1 && strlen(minor) <= 2 &&
	       strspn(minor, "0123456789") == strlen(minor) && *minor != '0';
}

static int check_lists(const struct tables *t, const struct row_place *at, const struct release_row *r, struct err *e)
{
	for (unsigned i = 0; i < r->pythons_count; i++) {
		if (!is_python(r->pythons[i]))
			return row_bad(at, e, "'pythons': not like \"3.13\": '%s'", r->pythons[i]);
		for (unsigned k = 0; k < i; k++)
			if (strcmp(r->pythons[k], r->pythons[i]) == 0)
				return row_bad(at, e, "Python '%s' is listed twice", r->pythons[i]);
	}
	for (unsigned i = 0; i < r->toolkits_count; i++) {
		if (!tables_toolkit(t, r->toolkits[i])) {
			row_bad(at, e, "no toolkit '%s' in cuda.yaml", r->toolkits[i]);
			return err_hint(e, "add a row for it, or take it out of 'toolkits'");
		}
		for (unsigned k = 0; k < i; k++)
			if (strcmp(r->toolkits[k], r->toolkits[i]) == 0)
				return row_bad(at, e, "toolkit '%s' is listed twice", r->toolkits[i]);
	}
	return 0;
}

/* A row behind one for everything would never be taken. */
static int check_worlds(const struct row_place *at, const struct release_row *r, struct err *e)
{
	for (unsigned i = 0; i < r->worlds_count; i++) {
		const struct world_row *w = &r->worlds[i];
		if (!is_file_name(w->base))
			return row_bad(at, e, "'worlds': not the name of a base: '%s'", w->base);
		if (!w->cuda_count && !w->platforms_count && i + 1 < r->worlds_count)
			return row_bad(at, e, "'worlds': base '%s' is for everything, so no row behind it counts",
				       w->base);
		for (unsigned k = 0; k < w->cuda_count; k++)
			if (!strings_contain(r->toolkits, r->toolkits_count, w->cuda[k]))
				return row_bad(at, e, "'worlds': toolkit '%s' is not among 'toolkits'", w->cuda[k]);
	}
	return 0;
}

/* "2.9.1" or "2.9.1-word", in a file of that name. */
static int check_name(const struct row_place *at, const struct release_row *r, struct err *e)
{
	const char *file = path_base(r->file);
	size_t n = strlen(r->name);
	size_t base = strlen(r->base);
	if (row_version(at, "base", r->base, false, e) < 0)
		return -1;
	if (!is_file_name(r->name) || strncmp(r->name, r->base, base) != 0 ||
	    (r->name[base] != '\0' && r->name[base] != '-') || r->name[n - 1] == '-')
		return row_bad(at, e, "release '%s' is not its base '%s', with or without '-word' behind it", r->name,
			       r->base);
	if (strncmp(file, r->name, n) != 0 || strcmp(file + n, ".yaml") != 0)
		return row_bad(at, e, "release '%s' must be in a file '%s.yaml'", r->name, r->name);
	return 0;
}

int tables_check_release(const struct tables *t, const struct release_row *r, struct err *e)
{
	const struct row_place at = {r->file, r->line};
	if (check_name(&at, r, e) < 0 || check_lists(t, &at, r, e) < 0 || check_worlds(&at, r, e) < 0)
		return -1;
	if (row_range(&at, "cmake", r->cmake, e) < 0 || row_range(&at, "ninja", r->ninja, e) < 0 ||
	    row_range(&at, "gcc", r->gcc, e) < 0 || row_range(&at, "gcc_arm", r->gcc_arm, e) < 0 ||
	    row_range(&at, "clang", r->clang, e) < 0 || row_range(&at, "cuda", r->cuda, e) < 0)
		return -1;
	if (*r->disk && check_size(&at, "disk", r->disk, 0, e) < 0)
		return -1;
	if (r->source_date_epoch < 315532800)
		return row_bad(&at, e, "source_date_epoch %lu is before 1980, which a zip cannot hold",
			       r->source_date_epoch);
	if (!r->pytorch && !r->torchvision && !r->torchaudio)
		return row_bad(&at, e, "release '%s' has no package", r->name);
	for (size_t i = 0; i < TABLES_PACKAGES; i++) {
		const struct package_row *p = tables_package(r, tables_packages[i]);
		if (p && check_package(t, r->file, p, tables_packages[i], e) < 0)
			return -1;
	}
	return 0;
}

int tables_check_extension(const struct tables *t, const struct row_place *at, const void *item, struct err *e)
{
	const struct package_row *row = item;
	AUTO_ARENA struct arena a = {0};
	if (tables_package_rank(row->name) < TABLES_PACKAGES ||
	    strspn(row->name, EXTENSION_LETTERS) != strlen(row->name))
		return row_bad(at, e, "not the name of an extension as file names carry it: '%s'", row->name);
	if (row_range(at, "python", row->python, e) < 0)
		return -1;
	return check_package(t, path_join(&a, t->dir, "torch_extensions.yaml"), row, row->name, e);
}
