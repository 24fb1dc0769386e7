#include "step/pipeline/make.h"

#include "core/elf/elf.h"

/* Without an import, which needs seconds. */
static const char script[] = "import importlib.metadata as m, importlib.util as u\n"
			     "s = u.find_spec('torch')\n"
			     "print(m.version('torch') if s else '')\n"
			     "print(s.submodule_search_locations[0] if s else '')\n";
static const char *const question[] = {"python3", "-I", "-c", script, NULL};

static bool read_answer(const struct buf *out, struct arena *a, struct torch_source *ret)
{
	struct strlist lines = {0};

	strlist_split(&lines, a, buf_cstr(out), "\n");
	if (lines.count != 2 || lines.items[1][0] != '/')
		return false;
	*ret = (struct torch_source){.identity = "root",
				     .version = lines.items[0],
				     .lib_dir = path_join(a, lines.items[1], "lib")};
	return true;
}

bool torch_recall(const struct root *root, enum sandbox_kind kind, const char *answers,
		  struct arena *a, struct torch_source *ret)
{
	AUTO_BUF struct buf out = {0};
	const struct sandbox s = {.kind = kind, .arena = a, .root = root, .answers = answers};
	return sandbox_recall(&s, question, &out) && read_answer(&out, a, ret);
}

int torch_from_root(const struct root *root, enum sandbox_kind kind, const char *answers,
		    const struct run *run, struct arena *a, struct torch_source *ret, struct err *e)
{
	struct sandbox s;
	AUTO_BUF struct buf out = {0};

	if (sandbox_init(&s, kind, root, a, e) < 0)
		return -1;
	s.answers = answers;
	kvlist_set(&s.env, a, "PATH", root_build_path(root, a));
	if (sandbox_capture(&s, question, run, &out, e) < 0)
		return err_wrap(e, "cannot ask '%s' for its torch", root->dir);
	if (read_answer(&out, a, ret))
		return 0;
	err_set(e, ERR_POLICY, "the Python of '%s' has no torch", root->dir);
	return err_hint(e, "install one there, or name a wheel of torch instead of the root");
}

int torch_find_official(const char *word, const struct torch_official *q, struct arena *a,
			struct torch_source *ret, struct err *e)
{
	struct official all;
	const struct official_wheel *w;
	const char *version;

	if (strcmp(text_pin(word, a, &version), "official") != 0) /* or "official==2.11.0" */
		return 0;
	if (official_read(q->profiles, version ? version : q->base, a, &all, e) < 0 ||
	    official_find(&all, "torch", q->python, q->platform, q->cuda, a, &w, e) < 0)
		return -1;
	*ret = (struct torch_source){.identity = arena_printf(a, "sha256:%s", w->sha256),
				     .version = w->name.version,
				     .official = w};
	return 1;
}

int torch_official_of(const char *word, const struct tables *t, const struct plan *p,
		      struct arena *a, struct torch_source *ret, struct err *e)
{
	const struct torch_official q = {t->dir, p->release_row->base, p->python, p->platform,
					 p->cuda};
	return !word || package_is_torch(p->package) ? 0 : torch_find_official(word, &q, a, ret, e);
}

int torch_from_wheel(const char *path, const char *python, struct arena *a,
		     struct torch_source *ret, struct err *e)
{
	struct wheel_name n;
	char digest[DIGEST_HEX_LEN + 1];

	if (!fs_exists(TRUSTED, path)) {
		err_set(e, ERR_USAGE, "no torch wheel '%s'", path);
		return err_hint(e, "pass --torch a wheel's path, 'root', or 'official==VERSION'");
	}

	if (wheel_name_parse(path, a, &n, e) < 0)
		return -1;
	if (strcmp(n.dist, "torch") != 0)
		return err_set(e, ERR_USAGE, "'%s' is a wheel of %s, not of torch", path, n.dist);
	struct strlist digits = {0};
	strlist_split(&digits, a, python, ".");
	const char *tag = arena_printf(a, "cp%s", strlist_join(&digits, a, ""));
	if (strcmp(n.python, tag) != 0)
		return err_set(e, ERR_POLICY, "'%s' is for %s, but the build is for Python %s",
			       path, n.python, python);
	if (digest_file(path, digest, e) < 0)
		return -1;
	*ret = (struct torch_source){.identity = arena_printf(a, "sha256:%s", digest),
				     .version = n.version,
				     .wheel = arena_strdup(a, path)};
	return 0;
}

int torch_unpack(const struct torch_source *t, const char *dir, const struct run *run,
		 struct arena *a, const char **ret, struct err *e)
{
	if (!t->wheel) {
		*ret = NULL;
		return 0;
	}

	const char *top = path_join(a, dir, "torch"), *marker = path_join(a, dir, "torch.ok");
	if (!fs_is_file(TRUSTED, marker)) {
		AUTO_ZIP struct zip_reader *z = NULL;
		if (fs_remove(TRUSTED, top, e) < 0 || zip_open(t->wheel, a, &z, e) < 0 ||
		    zip_extract(z, top, false, run, e) < 0 ||
		    fs_write(TRUSTED, marker, t->identity, strlen(t->identity), 0644, e) < 0)
			return -1;
	}

	*ret = top;
	return 0;
}

int torch_provides(const struct torch_source *t, const struct root *root, const char *unpacked,
		   struct arena *a, struct strlist *ret, struct strlist *ret_files, struct err *e)
{
	struct strlist names = {0};
	const char *dir = t->wheel ? path_join(a, unpacked, "torch/lib")
				   : path_join(a, root->dir, t->lib_dir);

	if (fs_list(TRUSTED, dir, a, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		const char *path = path_join(a, dir, names.items[i]);
		/* a distribution's torch/lib holds links into its library directory */
		if (!t->wheel) {
			const char *inside;
			if (root_find(root, path_join(a, t->lib_dir, names.items[i]), a, &inside,
				      e) < 0)
				return -1;
			if (!inside)
				continue;
			path = path_join(a, root->dir, inside);
		}

		struct elf_info info;
		int rc = elf_try(path, a, &info, e);
		if (rc < 0)
			return -1;
		if (rc == 0)
			continue;
		strlist_add(ret, a, names.items[i]);
		strlist_add(ret_files, a, path);
		if (*info.soname && !strlist_contains(ret, info.soname))
			strlist_add(ret, a, info.soname);
	}

	if (ret->count == 0)
		return err_set(e, ERR_POLICY, "no torch libraries in '%s'", dir);
	return 0;
}
