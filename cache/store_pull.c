#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "cache/store_internal.h"

#define LIST_NAME ".remote.json"
#define FILES_MAX 100000

void store_set_remote(struct store *s, store_get_fn *get, const char *url)
{
	s->remote = get;
	s->remote_url = arena_strdup(&s->arena, url);
}

bool store_has_remote(const struct store *s)
{
	return s->remote != NULL;
}

/* One object being downloaded. */
struct pull {
	struct store *s;
	struct store_object object;
	const char *stage;
	const struct run *run;
	struct arena *arena;
};

/* `want` names the file in the object, and the one to make below the stage. */
static int get(const struct pull *p, struct store_want want, enum store_got *ret, struct err *e)
{
	want.path = arena_printf(p->arena, "objects/%s/%s/%s", p->object.kind, p->object.key,
				 want.path);
	want.to = path_join(p->arena, p->stage, want.to);

	return p->s->remote(p->s->remote_url, &want, p->run, ret, e);
}

static int get_file(const struct pull *p, const json_t *row, enum store_got *ret, struct err *e)
{
	const char *rel, *sha256;
	json_int_t size;
	const bool parsed = json_unpack((json_t *)row, "{s:s, s:I, s:s !}", "path", &rel, "size",
					&size, "sha256", &sha256) == 0;
	const bool safe_path = parsed && path_is_safe_relative(rel) && *path_base(rel) != '.';

	if (!safe_path || size < 0 || !digest_valid_hex(sha256))
		return err_set(e, ERR_INTEGRITY, "an entry is invalid");
	const char *to = path_join(p->arena, p->stage, rel);
	if (fs_exists(TRUSTED, to))
		return err_set(e, ERR_INTEGRITY, "duplicate entry '%s'", rel);
	struct stat st;
	const char *dir = path_dir(p->arena, to);
	if (fs_mkdirs(TRUSTED, dir, e) < 0) {
		if (stat(dir, &st) < 0 ? errno != ENOTDIR : S_ISDIR(st.st_mode))
			return -1;
		return err_set(e, ERR_INTEGRITY, "'%s' is below a file", rel);
	}

	if (get(p, (struct store_want){rel, rel, sha256, (uint64_t)size}, ret, e) < 0)
		return -1;
	return *ret == STORE_GOT_ABSENT
		       ? err_set(e, ERR_INTEGRITY, "'%s' is listed but not there", rel)
		       : 0;
}

static int get_object(const struct pull *p, enum store_got *ret, struct err *e)
{
	AUTO_JSON json_t *doc = NULL;
	const char *list = path_join(p->arena, p->stage, LIST_NAME);

	if (get(p, (struct store_want){STORE_MANIFEST, LIST_NAME, NULL, STORE_MANIFEST_MAX}, ret,
		e) < 0)
		return -1;
	if (*ret != STORE_GOT)
		return 0;
	if (store_read_manifest(&p->object, list, &doc, e) < 0)
		return -1;
	if (unlink(list) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot remove '%s'", list);
	const json_t *files = json_object_get(doc, "files"), *row;
	size_t i;
	if (json_array_size(files) > FILES_MAX)
		return err_set(e, ERR_INTEGRITY, "too many entries: %zu", json_array_size(files));
	json_array_foreach(files, i, row)
	{
		if (run_check(p->run, e) < 0 || get_file(p, row, ret, e) < 0)
			return -1;
		if (*ret != STORE_GOT)
			return 0;
	}

	return 0;
}

int store_pull(struct store *s, const char *kind, const char *key, const struct run *run,
	       struct arena *a, const char **ret, struct err *e)
{
	struct pull p = {.s = s, .object = {.kind = kind, .key = key}, .run = run, .arena = a};
	enum store_got got = STORE_GOT_ABSENT;

	*ret = NULL;
	if (store_check_name(kind, key, e) < 0)
		return -1;
	if (!s->remote || atomic_load(&s->remote_dead))
		return 0;
	if (store_stage(s, a, &p.stage, e) < 0)
		return -1;
	int rc = get_object(&p, &got, e);
	/* An answer that cannot be right is the remote's fault, and never stops the run. */
	if (rc < 0 && e->kind == ERR_INTEGRITY)
		err_wrap(e, "the manifest of %s %.12s", kind, key);
	if (rc == 0 && got == STORE_GOT)
		rc = store_publish(s, kind, key, p.stage, a, ret, e);
	if (rc == 0 && got == STORE_GOT) {
		log_verbose(run->log, "%s %.12s comes from the remote store", kind, key);
		return 0;
	}

	if (rc < 0 && (e->kind == ERR_INTEGRITY || e->kind == ERR_CONFIG)) {
		got = STORE_GOT_BAD;
		rc = 0;
	}

	store_drop_stage(s, p.stage);
	if (rc == 0 && got == STORE_GOT_BAD) {
		/* The remote store is not used again in this run. */
		if (!atomic_exchange(&s->remote_dead, true))
			log_warn(run->log, "%s: the remote store is not asked again", e->msg);
		err_clear(e);
	}

	return rc;
}
