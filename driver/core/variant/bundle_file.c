#include "core/variant/variant.h"

#include "base/sys/fs.h"
#include "base/yaml/yaml.h"

static const char *const kinds[] = {"profile",    "python",     "cuda", "torch",
				    "companions", "extensions", "parts"};

struct bundle_keys {
	const char *profile, *python, *cuda, *torch;
	const char **companions, **extensions;
	unsigned companions_count, extensions_count;
};

PLAIN(bundle_file, struct bundle_keys, NEED(struct bundle_keys, profile),
      MAY(struct bundle_keys, python), MAY(struct bundle_keys, cuda),
      NEED(struct bundle_keys, torch), LIST(struct bundle_keys, companions),
      LIST(struct bundle_keys, extensions));

struct reading {
	const char *path;
	const struct yaml_tree *tree;
	struct arena *a;
	struct bundle_file *ret;
};

/* Returns the value of a profile, torch or extension: a path, unless it names something else. */
static const char *value_of(const struct reading *r, enum set_kind kind, const char *text)
{
	const char *dir = path_from_here(r->a, path_dir(r->a, r->path));
	const char *path = path_absolute(r->a, dir, text);
	const bool named =
		kind == BUNDLE_PROFILE ? strchr(text, '/') || path_has_suffix(text, ".yaml")
		: kind == BUNDLE_TORCH ? path_has_suffix(text, ".whl")
				       : kind == BUNDLE_EXTENSION && fs_exists(TRUSTED, path);

	return named ? path : text;
}

static void add(struct reading *r, enum set_kind kind, const char *text, const struct yaml_tree *at)
{
	const char *place = arena_printf(r->a, "%s:%u:%u", r->path, at->line, at->column);

	if (*text)
		r->ret->rows[r->ret->count++] =
			(struct bundle_row){kind, text, value_of(r, kind, text), place};
}

/* Where the torch comes from; `name` is the text without its version. */
static enum set_torch kind_of_torch(const char *text, const char *name)
{
	if (strcmp(name, "official") == 0)
		return BUNDLE_OFFICIAL;
	if (strcmp(name, "slim") == 0)
		return BUNDLE_SLIM;
	if (strcmp(text, "root") == 0)
		return BUNDLE_ROOT;
	return path_has_suffix(text, ".whl") ? BUNDLE_WHEEL : BUNDLE_RELEASE;
}

static int take_torch(const struct reading *r, const char *text, struct err *e)
{
	struct bundle_file *f = r->ret;
	/* "official", "slim==2.11.0" */
	const char *version, *name = text_pin(text, r->a, &version);

	f->torch = kind_of_torch(text, name);
	f->version = f->torch == BUNDLE_OFFICIAL || f->torch == BUNDLE_SLIM ? version : NULL;
	if (!f->version || version_valid(f->version))
		return 0;
	return err_set(e, ERR_CONFIG, "%s:%u: not a version: '%s'", r->path,
		       yaml_line(r->tree, "torch"), f->version);
}

static int take_companion(struct reading *r, const char *text, const struct yaml_tree *at,
			  struct err *e)
{
	const char *version, *name = text_pin(text, r->a, &version);

	if (version && !version_valid(version))
		return err_set(e, ERR_CONFIG, "%s:%u:%u: not a version: '%s'", r->path, at->line,
			       at->column, version);
	if (tables_package_rank(name) >= TABLES_PACKAGES || package_is_torch(name)) {
		err_set(e, ERR_CONFIG, "%s:%u:%u: torch has no companion '%s'", r->path, at->line,
			at->column, name);
		return err_hint(e, "companions are torchvision and torchaudio, each a line of the "
				   "list; others are "
				   "extensions");
	}

	add(r, BUNDLE_COMPANION, text, at);
	return 0;
}

int bundle_file_load(const char *path, struct arena *a, struct bundle_file *ret, struct err *e)
{
	struct bundle_keys k = {0};
	struct bundle_file f = {0};
	struct reading r = {.path = path, .a = a, .ret = &f};

	if (yaml_load(path, &bundle_file_schema, a, &k, &r.tree, e) < 0 ||
	    take_torch(&r, k.torch, e) < 0)
		return -1;
	if (!k.companions_count && !k.extensions_count) {
		err_set(e, ERR_CONFIG, "%s: a torch alone does not make a set", path);
		return err_hint(e, "name companions (torchvision, torchaudio) or extensions");
	}

	const char *file = path_base(path);
	f.name = path_has_suffix(file, ".yaml")
			 ? arena_strndup(a, file, strlen(file) - strlen(".yaml"))
			 : file;
	if (!path_is_safe_relative(f.name))
		return err_set(e, ERR_USAGE,
			       "the name of the bundle's file has control characters: '%s'",
			       utf8_printable(file, a));
	f.rows = arena_array(a, BUNDLE_COMPANION + k.companions_count + k.extensions_count,
			     sizeof(*f.rows));
	const char *const one[] = {k.profile, k.python, k.cuda, k.torch};
	for (unsigned i = 0; i < ARRAY_LEN(one); i++)
		add(&r, i, one[i], yaml_at(r.tree, "%s", kinds[i]));
	for (unsigned i = 0; i < k.companions_count; i++)
		if (take_companion(&r, k.companions[i], yaml_at(r.tree, "companions/%u", i), e) < 0)
			return -1;
	for (unsigned i = 0; i < k.extensions_count; i++)
		add(&r, BUNDLE_EXTENSION, k.extensions[i], yaml_at(r.tree, "extensions/%u", i));
	*ret = f;
	return 0;
}

char *bundle_row_text(const struct bundle_row *r, struct arena *a)
{
	return arena_printf(a, "%s (%s: %s)", r->place, kinds[r->kind], r->text);
}
