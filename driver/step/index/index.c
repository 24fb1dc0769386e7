#include <strings.h>

#include "base/os.h"
#include "base/show.h"
#include "base/sys/file_lock.h"
#include "base/sys/fs.h"
#include "base/sys/json.h"
#include "step/index/index_parts.h"

/* The repository version whose rules the pages keep: 1.1 made
 * sizes and versions mandatory, what came later is optional. */
#define API_VERSION "1.4"

#define HEAD                                                                                       \
	"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"                  \
	"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
/* Where a page is served only the browser knows; without a script, people put it in. */
#define URL_SCRIPT                                                                                 \
	"<script>for (const e of document.querySelectorAll(\".url\")) "                            \
	"e.textContent = new URL(e.dataset.at || \".\", location.href).href;</script>\n"

/* Pages of a directory with its projects, and of a project with its files. Links are for installers
 * alone. The older name of core-metadata is for pip 23.0, which knows no other (PEP 714). */
static const struct show page_rows[] = {
	{.text = HEAD "<meta name=\"pypi:repository-version\" content=\"{meta.api-version}\">\n"
		      "<title>{-title}</title>\n</head>\n<body>\n<h1>{-title}</h1>\n"},
	{.text = "<p>Install: <code>pip install --extra-index-url <span class=\"url\" "
		 "data-at=\"{-at}\">URL</span> "
		 "{-install}</code></p>\n" URL_SCRIPT},
	{.text = "<a href=\"{name}/\">{name}</a><br>\n", .each = "projects"},
	{.text = "<a href=\"{url}[#sha256={hashes.sha256}]\"[ "
		 "data-requires-python=\"{requires-python}\"]"
		 "[ data-core-metadata=\"sha256={core-metadata.sha256}\"]"
		 "[ data-dist-info-metadata=\"sha256={dist-info-metadata.sha256}\"]"
		 "[{?yanked} data-yanked=\"{-reason|}\"]>{filename}</a><br>\n",
	 .each = "files"},
	{.text = "</body>\n</html>\n"},
	{0}};

/* The start page, which has a line for each profile. */
#define GENERATOR "<meta name=\"generator\" content=\"ptbuild index\">"
#define START_PAGE "index.html"
static const struct show start_rows[] = {
	{.text = HEAD GENERATOR
	 "\n<title>Wheels by profile</title>\n<style>body \\{ font: 15px/1.5 system-ui, "
	 "sans-serif; "
	 "max-width: 60em; margin: 1.5em auto; padding: 0 1em; } code \\{ overflow-wrap: anywhere; "
	 "}</style>\n</head>\n<body>\n<h1>Wheels by profile</h1>\n"
	 "<p>{-wheels} wheel{-wheels:s} of {-projects} project{-projects:s}; "
	 "<a href=\"" INDEX_ALL "/\">all of them</a>. 'ptbuild install URL' chooses the "
	 "profile for a machine.</p>\n"},
	{.text = "<h2><a href=\"{name:url}/\">{name}</a></h2>\n<p>{wheels:#} wheel{wheels:s} with "
		 "the label "
		 "{label}</p>\n[{?install}<p><code>pip install --extra-index-url <span "
		 "class=\"url\" "
		 "data-at=\"{name:url}/\">URL/{name}/</span> {install}</code></p>\n]"
		 "[{?missing}<p>Not complete: it lacks {missing:,}</p>\n]",
	 .each = "directories"},
	{.text = URL_SCRIPT "</body>\n</html>\n"},
	{0}};

/* Some servers and caches take a '+' in a path for a space. */
static json_t *url_of(const char *url, const char *file)
{
	struct buf AUTO_BUF target = {0};

	buf_addstr(&target, url);
	buf_addurl(&target, file, "");
	return json_string(buf_cstr(&target));
}

static json_t *file_json(const struct index_wheel *w, const char *url)
{
	json_t *o = json_pack("{s:s, s:o, s:{s:s}, s:I, s:{s:s}}", "filename", w->file, "url",
			      url_of(url, w->file), "hashes", "sha256", w->sha256, "size",
			      (json_int_t)w->size, "core-metadata", "sha256", w->metadata_sha256);

	/* That pip compares names as they are spelt. */
	if (w->spelt_so)
		json_object_set_new(o, "dist-info-metadata",
				    json_pack("{s:s}", "sha256", w->metadata_sha256));
	if (*w->requires_python)
		json_object_set_new(o, "requires-python", json_or_null(w->requires_python));
	json_object_set_new(o, "yanked",
			    w->yanked && *w->reason ? json_or_null(w->reason)
						    : json_boolean(w->yanked));
	json_object_set_new(o, "-reason", json_or_null(w->reason));
	return o;
}

#define FIELD(member) JSON_FIELD(struct index_sub, member)

static json_t *listing_json(const struct index_sub *subs, size_t count)
{
	JSON_FIELDS(fields, FIELD(name), FIELD(label), FIELD(install), FIELD(wheels),
		    FIELD(missing));
	json_t *rows = json_rows(subs, count, sizeof(*subs), fields);
	for (size_t i = 0; i < count; i++) {
		json_t *pythons = json_object();
		for (size_t k = 0; k < subs[i].pythons.count; k++)
			json_object_set_new(pythons, subs[i].pythons.items[k].key,
					    json_or_null(subs[i].pythons.items[k].value));
		json_object_set_new(json_array_get(rows, i), "requires_python", pythons);
	}

	return json_pack("{s:i, s:o}", "schema", 1, "directories", rows);
}

struct choosing {
	const struct index_wheel *wheels;
	size_t count;
	struct arena *a;
	struct index_sub *sub;
};

/* A pin without a label is met by any label. */
static bool is_pinned(const struct choosing *c, const struct index_wheel *w, const struct kv *pin)
{
	return strcmp(w->project, pin->key) == 0 &&
	       specifier_takes(arena_printf(c->a, "==%s", pin->value), w->version, c->a);
}

static bool is_mixed(const struct choosing *c, const struct index_wheel *x,
		     const struct index_wheel *y)
{
	return dist_mixed(&x->dist, &y->dist, &x->dist.scope, c->a) != NULL;
}

/* A wheel without a label may be in any index, unless this one has it only for another
 * accelerator: installers use that. Installers install a yanked one if it is pinned. */
static bool lacks(const struct choosing *c, const struct index_wheel *w, const struct kv *pin)
{
	bool mixed = false;

	for (size_t i = 0; i < c->count; i++) {
		if (c->wheels[i].yanked || !is_pinned(c, &c->wheels[i], pin))
			continue;
		if (!is_mixed(c, w, &c->wheels[i]))
			return false;
		mixed = true;
	}

	/* A torch of the system is nowhere a wheel: who installs this one has it. */
	const bool of_root = w->root_torch && strcmp(pin->key, "torch") == 0;
	return mixed || (strchr(pin->value, '+') && !of_root);
}

/* Whether the directory's own wheels meet the pin. */
static bool has_pinned(const struct choosing *c, const struct kv *pin)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->sub->has[i] && !c->wheels[i].yanked && is_pinned(c, &c->wheels[i], pin))
			return true;
	return false;
}

/* "torch 2.6.0+cu124" of a pinned one that is for another accelerator; NULL. */
static const char *mixed_title(const struct choosing *c, const struct index_wheel *w,
			       const struct kv *pin)
{
	for (size_t i = 0; i < c->count; i++)
		if (!c->wheels[i].yanked && is_pinned(c, &c->wheels[i], pin) &&
		    is_mixed(c, w, &c->wheels[i]))
			return c->wheels[i].dist.title;
	return NULL;
}

/* Installers look for a project in the first index
 * that has it: what a wheel pins must lie beside it. */
static bool add_pinned(struct choosing *c, const struct index_wheel *w, const struct kv *pin)
{
	bool added = false, yanked = false;
	const bool any = !strchr(pin->value, '+') && has_pinned(c, pin);

	for (size_t i = 0; i < c->count; i++) {
		if (any || !is_pinned(c, &c->wheels[i], pin) || is_mixed(c, w, &c->wheels[i]))
			continue;
		yanked = true;
		added = added || !c->sub->has[i];
		c->sub->has[i] = true;
	}

	const char *mixed = yanked ? NULL : mixed_title(c, w, pin);
	const char *line =
		arena_printf(c->a, "%s==%s, which '%s' requires%s", pin->key, pin->value, w->file,
			     yanked  ? ": it is yanked"
			     : mixed ? arena_printf(c->a, ": %s is for another accelerator", mixed)
				     : "");
	if (lacks(c, w, pin) && !strlist_contains(&c->sub->missing, line))
		strlist_ref(&c->sub->missing, c->a, line);
	return added;
}

/* Whether what a wheel pins is here, and what was chosen before. */
static bool agrees(const struct choosing *c, const struct index_wheel *w,
		   const struct kvlist *chosen)
{
	for (size_t i = 0; i < w->pins.count; i++) {
		const struct kv *pin = &w->pins.items[i];
		const char *have = kvlist_get(chosen, pin->key);
		if (lacks(c, w, pin) ||
		    (have && !specifier_takes(arena_printf(c->a, "==%s", pin->value), have, c->a)))
			return false;
	}

	for (size_t i = 0; i < w->takes.count; i++) {
		const char *have = kvlist_get(chosen, w->takes.items[i].key);
		if (have && !specifier_takes(w->takes.items[i].value, have, c->a))
			return false;
	}

	return true;
}

static void choose(struct choosing *c, const char *project, struct kvlist *chosen)
{
	const char *best = NULL;

	for (size_t i = 0; i < c->count; i++) {
		const struct index_wheel *w = &c->wheels[i];
		if (!c->sub->has[i] || w->yanked || strcmp(w->project, project) != 0)
			continue;
		if (!agrees(c, w, chosen))
			continue;
		if (!best || pep440_cmp(w->version, best, c->a) >= 0)
			best = w->version;
	}

	if (best)
		kvlist_set(chosen, c->a, project, best);
}

static void index_subs(const struct index_wheel *wheels, size_t count, struct arena *a,
		       struct index_sub **ret, size_t *ret_count)
{
	struct strlist names = {0};

	for (size_t i = 0; i < count; i++)
		if (*wheels[i].profile && !strlist_contains(&names, wheels[i].profile))
			strlist_ref(&names, a, wheels[i].profile);
	strlist_sort(&names);
	struct index_sub *subs = arena_array(a, names.count + 1, sizeof(*subs));
	for (size_t s = 0; s <= names.count; s++) {
		struct choosing c = {wheels, count, a, &subs[s]};
		subs[s] =
			(struct index_sub){.name = s ? names.items[s - 1] : INDEX_ALL, .label = ""};
		subs[s].has = arena_array(a, count, sizeof(bool));
		for (size_t i = 0; i < count; i++) {
			subs[s].has[i] = !s || strcmp(wheels[i].profile, subs[s].name) == 0;
			if (s && subs[s].has[i] && !*subs[s].label)
				subs[s].label = label_without_torch(wheels[i].label, a);
		}

		for (size_t i = 0; i < count && !s; i++)
			for (size_t k = 0; k < wheels[i].pins.count && !*wheels[i].profile; k++)
				(void)add_pinned(&c, &wheels[i], &wheels[i].pins.items[k]);
		if (s) {
			bool more = true;
			while (more) {
				more = false;
				for (size_t i = 0; i < c.count; i++)
					for (size_t k = 0;
					     c.sub->has[i] && k < c.wheels[i].pins.count; k++)
						more = add_pinned(&c, &c.wheels[i],
								  &c.wheels[i].pins.items[k]) ||
						       more;
			}

			/* torch first: it decides about the others. */
			struct kvlist chosen = {0};
			choose(&c, "torch", &chosen);
			for (size_t i = 0; i < c.count; i++)
				if (c.sub->has[i] && !kvlist_get(&chosen, c.wheels[i].project))
					choose(&c, c.wheels[i].project, &chosen);
			for (size_t k = 0; k < chosen.count; k++)
				strlist_addf(&c.sub->install, c.a, "%s==%s", chosen.items[k].key,
					     chosen.items[k].value);
			for (size_t i = 0; i < c.count; i++) {
				const char *version = kvlist_get(&chosen, c.wheels[i].project);
				if (c.sub->has[i] && version &&
				    strcmp(version, c.wheels[i].version) == 0) {
					strlist_ref(&c.sub->wheels, c.a, c.wheels[i].file);
					if (*c.wheels[i].requires_python)
						kvlist_set(&c.sub->pythons, c.a, c.wheels[i].file,
							   c.wheels[i].requires_python);
				}

				const char *torch = kvlist_get(&chosen, "torch");
				if (c.sub->has[i] && !version && !c.wheels[i].yanked && torch)
					strlist_once(&c.sub->missing, c.a,
						     arena_printf(c.a, "%s for torch==%s",
								  c.wheels[i].project, torch));
			}
		}
	}

	*ret = subs;
	*ret_count = names.count + 1;
}

/* Marks the directories that this step made: it replaces no others. */
#define OWN ".ptbuild-index"
#define PAGE_MAX_BYTES (8u << 20)

struct indexing {
	const struct index_request *q;
	const struct run *run;
	struct arena *a;
	struct index_wheel *wheels; /* sorted by file name */
	size_t count;
	const char *url;   /* before the wheels' names, as seen from a project's page */
	const char *stage; /* where the new sub-directories are made */
	struct index_result result;
};

static bool is_own(struct indexing *x, const char *name)
{
	return fs_exists(TRUSTED, path_join(x->a, path_join(x->a, x->q->dir, name), OWN));
}

static int read_wheels(struct indexing *x, struct err *e)
{
	struct strlist names = {0};

	if (fs_list(TRUSTED, x->q->dir, x->a, &names, e) < 0)
		return -1;
	x->wheels = arena_array(x->a, names.count, sizeof(*x->wheels));
	for (size_t i = 0; i < names.count; i++) {
		if (names.items[i][0] == '.' || !path_has_suffix(names.items[i], ".whl"))
			continue;
		log_status(x->run->log, "index %s", names.items[i]);
		if (run_check(x->run, e) < 0 ||
		    index_read(x->q->dir, names.items[i], x->a, &x->wheels[x->count], e) < 0)
			return -1;
		x->result.yanked += x->wheels[x->count].yanked;
		x->count++;
	}

	log_status_end(x->run->log);
	x->result.wheels = x->count;
	/* What is gone goes from the pages, be it the last. */
	if (x->count || is_own(x, INDEX_ALL))
		return 0;
	err_set(e, ERR_USAGE, "no wheel in '%s'", x->q->dir);
	return err_hint(e, "give the directory that --out named for the build");
}

/* Takes the document. */
static int write_page(const char *dir, json_t *page, struct arena *a, struct err *e)
{
	AUTO_JSON json_t *doc = page;
	struct buf AUTO_BUF html = {0};

	show_markup(doc, page_rows, show_html, &html);
	(void)show_strip(doc);
	if (fs_mkdirs(TRUSTED, dir, e) < 0 ||
	    fs_write(TRUSTED, path_join(a, dir, "index.html"), html.data, html.len, 0644, e) < 0)
		return -1;
	return json_write(doc, TRUSTED, path_join(a, dir, "index.json"), e);
}

/* "torch, cpu-avx2"; `project` NULL: of the directory. */
static const char *title_of(const struct indexing *x, const struct index_sub *sub,
			    const char *project)
{
	const bool all = strcmp(sub->name, INDEX_ALL) == 0;

	if (project)
		return all ? project : arena_printf(x->a, "%s, %s", project, sub->name);
	return all ? "All wheels" : arena_printf(x->a, "Wheels for %s", sub->name);
}

static int write_project(struct indexing *x, const char *dir, const struct index_sub *sub,
			 const char *project, struct err *e)
{
	struct strlist versions = {0}, variants = {0};
	json_t *files = json_array();

	for (size_t i = 0; i < x->count; i++) {
		const struct index_wheel *w = &x->wheels[i];
		if (!sub->has[i] || strcmp(w->project, project) != 0)
			continue;
		json_array_append_new(files, file_json(w, x->url));
		strlist_once(&versions, x->a, w->version);
		if (w->variants)
			strlist_once(&variants, x->a, w->variants);
	}

	strlist_sort(&versions);
	for (size_t i = 0; i < variants.count; i++) /* what variants are, once */
		json_array_append_new(
			files, json_pack("{s:s, s:o, s:{}}", "filename", variants.items[i], "url",
					 url_of(x->url, variants.items[i]), "hashes"));
	return write_page(path_join(x->a, dir, project),
			  json_pack("{s:{s:s}, s:s, s:o, s:o, s:s}", "meta", "api-version",
				    API_VERSION, "name", project, "versions",
				    json_from_strlist(&versions), "files", files, "-title",
				    title_of(x, sub, project)),
			  x->a, e);
}

static int write_sub(struct indexing *x, const struct index_sub *sub, struct err *e)
{
	struct strlist projects = {0};
	json_t *list = json_array();
	const char *dir = path_join(x->a, x->stage, sub->name);

	for (size_t i = 0; i < x->count; i++)
		if (sub->has[i])
			strlist_once(&projects, x->a, x->wheels[i].project);
	strlist_sort(&projects);
	for (size_t i = 0; i < projects.count; i++)
		json_array_append_new(list, json_pack("{s:s}", "name", projects.items[i]));
	json_t *doc = json_pack("{s:{s:s}, s:o, s:s}", "meta", "api-version", API_VERSION,
				"projects", list, "-title", title_of(x, sub, NULL));
	if (sub->install.count) {
		json_object_set_new(doc, "-at", json_string("./"));
		json_object_set_new(doc, "-install", json_from_strlist(&sub->install));
	}

	if (write_page(dir, doc, x->a, e) < 0 ||
	    fs_write(TRUSTED, path_join(x->a, dir, OWN), "", 0, 0644, e) < 0)
		return -1;
	for (size_t i = 0; i < projects.count; i++)
		if (write_project(x, dir, sub, projects.items[i], e) < 0)
			return -1;
	if (sub > x->result.subs) {
		const char *lines =
			arena_printf(x->a, "%s\n", strlist_join(&sub->install, x->a, "\n"));
		return fs_write(TRUSTED, path_join(x->a, dir, INDEX_CONSTRAINTS), lines,
				strlen(lines), 0644, e);
	}

	x->result.projects = projects.count;
	AUTO_JSON json_t *listing = listing_json(x->result.subs + 1, x->result.count - 1);
	return json_write(listing, TRUSTED, path_join(x->a, dir, INDEX_LISTING), e);
}

/* Leaves the old one in the stage, which is removed. */
static int exchange(struct indexing *x, const char *name, struct err *e)
{
	const char *fresh = path_join(x->a, x->stage, name),
		   *place = path_join(x->a, x->q->dir, name);

	if (!fs_exists(TRUSTED, place))
		return fs_rename(fresh, place, e);
	if (os_rename_swap(fresh, place) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return err_errno(e, ERR_SYSTEM, "cannot replace '%s'", place);
	/* The file system cannot exchange: for a moment there is no index. */
	if (fs_rename(place, path_join(x->a, x->stage, arena_printf(x->a, "old-%s", name)), e) < 0)
		return -1;
	return fs_rename(fresh, place, e);
}

/* Removes profiles without wheels and sidecars of removed wheels. */
static int remove_stale(struct indexing *x, struct err *e)
{
	static const char sidecar[] = ".whl.metadata";
	struct strlist names = {0};

	if (fs_list(TRUSTED, x->q->dir, x->a, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		const char *name = names.items[i], *path = path_join(x->a, x->q->dir, name);
		bool stale = !text_search(name, x->result.subs, x->result.count,
					  sizeof(*x->result.subs)) &&
			     is_own(x, name);
		if (name[0] != '.' && path_has_suffix(name, sidecar))
			stale = !fs_exists(
				TRUSTED,
				arena_strndup(x->a, path, strlen(path) - strlen(".metadata")));
		if (stale && fs_remove(TRUSTED, path, e) < 0)
			return -1;
	}

	return 0;
}

/* A page of the user's own stays. */
static int write_start_page(struct indexing *x, struct err *e)
{
	AUTO_BUF struct buf html = {0};
	AUTO_BUF struct buf old = {0};
	const char *path = path_join(x->a, x->q->dir, START_PAGE);

	if (fs_exists(TRUSTED, path) &&
	    (fs_read(TRUSTED, path, PAGE_MAX_BYTES, &old, ERR_IGNORED) < 0 ||
	     !strstr(buf_cstr(&old), GENERATOR)))
		return 0;
	AUTO_JSON json_t *doc = listing_json(x->result.subs + 1, x->result.count - 1);
	json_object_set_new(doc, "-wheels", json_integer((json_int_t)x->count));
	json_object_set_new(doc, "-projects", json_integer((json_int_t)x->result.projects));
	show_markup(doc, start_rows, show_html, &html);
	return fs_write(TRUSTED, path, html.data, html.len, 0644, e);
}

static int publish(struct indexing *x, struct err *e)
{
	/* Sidecars before the pages that refer to them. */
	for (size_t i = 0; i < x->count; i++)
		if (strcmp(x->wheels[i].profile, INDEX_ALL) == 0)
			return err_set(e, ERR_POLICY,
				       "'%s' has the label '%s', which is reserved for the index "
				       "of all wheels",
				       x->wheels[i].file, INDEX_ALL);
	index_subs(x->wheels, x->count, x->a, &x->result.subs, &x->result.count);
	for (size_t i = 0; i < x->result.count; i++)
		if (write_sub(x, &x->result.subs[i], e) < 0)
			return -1;
	if (fs_sync_tree(x->stage, e) < 0)
		return -1;
	for (size_t i = 0; i < x->result.count; i++) {
		const char *name = x->result.subs[i].name;
		if (!fs_exists(TRUSTED, path_join(x->a, x->q->dir, name)) || is_own(x, name))
			continue;
		err_set(e, ERR_POLICY, "'%s' in '%s' is not an index of ptbuild", name, x->q->dir);
		return err_hint(e, "move it away");
	}

	for (size_t i = 0; i < x->count; i++) {
		const struct index_wheel *w = &x->wheels[i];
		struct buf AUTO_BUF have = {0};
		const char *path =
			path_join(x->a, x->q->dir, arena_printf(x->a, "%s.metadata", w->file));
		if (fs_exists(TRUSTED, path) &&
		    fs_read(TRUSTED, path, w->metadata_len, &have, ERR_IGNORED) == 0 &&
		    have.len == w->metadata_len &&
		    memcmp(buf_cstr(&have), w->metadata, have.len) == 0)
			continue;
		if (fs_write(TRUSTED, path, w->metadata, w->metadata_len, 0644, e) < 0)
			return -1;
	}

	for (size_t i = 0; i < x->result.count; i++)
		if (exchange(x, x->result.subs[i].name, e) < 0)
			return -1;
	if (write_start_page(x, e) < 0)
		return -1;
	return fs_sync_dir(x->q->dir, e) < 0 ? -1 : remove_stale(x, e);
}

int index_check_base(const char *url, struct err *e)
{
	static const char *const schemes[] = {"http:", "https:", "file:"};
	AUTO_ARENA struct arena a = {0};
	const size_t n = strcspn(url, ":/?#");
	bool good = url[n] != ':';

	for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
		good |= strncasecmp(url, schemes[i], strlen(schemes[i])) == 0;
	/* Browsers leave out spaces and controls before they look for a scheme. */
	for (const char *c = url; *c; c++)
		good &= (unsigned char)*c > ' ' && *c != 0x7f;
	if (good)
		return 0;
	err_set(e, ERR_USAGE, "option '--base-url': not a URL that wheels are served at: '%s'",
		utf8_printable(url, &a));
	return err_hint(e, "give an http, https or file URL, or a path relative to the pages");
}

static const char *wheels_url(const char *base, struct arena *a)
{
	if (!base)
		return "../../";
	return arena_printf(a, "%s%s", base, path_has_suffix(base, "/") ? "" : "/");
}

static int write_locked(struct indexing *x, struct err *e)
{
	char *stage = NULL;

	if (fs_sweep(TRUSTED, x->q->dir, e) < 0 || read_wheels(x, e) < 0)
		return -1;
	AUTO_FD int held = fs_neighbour(path_join(x->a, x->q->dir, INDEX_ALL), S_IFDIR | 0700, x->a,
					&stage, e);
	if (held < 0)
		return -1;
	x->stage = stage;
	int rc = publish(x, e);
	return fs_remove(TRUSTED, stage, rc < 0 ? ERR_IGNORED : e) < 0 ? -1 : rc;
}

int index_write(const struct index_request *q, struct arena *a, struct index_result *ret,
		struct err *e)
{
	struct indexing x = {.q = q, .run = q->run, .a = a, .url = wheels_url(q->base_url, a)};
	const char *path = path_join(a, q->dir, OWN ".lock");
	struct lock lock = LOCK_NONE;

	if (!fs_is_dir(TRUSTED, q->dir))
		return err_set(e, ERR_USAGE, "not a directory: '%s'", q->dir);
	if (lock_acquire(&lock, path, false, q->run, e) < 0)
		return -1;
	int rc = write_locked(&x, e);
	lock_drop(&lock, path);
	if (rc < 0)
		return -1;
	*ret = x.result;
	return 0;
}
