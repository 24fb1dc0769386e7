#include "base/path.h"
#include "base/sys/json.h"
#include "base/text.h"
#include "step/pack/cut_parts.h"
#include "step/pack/pack_parts.h"
#include "step/pack/provenance.h"

#define SLIM_ID "slim 2" /* changes when the same wheel would be cut to other bytes */

/* "cu128" of "12.8". */
static char *toolkit_label(const char *version, struct arena *a)
{
	struct strlist digits = {0};
	strlist_split(&digits, a, version, ".");
	if (digits.count > 2) /* 12.8.90 */
		digits.count = 2;
	return arena_printf(a, "cu%s", strlist_join(&digits, a, ""));
}

/* The number behind `mark` and at most `skip` of what is not one: "12.8" of "cuda: Optional[str] = '12.8'". */
static const char *number_behind(const char *text, const char *mark, const char *before, struct arena *a)
{
	for (const char *at = text; (at = strstr(at, mark)); at++) {
		const char *p = at + strlen(mark);
		p += strspn(p, before);
		size_t n = strspn(p, "0123456789.");
		if (n && isdigit((unsigned char)*p))
			return arena_strndup(a, p, n);
	}
	return NULL;
}

/* What a package says of its CUDA: version.py of torch ("cuda: Optional[str] = '12.8'"), of its companions
 * ("__version__ = '0.24.1+cu128'"), or a requirement. "" if nothing does. */
static int find_toolkit(const struct slimming *s, const struct wheel_headers *metadata, struct arena *a,
			const char **ret, struct err *e)
{
	static const char *const runtimes[] = {"nvidia-cuda-runtime-cu12", "nvidia-cuda-runtime-cu11",
					       "nvidia-cuda-runtime", "cuda-toolkit"};
	AUTO_BUF struct buf text = {0};
	const char *file = arena_printf(a, "%s/version.py", s->name.dist), *found = NULL;
	struct strlist requires = {0};
	*ret = s->q->cuda ? toolkit_label(s->q->cuda, a) : "";
	if (**ret)
		return 0;
	if (zip_find(s->zip, file)) {
		if (slim_read(s, file, &text, e) < 0)
			return -1;
		found = number_behind(buf_cstr(&text), "\ncuda", ": =Optional[str]'\"", a);
		const char *label = found ? NULL : strstr(buf_cstr(&text), "+cu");
		if (label && isdigit((unsigned char)label[3]))
			*ret = arena_strndup(a, label + 1, 2 + strspn(label + 3, "0123456789"));
	}
	wheel_headers_all(metadata, "Requires-Dist", a, &requires);
	for (size_t i = 0; !found && !**ret && i < requires.count; i++)
		for (size_t k = 0; !found && k < ARRAY_LEN(runtimes); k++)
			if (strncmp(requires.items[i], runtimes[k], strlen(runtimes[k])) == 0 &&
			    strchr(" =[(", requires.items[i][strlen(runtimes[k])]))
				found = number_behind(requires.items[i], "==", " ", a);
	if (found)
		*ret = toolkit_label(found, a);
	return 0;
}

static int read_headers(const struct slimming *s, const char *name, struct arena *a, struct wheel_headers *ret,
			struct err *e)
{
	AUTO_BUF struct buf text = {0};
	const char *path = path_join(a, s->dist_info, name);
	return slim_read(s, path, &text, e) < 0 ? -1 : wheel_headers_parse(buf_cstr(&text), text.len, path, a, ret, e);
}

static const char *text_of(const struct wheel_headers *h, struct arena *a)
{
	AUTO_BUF struct buf out = {0};
	wheel_headers_write(h, &out);
	return arena_strdup(a, buf_cstr(&out));
}

int slim_texts(const struct slimming *s, struct making *m, struct err *e)
{
	struct wheel_headers metadata, wheel;
	const char *plus = strchr(s->name.version, '+'), *toolkit;
	if (read_headers(s, "METADATA", m->a, &metadata, e) < 0 || read_headers(s, "WHEEL", m->a, &wheel, e) < 0 ||
	    find_toolkit(s, &metadata, m->a, &toolkit, e) < 0)
		return -1;
	toolkit = plus ? plus + 1 : toolkit;
	const char *label = arena_printf(m->a, "%s%s%s", toolkit, *toolkit ? "." : "", m->target->label);
	m->name = s->name;
	m->name.version = arena_printf(m->a, "%.*s+%s", (int)strcspn(s->name.version, "+"), s->name.version, label);
	m->dist_info = wheel_dist_info(&m->name, m->a);
	wheel_headers_set(&metadata, m->a, "Version", m->name.version);
	wheel_headers_set(&wheel, m->a, "Generator", s->q->generator);
	pack_set_build(&wheel, m->a, m->name.build);
	m->metadata = text_of(&metadata, m->a);
	m->wheel = text_of(&wheel, m->a);
	/* What is in the wheel, not how libdeflate packs it: unlike a built wheel it is in no store by this key. */
	char key[DIGEST_HEX_LEN + 1];
	const char *text = arena_printf(m->a, SLIM_ID "\n%s\n%s\n%d\n", s->sha256, label, s->q->nvidia);
	digest_data(text, strlen(text), key);
	m->key = arena_strdup(m->a, key);
	return 0;
}

static json_t *counts(const struct fatbin_count *items, size_t count, struct arena *a)
{
	json_t *list = json_array();
	for (size_t i = 0; i < count; i++)
		json_array_append_new(list,
				      json_pack("{s:s, s:I, s:I}", "code", fatbin_name(&items[i], a), "images",
						(json_int_t)items[i].entries, "bytes", (json_int_t)items[i].bytes));
	return list;
}

json_t *slim_file_json(const struct fatbin_file_cut *f, struct arena *a)
{
	const struct fatbin_cut *c = &f->cut;
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "file", f->name, "bytes_before",
			 (json_int_t)f->before, "bytes", (json_int_t)f->after, "blank", (json_int_t)f->blank,
			 "fat_binaries", (json_int_t)c->containers, "kept", counts(c->kept, c->kept_count, a),
			 "dropped", counts(c->dropped, c->dropped_count, a), "targets_told", json_or_null(c->archs),
			 "left", json_or_null(c->left));
}

static json_t *components(const struct slimming *s, const struct making *m)
{
	json_t *cut = json_array();
	for (size_t i = 0; i < m->files_count; i++) {
		AUTO_JSON json_t *told = slim_file_json(&m->files[i], m->a);
		AUTO_FREE char *text = json_dumps(told, JSON_COMPACT);
		json_array_append_new(cut, json_pack("{s:s, s:s}", "name", "ptbuild:cut", "value", text));
	}
	return json_pack("[{s:s, s:s, s:s, s:s, s:[{s:s, s:s}], s:o}]", "type", "library", "name", s->name.dist,
			 "version", s->name.version, "description", path_base(s->q->wheel), "hashes", "alg", "SHA-256",
			 "content", s->sha256, "properties", cut);
}

char *slim_bill(const struct slimming *s, const struct making *m)
{
	AUTO_JSON json_t *doc = json_pack(
		"{s:s, s:s, s:i, s:{s:s, s:{s:[{s:s, s:s}]}, s:{s:s, s:s, s:s}}, s:o}", "bomFormat", "CycloneDX",
		"specVersion", "1.6", "version", 1, "metadata", "timestamp", size_utc((int64_t)s->epoch, m->a), "tools",
		"components", "type", "application", "name", s->q->generator, "component", "type", "library", "name",
		s->name.dist, "version", m->name.version, "components", components(s, m));
	char *text = json_dumps(doc, JSON_INDENT(1));
	if (!text)
		abort();
	return text;
}

int slim_beside(const struct slimming *s, const struct making *m, struct err *e)
{
	AUTO_JSON json_t *record =
		json_pack("{s:s, s:s, s:s, s:s, s:i, s:{s:s, s:b}, s:{s:[{s:s, s:s}]}}", "wheel", m->result.file,
			  "sha256", m->result.sha256, "generator", s->q->generator, "output_key", m->key,
			  "metadata_rev", 1, "slim", "gpu", m->target->name, "private", m->private, "inputs", "sources",
			  "name", path_base(s->q->wheel), "sha256", s->sha256);
	const char *rev = arena_printf(m->a, "%s.metadata-rev", m->result.path);
	return fs_write(TRUSTED, rev, "1\n", 2, 0644, e) < 0 ? -1
							     : provenance_write(record, m->result.path, NULL, m->a, e);
}
