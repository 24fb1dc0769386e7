#include "core/tables/tables.h"

#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "base/yaml/yaml.h"

static int check_digest(const struct yaml_place *at, const char *key, const char *text,
			struct err *e)
{
	return digest_valid_hex(text) ? 0
				      : err_set(e, ERR_CONFIG, "%s:%u: '%s': not a sha256: '%.80s'",
						at->file, at->line, key, text);
}

ROW(recorded, struct recorded_row, NEED(struct recorded_row, release),
    NEED(struct recorded_row, package), NEED(struct recorded_row, name),
    NEED(struct recorded_row, sha256, .check = check_digest), MAY(struct recorded_row, url),
    MAY(struct recorded_row, day), NUMBER(struct recorded_row, bytes));
PLAIN(recorded_file, struct recorded_file, ROWS(struct recorded_file, sources, recorded));

int recorded_read(const char *path, struct arena *a, struct recorded_file *ret, struct err *e)
{
	struct recorded_file f = {0};

	if (fs_exists(TRUSTED, path) &&
	    yaml_load(path, &recorded_file_schema, a, &f, NULL, e) < 0) {
		e->kind = ERR_CONFIG;
		return e->hint[0]
			       ? -1
			       : err_hint(e, "'ptbuild fetch --record' writes that file: correct "
					     "the line, or remove the file");
	}

	*ret = f;
	return 0;
}

/* The package with the recorded digests of its sources. */
static struct package_row *with_digests(const struct package_row *p, const char *release,
					const char *package, const struct recorded_file *f,
					struct arena *a)
{
	struct package_row *row = arena_alloc(a, sizeof(*row));
	struct source_row *sources = arena_array(a, p->sources_count, sizeof(*sources));

	*row = *p;
	row->sources = sources;
	for (unsigned i = 0; i < p->sources_count; i++) {
		sources[i] = p->sources[i];
		for (unsigned k = 0; k < f->sources_count; k++) {
			const struct recorded_row *r = &f->sources[k];
			if (*p->sources[i].sha256 || strcmp(r->release, release) != 0 ||
			    strcmp(r->package, package) != 0 ||
			    strcmp(r->name, sources[i].name) != 0)
				continue;
			sources[i].sha256 = r->sha256;
			sources[i].bytes = r->bytes;
			sources[i].recorded = r->day;
		}
	}

	return row;
}

const struct tables *recorded_apply(const struct tables *t, const struct recorded_file *f,
				    struct arena *a)
{
	struct tables *all = arena_alloc(a, sizeof(*all));

	if (!f->sources_count)
		return t;
	*all = *t;
	all->releases = arena_array(a, t->releases_count, sizeof(*all->releases));
	for (unsigned i = 0; i < t->releases_count; i++) {
		struct release_row *r = &all->releases[i];
		*r = t->releases[i];
		struct package_row **rows[TABLES_PACKAGES] = {&r->pytorch, &r->torchvision,
							      &r->torchaudio};
		for (size_t k = 0; k < TABLES_PACKAGES; k++)
			if (*rows[k])
				*rows[k] =
					with_digests(*rows[k], r->name, tables_packages[k], f, a);
	}

	return all;
}

/* In double quotes, as YAML and JSON read them. */
static void put(struct buf *out, const char *key, const char *value)
{
	buf_printf(out, "%s: \"", key);
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			buf_addc(out, '\\');
		if ((unsigned char)*value >= 0x20)
			buf_addc(out, *value);
	}

	buf_addstr(out, "\", ");
}

char *recorded_text(const struct recorded_file *f, struct arena *a)
{
	AUTO_BUF struct buf out = {0};

	buf_addstr(&out, "# Digests of sources as this machine downloaded them, by 'ptbuild fetch "
			 "--record'. Nobody else confirmed them.\n"
			 "sources:\n");
	for (unsigned i = 0; i < f->sources_count; i++) {
		const struct recorded_row *r = &f->sources[i];
		buf_addstr(&out, "  - {");
		put(&out, "release", r->release);
		put(&out, "package", r->package);
		put(&out, "name", r->name);
		put(&out, "sha256", r->sha256);
		put(&out, "url", r->url);
		put(&out, "day", r->day);
		buf_printf(&out, "bytes: %lu}\n", r->bytes);
	}

	return arena_strdup(a, buf_cstr(&out));
}
