#include "step/pack/pack.h"

#include <strings.h>

#include "base/sys/json.h"
#include "core/wheel/wheel.h"

enum { COPYRIGHT_MAX = 16 << 20, MODULE_MAX = 64 * 1024 };

struct bill {
	const struct sbom_request *q;
	const struct run *run;
	struct arena *a;
	const char *dist_info; /* on disk */
	struct strlist licenses;
	struct kvlist copyrights; /* package -> text, "" without one */
	json_t *components, *refs;
};

static const char *part_before(const char *package, char mark, struct arena *a)
{
	return arena_strndup(a, package, strcspn(package, (const char[]){mark, '\0'}));
}

/* A file of the root into licenses/<rel>; its text is added to `out`. */
static int copy_text(struct bill *b, const char *inside, const char *rel, struct buf *out,
		     struct err *e)
{
	const char *to = path_join(b->a, path_join(b->a, b->dist_info, "licenses"), rel);

	if (fs_read(TRUSTED, root_host_path(b->q->root, inside, b->a), COPYRIGHT_MAX, out, e) < 0 ||
	    fs_mkdirs(TRUSTED, path_dir(b->a, to), e) < 0 ||
	    fs_write(TRUSTED, to, buf_cstr(out), out->len, 0644, e) < 0)
		return -1;
	strlist_ref(&b->licenses, b->a, rel);
	return 0;
}

/* The copyright file of a package of the root, links resolved inside it: gcc's
 * libraries share one. Kept per package, since many libraries may come of one. */
static int copyright_of(struct bill *b, const char *name, const char **ret, struct err *e)
{
	const char *have = kvlist_get(&b->copyrights, name);

	if (have) {
		*ret = have;
		return 0;
	}

	AUTO_BUF struct buf text = {0};
	const char *inside;
	if (root_find(b->q->root, arena_printf(b->a, "/usr/share/doc/%s/copyright", name), b->a,
		      &inside, e) < 0)
		return -1;
	if (inside) {
		if (copy_text(b, inside, arena_printf(b->a, "vendored/%s/copyright", name), &text,
			      e) < 0)
			return -1;
	} else {
		log_warn(b->run->log,
			 "the root has no copyright file of '%s', whose library the wheel contains",
			 name);
	}

	kvlist_set(&b->copyrights, b->a, name, buf_cstr(&text));
	*ret = kvlist_get(&b->copyrights, name);
	return 0;
}

/* The short names in a machine-readable copyright file: "License: BSD-3-clause". */
static json_t *license_names(const char *text, struct arena *a)
{
	static const char field[] = "License:";
	struct strlist lines = {0}, names = {0};

	if (strncmp(text, "Format:", strlen("Format:")) == 0)
		strlist_split(&lines, a, text, "\r\n");
	for (size_t i = 0; i < lines.count; i++) {
		if (strncasecmp(lines.items[i], field, strlen(field)) != 0)
			continue;
		const char *name = lines.items[i] + strlen(field);
		name += strspn(name, " \t");
		size_t len = strlen(name);
		while (len && strchr(" \t", name[len - 1]))
			len--;
		name = arena_strndup(a, name, len);
		if (*name)
			strlist_once(&names, a, name);
	}

	strlist_sort(&names);
	json_t *out = json_array();
	for (size_t i = 0; i < names.count; i++)
		json_array_append_new(out, json_pack("{s:{s:o}}", "license", "name",
						     json_or_null(names.items[i])));
	return out;
}

/* The percent encoding of package URLs. */
static char *escape(const char *s, struct arena *a)
{
	AUTO_BUF struct buf out = {0};
	buf_addurl(&out, s, "");
	return arena_strdup(a, buf_cstr(&out));
}

/* "pkg:deb/debian/libx@1.0%2Bds-3?arch=amd64&distro=debian-13" of a root that is "debian 13". */
static char *package_url(const struct bill *b, const char *name, const char *version,
			 const char *arch)
{
	const char *id = b->q->root->id, *system = part_before(id, ' ', b->a),
		   *release = strchr(id, ' ');
	const char *distro = release ? arena_printf(b->a, "&distro=%s-%s", escape(system, b->a),
						    escape(release + 1, b->a))
				     : "";

	return arena_printf(b->a, "pkg:deb/%s/%s@%s?arch=%s%s", escape(system, b->a),
			    escape(name, b->a), escape(version, b->a), arch, distro);
}

static json_t *hashes(const char *sha256)
{
	return json_pack("[{s:s, s:s}]", "alg", "SHA-256", "content", sha256);
}

static void add_component(struct bill *b, json_t *component, const char *ref)
{
	json_object_set_new(component, "bom-ref", json_string(ref));
	json_array_append_new(b->components, component);
	json_array_append_new(b->refs, json_string(ref));
}

/* An input: a source archive, a patch. */
static void add_file(struct bill *b, const char *kind, const char *name, const char *sha256)
{
	json_t *c =
		json_pack("{s:s, s:s, s:o, s:[{s:s, s:s}]}", "type", "file", "name", name, "hashes",
			  hashes(sha256), "properties", "name", "ptbuild:kind", "value", kind);

	add_component(b, c, arena_printf(b->a, "%s:%s", kind, name));
}

static void add_property(json_t *component, const char *name, const char *value)
{
	json_t *list = json_object_get(component, "properties");
	json_array_append_new(list, json_pack("{s:s, s:s}", "name", name, "value", value));
}

static int add_library(struct bill *b, const struct wheel_vendored *l, struct err *e)
{
	char sha256[DIGEST_HEX_LEN + 1];
	const char *copyright = "", *name = part_before(l->package, '=', b->a);
	const char *version = l->package[strlen(name)] ? l->package + strlen(name) + 1 : "";

	if (digest_file(path_join(b->a, b->q->tree, l->file), sha256, e) < 0 ||
	    (*name && copyright_of(b, name, &copyright, e) < 0))
		return -1;
	if (!*name)
		log_warn(b->run->log,
			 "'%s' of the root belongs to no package: its licence is not known",
			 l->source);
	json_t *c = json_pack("{s:s, s:s}", "type", "library", "name", *name ? name : l->needed);
	if (*name) {
		const char *arch = world_debian_arch(b->q->plan->platform);
		json_object_set_new(c, "version", json_string(version));
		json_object_set_new(
			c, "purl", json_string(package_url(b, name, version, arch ? arch : "any")));
	}

	json_object_set_new(c, "hashes", hashes(sha256));
	json_t *names = license_names(copyright, b->a);
	if (json_array_size(names))
		json_object_set(c, "licenses", names);
	json_decref(names);
	json_object_set_new(c, "properties", json_array());
	add_property(c, "ptbuild:kind", "vendored library");
	add_property(c, "ptbuild:file", l->file);
	add_property(c, "ptbuild:needed", l->needed);
	add_property(c, "ptbuild:source", l->source);
	add_property(c, "ptbuild:source-sha256", l->sha256);
	add_component(b, c, arena_printf(b->a, "library:%s", l->file));
	return 0;
}

/* The version in a module of pkg-config; "" for none,
 * and for one that is put together of variables. */
static const char *version_told(const char *module, struct arena *a)
{
	static const char field[] = "Version:";
	struct strlist lines = {0};

	strlist_split(&lines, a, module, "\r\n");
	for (size_t i = 0; i < lines.count; i++) {
		if (strncmp(lines.items[i], field, strlen(field)) != 0)
			continue;
		const char *version = lines.items[i] + strlen(field);
		version += strspn(version, " \t");
		size_t len = strcspn(version, " \t");
		return memchr(version, '$', len) ? "" : arena_strndup(a, version, len);
	}

	return "";
}

/* By the first module, as pkg-config finds it. One
 * of another place says nothing of what was linked. */
static int linked_version(struct bill *b, const struct sbom_linked *l, const char **ret,
			  struct err *e)
{
	const char *place = *l->place ? root_resolve(b->q->root, l->place, b->a) : NULL;
	struct strlist dirs = {0};

	*ret = l->version;
	strlist_split(&dirs, b->a, l->module_dirs, ":");
	for (size_t i = 0; !**ret && place && i < dirs.count; i++) {
		AUTO_BUF struct buf text = {0};
		const char *path =
			path_join(b->a, dirs.items[i], arena_printf(b->a, "%s.pc", l->module));
		const char *real;
		if (root_find(b->q->root, path, b->a, &real, e) < 0)
			return -1;
		if (!real)
			continue;
		if (!path_below(real, place))
			return 0;
		if (fs_read(TRUSTED, root_host_path(b->q->root, real, b->a), MODULE_MAX, &text, e) <
		    0)
			return -1;
		*ret = version_told(buf_cstr(&text), b->a);
		return 0;
	}

	return 0;
}

static int add_linked(struct bill *b, const struct sbom_linked *l, struct err *e)
{
	const char *version;
	/* Licence, and those of its own parts: every file below its directory. */
	const char *dir = arena_printf(b->a, "/usr/share/doc/%s", l->name);
	struct strlist files = {0};

	if (root_files(b->q->root, dir, b->a, &files, e) < 0)
		return -1;
	for (size_t i = 0; i < files.count; i++) {
		AUTO_BUF struct buf text = {0};
		const char *inside;
		const char *rel = arena_printf(b->a, "vendored/%s/%s", l->name, files.items[i]);
		if (root_find(b->q->root, path_join(b->a, dir, files.items[i]), b->a, &inside, e) <
			    0 ||
		    (inside && copy_text(b, inside, rel, &text, e) < 0))
			return -1;
	}

	if (!files.count)
		log_warn(b->run->log,
			 "the root has no licence in '%s', whose library the wheel contains", dir);
	if (linked_version(b, l, &version, e) < 0)
		return -1;
	json_t *c = json_pack("{s:s, s:s, s:[{s:{s:s}}], s:[{s:s, s:s}]}", "type", "library",
			      "name", l->name, "licenses", "license", "name", l->licence,
			      "properties", "name", "ptbuild:kind", "value", "linked library");
	if (*version)
		json_object_set_new(c, "version", json_or_null(version));
	if (*l->sha256) {
		json_object_set_new(
			c, "purl",
			json_string(arena_printf(b->a, "pkg:pypi/%s@%s", escape(l->name, b->a),
						 escape(version, b->a))));
		json_object_set_new(c, "hashes", hashes(l->sha256));
	}

	add_component(b, c, arena_printf(b->a, "linked:%s", l->name));
	return 0;
}

/* A file of the world, by its digest: a name can be in two parts of it. */
static void add_tool(struct bill *b, const struct world_entry *t)
{
	const char *url = t->kind == WORLD_DEB ? package_url(b, t->name, t->version, t->arch)
			  : t->kind == WORLD_WHEEL
				  ? arena_printf(b->a, "pkg:pypi/%s@%s", escape(t->name, b->a),
						 escape(t->version, b->a))
				  : NULL;
	json_t *c =
		json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:[{s:s, s:s}]}", "type", "application",
			  "bom-ref", arena_printf(b->a, "world:%.16s:%s", t->sha256, t->name),
			  "name", t->name, "version", t->version, "scope", "excluded", "hashes",
			  hashes(t->sha256), "properties", "name", "ptbuild:kind", "value", "root");

	if (url)
		json_object_set_new(c, "purl", json_string(url));
	json_array_append_new(b->components, c);
}

static json_t *document(struct bill *b)
{
	const struct sbom_request *q = b->q;
	const char *name = q->plan->distribution, *version = plan_full_version(q->plan, b->a);
	const char *url =
		arena_printf(b->a, "pkg:pypi/%s@%s", escape(name, b->a), escape(version, b->a));
	const char *space = strchr(q->generator, ' '), *tool = part_before(q->generator, ' ', b->a);
	json_t *metadata = json_pack(
		"{s:s, s:{s:[{s:s, s:s, s:s}]}, s:{s:s, s:s, s:s, s:s, s:s}}", "timestamp",
		size_utc((int64_t)q->plan->release_row->source_date_epoch, b->a), "tools",
		"components", "type", "application", "name", tool, "version",
		space ? space + 1 : "", "component", "type", "library", "bom-ref", url, "name",
		name, "version", version, "purl", url);

	return json_pack("{s:s, s:s, s:i, s:o, s:O, s:[{s:s, s:O}]}", "bomFormat", "CycloneDX",
			 "specVersion", "1.6", "version", 1, "metadata", metadata, "components",
			 b->components, "dependencies", "ref", url, "dependsOn", b->refs);
}

static int fill(struct bill *b, struct err *e)
{
	const struct plan *p = b->q->plan;
	const struct world *w = b->q->world;

	for (unsigned i = 0; i < p->package_row->sources_count; i++)
		add_file(b, "source", p->package_row->sources[i].name,
			 p->package_row->sources[i].sha256);
	for (size_t i = 0; i < p->patches_count; i++)
		add_file(b, "patch", p->patches[i].name, p->patches[i].sha256);
	if (*p->torch_version) {
		static const char digest_mark[] = "sha256:";
		const char *url =
			arena_printf(b->a, "pkg:pypi/torch@%s", escape(p->torch_version, b->a));
		json_t *c =
			json_pack("{s:s, s:s, s:s, s:s, s:[{s:s, s:s}]}", "type", "library", "name",
				  "torch", "version", p->torch_version, "purl", url, "properties",
				  "name", "ptbuild:kind", "value", "built against");
		if (strncmp(p->torch, digest_mark, strlen(digest_mark)) == 0)
			json_object_set_new(c, "hashes", hashes(p->torch + strlen(digest_mark)));
		add_component(b, c, url);
	}

	for (size_t i = 0; i < b->q->libraries_count; i++)
		if (add_library(b, &b->q->libraries[i], e) < 0)
			return -1;
	if (b->q->linked && add_linked(b, b->q->linked, e) < 0)
		return -1;
	for (size_t i = 0; w && i < w->count; i++)
		for (size_t k = 0; k < w->pieces[i].lock.count; k++)
			add_tool(b, &w->pieces[i].lock.entries[k]);
	return 0;
}

int sbom_write(const struct sbom_request *q, struct arena *a, struct strlist *ret_licenses,
	       struct err *e)
{
	struct bill b = {
		.q = q, .run = q->run, .a = a, .components = json_array(), .refs = json_array()};
	const char *info = "";
	int rc = wheel_find_dist_info(q->tree, a, &info, e);

	b.dist_info = path_join(a, q->tree, info);
	const char *dir = path_join(a, b.dist_info, "sboms"),
		   *path = path_join(a, dir, arena_printf(a, "%s.cdx.json", q->plan->distribution));
	if (rc == 0)
		rc = fill(&b, e);
	if (rc == 0)
		rc = fs_mkdirs(TRUSTED, dir, e);
	AUTO_JSON json_t *j = rc == 0 ? document(&b) : NULL;
	json_decref(b.components);
	json_decref(b.refs);
	if (rc == 0 && !j)
		rc = err_set(e, ERR_INTEGRITY,
			     "the bill of materials of '%s' holds text that is not UTF-8",
			     q->plan->distribution);
	if (rc == 0)
		rc = json_write(j, TRUSTED, path, e);
	if (rc < 0)
		return -1;
	strlist_sort(&b.licenses);
	*ret_licenses = b.licenses;
	return 0;
}
