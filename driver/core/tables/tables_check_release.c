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

int row_file_name(const struct yaml_place *at, const char *key, const char *text, struct err *e)
{
	(void)key;
	return is_file_name(text) ? 0 : row_bad(at, e, "not a safe file name: '%s'", text);
}

int row_inside(const struct yaml_place *at, const char *key, const char *text, struct err *e)
{
	return path_is_safe_relative(text)
		       ? 0
		       : row_bad(at, e, "%s: '%s' leaves the source tree", key, text);
}

int row_url(const struct yaml_place *at, const char *key, const char *text, struct err *e)
{
	if (is_place(text))
		return 0;
	row_bad(at, e, "'%s': not a URL to fetch it from: '%s'", key, text);
	return err_hint(e, "https://..., http://..., file:///..., deb:ARCHIVE/PATH or "
			   "wheel:NAME==VERSION/FILE");
}

/* Pools are sized by these: a figure that says nothing would let everything run at once. */
int row_memory(const struct yaml_place *at, const char *key, const char *text, struct err *e)
{
	if (yaml_size(at, key, text, e) < 0)
		return -1;
	return size_bytes(text) < 1 << 20
		       ? row_bad(at, e, "'%s' of '%s' is less than 1M", text, key)
		       : 0;
}

static int check_source(const char *file, const struct package_row *p, const struct source_row *s,
			struct err *e)
{
	const struct yaml_place at = {file, s->line};

	if (!*s->sha256 == !*s->unproven)
		return row_bad(&at, e,
			       "'%s' needs a 'sha256', or 'unproven' that says why none is known",
			       s->name);
	if (*s->sha256 && !digest_valid_hex(s->sha256))
		return row_bad(&at, e, "'%s': not a sha256: '%s' (64 lower-case hex digits)",
			       s->name, s->sha256);
	return row_first(&at, p->sources, sizeof(*s), offsetof(struct source_row, line), s, e);
}

static int check_requirements(const struct tables *t, const struct yaml_place *at,
			      const struct package_row *p, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const char *lists[] = {p->requirements, p->tried_with};

	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		if (!*lists[i])
			continue;
		if (!fs_exists(TRUSTED,
			       path_join(&a, path_join(&a, t->dir, "requirements"), lists[i])))
			return row_bad(at, e, "no file '%s' in requirements/", lists[i]);
	}

	return 0;
}

static int check_package(const struct tables *t, const char *file, const struct package_row *p,
			 const char *package, struct err *e)
{
	const struct yaml_place at = {file, p->line};

	for (unsigned i = 0; i < p->sources_count; i++)
		if (check_source(file, p, &p->sources[i], e) < 0)
			return -1;
	if (p->skip_patches_count && !*p->series)
		return row_bad(&at, e, "'skip_patches' without a 'series' to skip them in");
	if (check_requirements(t, &at, p, e) < 0 ||
	    row_settings(t, file, p->settings, p->settings_count, e) < 0)
		return -1;
	for (unsigned i = 0; p->memory && i < p->memory->heavy_count; i++) {
		const struct heavy_row *row = &p->memory->heavy[i];
		if (strspn(row->units, "*?") == strlen(row->units))
			return row_bad(&(struct yaml_place){file, row->line}, e,
				       "'%s' of 'units' fits every unit", row->units);
	}

	for (unsigned i = 0; i < p->settings_count; i++) {
		const struct yaml_place line = {file, p->settings[i].line};
		if (strcmp(p->settings[i].package, package) != 0)
			return row_bad(&line, e, "'%s' is a setting of %s inside %s",
				       p->settings[i].name, p->settings[i].package, package);
		const struct retired_row *gone =
			tables_retired(t, package, p->settings[i].name, p->version);
		if (gone)
			return row_bad(&line, e, "%s %s has no '%s': %s", package, p->version,
				       gone->name, gone->why);
	}

	return 0;
}

/* One word of a version label. */
int row_label(const struct yaml_place *at, const char *key, const char *text, struct err *e)
{
	const bool good = *text && !text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789")];
	return good ? 0
		    : row_bad(at, e, "'%s': not lower-case letters and digits: '%s'", key, text);
}

/* "3.13": what a wheel's tag cp313 is made of. */
int row_python(const struct yaml_place *at, const char *key, const char *text, struct err *e)
{
	size_t digits = strncmp(text, "3.", 2) == 0 ? strspn(text + 2, "0123456789") : 0;
	bool good = (digits == 1 || digits == 2) && !text[2 + digits] && text[2] != '0';
	return good ? 0 : row_bad(at, e, "'%s': not like \"3.13\": '%s'", key, text);
}

static int check_lists(const struct tables *t, const struct yaml_place *at,
		       const struct release_row *r, struct err *e)
{
	for (unsigned i = 0; i < r->pythons_count; i++)
		if (strings_contain(r->pythons, i, r->pythons[i]))
			return row_bad(at, e, "Python '%s' is listed twice", r->pythons[i]);
	for (unsigned i = 0; i < r->toolkits_count; i++) {
		if (!tables_toolkit(t, r->toolkits[i])) {
			row_bad(at, e, "no toolkit '%s' in cuda.yaml", r->toolkits[i]);
			return err_hint(e, "add a row for it, or take it out of 'toolkits'");
		}

		if (strings_contain(r->toolkits, i, r->toolkits[i]))
			return row_bad(at, e, "toolkit '%s' is listed twice", r->toolkits[i]);
	}

	return 0;
}

/* A row behind one for everything would never be taken. */
static int check_worlds(const struct yaml_place *at, const struct release_row *r, struct err *e)
{
	for (unsigned i = 0; i < r->worlds_count; i++) {
		const struct world_row *w = &r->worlds[i];
		if (!is_file_name(w->base))
			return row_bad(at, e, "'worlds': not the name of a base: '%s'", w->base);
		if (!w->cuda_count && !w->platforms_count && i + 1 < r->worlds_count)
			return row_bad(at, e,
				       "'worlds': base '%s' is for everything, so later "
				       "rows have no effect",
				       w->base);
		for (unsigned k = 0; k < w->cuda_count; k++)
			if (!strings_contain(r->toolkits, r->toolkits_count, w->cuda[k]))
				return row_bad(at, e,
					       "'worlds': toolkit '%s' is not among 'toolkits'",
					       w->cuda[k]);
	}

	return 0;
}

/* "2.9.1" or "2.9.1-word", in a file of that name. */
static int check_name(const struct yaml_place *at, const struct release_row *r, struct err *e)
{
	const char *file = path_base(r->file);
	size_t n = strlen(r->name);
	size_t base = strlen(r->base);
	bool has_base = strncmp(r->name, r->base, base) == 0;

	if (has_base)
		has_base = r->name[base] == '\0' || r->name[base] == '-';
	if (!is_file_name(r->name) || !has_base || r->name[n - 1] == '-')
		return row_bad(at, e,
			       "release '%s' must be its base '%s', optionally followed by '-NAME'",
			       r->name, r->base);
	if (strncmp(file, r->name, n) != 0 || strcmp(file + n, ".yaml") != 0)
		return row_bad(at, e, "release '%s' must be in a file '%s.yaml'", r->name, r->name);
	return 0;
}

int tables_check_release(const struct tables *t, const struct release_row *r, struct err *e)
{
	const struct yaml_place at = {r->file, r->line};

	if (check_name(&at, r, e) < 0 || check_lists(t, &at, r, e) < 0 ||
	    check_worlds(&at, r, e) < 0)
		return -1;
	if (r->source_date_epoch < 315532800)
		return row_bad(&at, e,
			       "source_date_epoch %lu is before 1980, which a zip cannot hold",
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

int tables_check_extension(const struct tables *t, const struct yaml_place *at, const void *item,
			   struct err *e)
{
	const struct package_row *row = item;
	AUTO_ARENA struct arena a = {0};

	if (tables_package_rank(row->name) < TABLES_PACKAGES ||
	    strspn(row->name, EXTENSION_LETTERS) != strlen(row->name))
		return row_bad(at, e, "not the name of an extension as file names carry it: '%s'",
			       row->name);
	return check_package(t, path_join(&a, t->dir, "torch_extensions.yaml"), row, row->name, e);
}
