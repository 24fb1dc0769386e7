#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "base/sys/json.h"
#include "step/index/index_parts.h"

enum { METADATA_MAX = 16 << 20, REASON_MAX = 64 * 1024 };

/* Case says nothing in a label, nor which separator is used. */
static char *with_dashes(const char *text, struct arena *a)
{
	char *out = arena_strdup(a, text);

	for (char *c = out; *c; c++)
		*c = strchr("._", *c) ? '-' : (char)tolower((unsigned char)*c);
	return out;
}

/* What it requires wherever it is installed: a pin, else
 * a range, as on torch's stable ABI: "torch>=2.14.0". */
static void read_pins(struct arena *a, struct index_wheel *w)
{
	for (size_t i = 0; i < w->dist.requires_count; i++) {
		const struct requirement *r = &w->dist.requires[i];
		const char *pin = specifier_pin(r->specifier, a);
		if (requirement_holds(r, &w->dist.scope, "", a) == HOLDS_ALWAYS && *r->specifier)
			kvlist_set(pin ? &w->pins : &w->takes, a, with_dashes(r->name, a),
				   pin ? pin : r->specifier);
	}
}

static int read_yank(const char *path, struct arena *a, struct index_wheel *w, struct err *e)
{
	struct buf AUTO_BUF text = {0};
	const char *file = arena_printf(a, "%s.yanked", path);
	struct stat st;

	if (lstat(file, &st) < 0)
		return 0;
	/* Its first line goes into pages that everybody reads. */
	if (!S_ISREG(st.st_mode)) {
		err_set(e, ERR_POLICY, "'%s' is not a regular file: its target would be published",
			file);
		return err_hint(e, "write the reason into a file of that name");
	}

	if (fs_read(path_dir(a, file), path_base(file), REASON_MAX, &text, e) < 0)
		return -1;
	w->yanked = true;
	w->reason = arena_strndup(a, buf_cstr(&text), strcspn(buf_cstr(&text), "\r\n"));
	return 0;
}

/* A wheel that is read. */
struct reading {
	const struct zip_reader *z;
	struct wheel_name n;
	struct arena *a;
};

static int read_metadata(const struct reading *r, struct index_wheel *w, struct err *e)
{
	const struct zip_reader *z = r->z;
	const struct wheel_name *n = &r->n;
	struct arena *a = r->a;
	struct buf AUTO_BUF text = {0};
	struct wheel_headers h;
	const char *info;

	if (wheel_zip_dist_info(z, a, &info, e) < 0)
		return -1;
	/* pip passes such a file over without a word. */
	if (!wheel_version_key(n->version, a))
		return err_set(e, ERR_INTEGRITY, "its version '%s' is not valid by PEP 440",
			       n->version);
	if (!wheel_is_dist_info(n, info, a))
		return err_set(e, ERR_INTEGRITY, "its '%s' is not named after the file", info);
	const char *path = path_join(a, info, "METADATA");
	if (wheel_zip_text(z, path, METADATA_MAX, &text, e) < 0 ||
	    wheel_headers_parse(&(struct file_bytes){buf_cstr(&text), text.len, path}, a, &h, e) <
		    0)
		return -1;
	const char *name = wheel_headers_get(&h, "Name"),
		   *version = wheel_headers_get(&h, "Version");
	const char *python = wheel_headers_get(&h, "Requires-Python");
	if (!name || strcmp(wheel_normalize(name, a), wheel_normalize(n->dist, a)) != 0 ||
	    !version || !wheel_same_version(version, n->version, a))
		return err_set(e, ERR_INTEGRITY, "its METADATA is about '%s' '%s'",
			       name ? name : "", version ? version : "");
	char digest[DIGEST_HEX_LEN + 1];
	digest_data(buf_cstr(&text), text.len, digest);
	w->spelt_so = strcmp(name, with_dashes(wheel_normalize(name, a), a)) == 0;
	w->metadata = arena_strndup(a, buf_cstr(&text), text.len);
	w->metadata_len = text.len;
	w->metadata_sha256 = arena_strdup(a, digest);
	w->requires_python = python ? python : "";
	dist_of_headers(&h, n, a, &w->dist);
	read_pins(a, w);
	return 0;
}

/* Whether a bill of ptbuild's has a torch that the wheel was built against and that is no wheel. */
static bool has_root_torch(const json_t *bill)
{
	size_t i;
	const json_t *c;

	json_array_foreach(json_object_get(bill, "components"), i, c)
	{
		const json_t *kind = json_array_get(json_object_get(c, "properties"), 0);
		if (strcmp(json_text(c, "name"), "torch") == 0 &&
		    strcmp(json_text(kind, "name"), "ptbuild:kind") == 0 &&
		    strcmp(json_text(kind, "value"), "built against") == 0)
			return !json_object_get(c, "hashes");
	}

	return false;
}

static int read_bill(const struct reading *r, struct index_wheel *w, struct err *e)
{
	const struct zip_reader *z = r->z;
	const struct wheel_name *n = &r->n;
	struct arena *a = r->a;
	const char *path = arena_printf(a, "%s/sboms/%s.cdx.json", wheel_dist_info(n, a), n->dist);
	const struct zip_entry *en = zip_find(z, path);
	AUTO_BUF struct buf text = {0};

	if (!en)
		return 0;
	if (zip_read(z, en, METADATA_MAX, &text, e) < 0)
		return -1;
	AUTO_JSON json_t *bill =
		json_loadb(buf_cstr(&text), text.len, JSON_REJECT_DUPLICATES, NULL);
	w->root_torch = has_root_torch(bill);
	return 0;
}

/* NVIDIA's, cut for one machine. */
static int check_private(const struct zip_reader *z, const struct wheel_name *n, struct arena *a,
			 struct err *e)
{
	if (!zip_find(z, path_join(a, wheel_dist_info(n, a), WHEEL_PRIVATE)))
		return 0;
	err_set(e, ERR_POLICY, "its licence limits passing it on once it is slimmed");
	return err_hint(e, "move it out of the directory: it is only for the machine that it was "
			   "slimmed for");
}

static int read_all(const char *path, struct arena *a, struct index_wheel *w, struct err *e)
{
	const char *file = path_base(path);
	struct reading r = {.a = a};
	const struct wheel_name *n = &r.n;
	struct zip_reader *AUTO_ZIP z = NULL;
	struct stat st;
	char digest[DIGEST_HEX_LEN + 1];

	if (wheel_name_parse(file, a, &r.n, e) < 0 || zip_open(path, a, &z, e) < 0)
		return -1;
	r.z = z;
	if (check_private(z, n, a, e) < 0 || read_metadata(&r, w, e) < 0 || read_bill(&r, w, e) < 0)
		return -1;
	if (digest_file(path, digest, e) < 0 || read_yank(path, a, w, e) < 0)
		return -1;
	if (stat(path, &st) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot read '%s'", path);
	w->file = arena_strdup(a, file);
	w->project = with_dashes(wheel_normalize(n->dist, a), a);
	w->version = n->version;
	w->variants = *n->variant
			      ? arena_printf(a, "%s-%s" INDEX_VARIANTS_FILE, n->dist, n->version)
			      : NULL;
	const char *plus = strchr(n->version, '+');
	w->label = plus ? plus + 1 : "";
	w->profile = with_dashes(label_without_torch(w->label, a), a);
	w->sha256 = arena_strdup(a, digest);
	w->size = (uint64_t)st.st_size;
	return 0;
}

int index_read(const char *dir, const char *file, struct arena *a, struct index_wheel *ret,
	       struct err *e)
{
	struct index_wheel w = {.reason = ""};

	if (read_all(path_join(a, dir, file), a, &w, e) < 0)
		return err_wrap(e, "cannot list '%s'", file);
	*ret = w;
	return 0;
}
