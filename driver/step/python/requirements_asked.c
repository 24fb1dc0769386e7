#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "cache/store.h"
#include "core/wheel/requirement.h"
#include "step/python/pyenv.h"

enum { ASKED_MAX = 1 << 16 };

char *requirements_text(const char *requirement, struct arena *a)
{
	struct requirement r;
	AUTO_BUF struct buf text = {0};

	for (const char *c = requirement; *c; c++)
		if ((unsigned char)*c < 0x20 && *c != '\t')
			return NULL;
	if (requirement_parse(requirement, a, &r, ERR_IGNORED) < 0 || *r.url)
		return NULL;
	buf_addstr(&text, r.name);
	if (r.extras.count)
		buf_printf(&text, "[%s]", strlist_join(&r.extras, a, ","));
	buf_addstr(&text, r.specifier);
	if (*r.marker)
		buf_printf(&text, " ; %s", r.marker);
	return arena_strdup(a, buf_cstr(&text));
}

/* By the source, and by what its code may look at. */
static const char *asked_path(const struct pyenv_request *q, struct arena *a)
{
	const struct plan *p = q->plan;
	char hex[DIGEST_HEX_LEN + 1];
	AUTO_BUF struct buf text = {0};

	buf_printf(&text, "asked 1\n%s %s\n%s %s\n%s\n", p->distribution, p->version, p->python,
		   p->platform, q->root->fingerprint);
	for (unsigned i = 0; i < p->package_row->sources_count; i++)
		buf_printf(&text, "%s\n", p->package_row->sources[i].sha256);
	digest_data(text.data, text.len, hex);
	return arena_printf(a, "%s/stamps/asked-%s.txt", store_dir(q->store), hex);
}

int requirements_asked(const struct pyenv_request *q, struct arena *a, struct strlist *ret,
		       struct err *e)
{
	AUTO_BUF struct buf text = {0};
	struct strlist lines = {0};
	const char *path = asked_path(q, a);

	if (!fs_exists(TRUSTED, path))
		return 0;
	if (fs_read(TRUSTED, path, ASKED_MAX, &text, e) < 0)
		return -1;
	strlist_split(&lines, a, buf_cstr(&text), "\n");
	for (size_t i = 0; i < lines.count; i++) {
		const char *line = requirements_text(lines.items[i], a);
		if (line)
			strlist_once(ret, a, line);
	}

	return 0;
}

int requirements_ask(const struct pyenv_request *q, const struct strlist *more, struct arena *a,
		     struct err *e)
{
	struct strlist all = {0};
	AUTO_BUF struct buf text = {0};

	if (requirements_asked(q, a, &all, e) < 0)
		return -1;
	for (size_t i = 0; i < more->count; i++) {
		const char *line = requirements_text(more->items[i], a);
		if (!line) {
			err_set(e, ERR_POLICY,
				"the back end of %s asks for '%.80s', which is not a requirement "
				"that an index has",
				q->plan->package, more->items[i]);
			return err_hint(e, "install it in a root of your own (--root DIR)");
		}

		strlist_once(&all, a, line);
	}

	for (size_t i = 0; i < all.count; i++)
		buf_printf(&text, "%s\n", all.items[i]);
	return fs_write(TRUSTED, asked_path(q, a), text.data, text.len, 0644, e);
}
