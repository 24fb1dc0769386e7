#include "step/pipeline/pipeline.h"

#include "base/sys/json.h"
#include "step/fetch/fetch.h"
#include "step/lock/lock_make.h"
#include "step/verify/verify.h"

#define SCRIPTS SANDBOX_TOP "/bench"
enum { REQUIRES_MAX = 256 };

/* ---- the wheels ---- */

static const char *public_version(const char *version, struct arena *a)
{
	return arena_strndup(a, version, strcspn(version, "+"));
}

static int check_torch(const char *wheel, struct arena *a, struct wheel_name *ret, struct err *e)
{
	if (wheel_name_parse(wheel, a, ret, e) < 0)
		return -1;
	if (strcmp(ret->dist, "torch") == 0)
		return 0;
	return err_set(e, ERR_POLICY, "'%s' is a wheel of %s, and the workloads are torch's", path_base(wheel),
		       ret->dist);
}

int pair_check(const char *ours, const char *other, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct wheel_name x, y;
	if (check_torch(ours, &a, &x, e) < 0 || check_torch(other, &a, &y, e) < 0)
		return -1;
	const struct {
		const char *what, *ours, *other;
	} parts[] = {{"version", public_version(x.version, &a), public_version(y.version, &a)},
		     {"Python", x.python, y.python},
		     {"ABI", x.abi, y.abi}};
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		if (strcmp(parts[i].ours, parts[i].other) == 0)
			continue;
		err_set(e, ERR_POLICY, "the wheels cannot be compared: '%s' is of %s %s, '%s' of %s", path_base(ours),
			parts[i].what, parts[i].ours, path_base(other), parts[i].other);
		return err_hint(e, "both must have the same version, Python and ABI; only local labels (+cpu.avx2) "
				   "may differ");
	}
	return 0;
}

/* ---- from the index ---- */

/* A file of the store, by the digest that the index lists. */
static int fetch_entry(const struct pair_request *b, const struct world_entry *entry, const struct run *run,
		       struct arena *a, const char **ret, struct err *e)
{
	struct fetch_source source = {.name = entry->place, .sha256 = entry->sha256, .max_bytes = entry->size};
	struct fetch_stats stats;
	strlist_addf(&source.urls, a, "wheel:%s==%s/%s", entry->name, entry->version, entry->place);
	if (fetch_all(b->q->store, &source, 1, &b->q->fetch, run, a, &stats, e) < 0)
		return -1;
	*ret = source.path;
	return 0;
}

/* ---- what a wheel pins ---- */

struct pins {
	struct pin {
		const char *line, *text; /* as it was given; NAME==VERSION */
		struct strlist extras;
	} items[REQUIRES_MAX];
	size_t count;
};

/* Of a line of what the metadata of a wheel say: NAME==VERSION or NAME[EXTRA,...]==VERSION, of characters that each
 * may have. */
static bool read_pin(const char *line, struct arena *a, struct pin *ret)
{
#define NAME "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."
	static const char version[] = "abcdefghijklmnopqrstuvwxyz0123456789.!-";
	const size_t n = strspn(line, NAME);
	const char *rest = line + n;
	if (*rest == '[') {
		const size_t length = strspn(rest + 1, NAME ",");
		strlist_split(&ret->extras, a, arena_strndup(a, rest + 1, length), ",");
		rest += 1 + length;
		rest += *rest == ']';
	}
	ret->line = line;
	ret->text = arena_printf(a, "%.*s%s", (int)n, line, rest);
	return n > 0 && n < 80 && strncmp(rest, "==", 2) == 0 && rest[2] && strlen(rest) < 80 &&
	       !rest[2 + strspn(rest + 2, version)];
#undef NAME
}

/* What there is beside it, as the root's Python does not see it. */
static json_t *have(const struct pair_request *b, struct arena *a)
{
	json_t *all = json_object();
	for (size_t i = 0; i < b->beside.count; i++) {
		struct wheel_name n;
		if (wheel_name_parse(b->beside.items[i], a, &n, ERR_IGNORED) == 0)
			json_object_set_new(all, wheel_normalize(n.dist, a), json_string(n.version));
	}
	return all;
}

/* The root's Python is asked, in which nothing of the wheels is. */
static int ask_root(const struct pair_request *b, const char *script, const char *question, const struct run *run,
		    struct arena *a, struct buf *out, struct err *e)
{
	const char *argv[] = {"python3", "-I", script, question, NULL};
	struct sandbox s;
	if (sandbox_init(&s, b->q->kind, b->q->root, a, e) < 0)
		return -1;
	kvlist_set(&s.env, a, "PATH", "/usr/bin:/bin");
	sandbox_add(&s, SANDBOX_RO, b->bench.scripts_dir, SCRIPTS);
	return sandbox_capture(&s, argv, run, out, e);
}

/* Of a wheel with these extras. */
static int add_pins(const struct pair_request *b, const char *wheel, const struct strlist *extras,
		    const struct run *run, struct arena *a, struct pins *ret, struct err *e)
{
	AUTO_BUF struct buf out = {0};
	struct strlist requires = {0}, lines = {0};
	/* The lines Requires-Dist of a wheel, which is not installed yet. */
	struct wheel_name n;
	struct wheel_headers h;
	AUTO_ZIP struct zip_reader *z = NULL;
	if (wheel_name_parse(wheel, a, &n, e) < 0 || zip_open(wheel, a, &z, e) < 0)
		return -1;
	const char *info = "";
	(void)!wheel_zip_dist_info(z, a, &info, ERR_IGNORED);
	if (wheel_zip_headers(z, info, "METADATA", a, &h, e) < 0)
		return err_wrap(e, "'%s'", path_base(wheel));
	wheel_headers_all(&h, "Requires-Dist", a, &requires);
	if (requires.count > REQUIRES_MAX)
		return err_set(e, ERR_INTEGRITY, "'%s' requires %zu distributions", path_base(wheel), requires.count);
	AUTO_JSON json_t *question = json_pack("{s:o, s:o, s:o}", "requires", json_from_strlist(&requires), "extras",
					       json_from_strlist(extras), "have", have(b, a));
	AUTO_FREE char *asked = json_dumps(question, JSON_COMPACT);
	if (ask_root(b, SCRIPTS "/requires.py", asked, run, a, &out, e) < 0)
		return err_wrap(e, "cannot tell what '%s' requires", path_base(wheel));
	strlist_split(&lines, a, buf_cstr(&out), "\n");
	for (size_t i = 0; i < lines.count; i++) {
		struct pin pin = {0};
		bool again = false;
		if (!read_pin(lines.items[i], a, &pin))
			return err_set(e, ERR_INTEGRITY, "'%s' requires '%.100s'", path_base(wheel), lines.items[i]);
		for (size_t k = 0; k < ret->count; k++)
			again = again || strcmp(ret->items[k].line, pin.line) == 0;
		if (!again && ret->count == ARRAY_LEN(ret->items))
			return err_set(e, ERR_INTEGRITY, "'%s' requires more than %zu distributions", path_base(wheel),
				       ret->count);
		if (!again)
			ret->items[ret->count++] = pin;
	}
	return 0;
}

/* One wheel's file; of those for several Pythons that of this one. */
static int fetch_pin(const struct pair_request *b, const char *pin, const struct wheel_name *torch,
		     const struct run *run, struct arena *a, const char **ret, struct err *e)
{
	struct wheel_page page;
	struct world_entry entry;
	if (wheel_list(b->q->store, pin, &b->q->fetch, run, a, &page, e) < 0 ||
	    (lock_wheel(pin, "py3", "none", b->platform, page.files, page.count, a, &entry, ERR_IGNORED) < 0 &&
	     lock_wheel(pin, torch->python, torch->abi, b->platform, page.files, page.count, a, &entry, e) < 0))
		return -1;
	return fetch_entry(b, &entry, run, a, ret, e);
}

/* The wheels that it pins, into the store. */
static int fetch_pins(const struct pair_request *b, const char *wheel, const struct run *run, struct arena *a,
		      struct strlist *ret, struct err *e)
{
	struct pins *pins = arena_alloc(a, sizeof(*pins));
	struct wheel_name torch;
	const char *file;
	if (add_pins(b, wheel, &(struct strlist){0}, run, a, pins, e) < 0 || wheel_name_parse(wheel, a, &torch, e) < 0)
		return -1;
	for (size_t i = 0; i < pins->count; i++) {
		const struct pin *pin = &pins->items[i];
		log_stage(run->log, "bench: %s, which '%s' requires", pin->text, path_base(wheel));
		if (fetch_pin(b, pin->text, &torch, run, a, &file, e) < 0) {
			err_wrap(e, "%s, which '%s' requires", pin->text, path_base(wheel));
			return *e->hint ? -1 : err_hint(e, "give its wheel with --with FILE");
		}
		if (pin->extras.count && add_pins(b, file, &pin->extras, run, a, pins, e) < 0)
			return -1;
		strlist_once(ret, a, file);
	}
	return 0;
}

/* ---- both ---- */

static int make_environment(const struct pair_request *b, const char *wheel, const char *dir, const struct run *run,
			    struct arena *a, struct sandbox *ret, struct err *e)
{
	struct verify_run_request v = {.root = b->q->root, .kind = b->q->kind, .wheel = wheel, .work_dir = dir};
	strlist_append(&v.beside, a, &b->beside);
	if (fetch_pins(b, wheel, run, a, &v.beside, e) < 0)
		return -1;
	log_stage(run->log, "bench: '%s' is installed", path_base(wheel));
	return verify_environment(&v, run, a, ret, e) < 0 ? err_wrap(e, "'%s'", path_base(wheel)) : 0;
}

static int run_in(const struct pair_request *b, const char *const *wheels, const char *stage, const struct run *run,
		  struct arena *a, struct bench_result *ret, struct err *e)
{
	static const char *const names[] = {"wheel", "other"};
	struct bench_request q = b->bench;
	struct sandbox *envs = arena_array(a, BENCH_SIDES, sizeof(*envs));
	q.python = VERIFY_PYTHON;
	for (size_t i = 0; i < BENCH_SIDES; i++) {
		if (make_environment(b, wheels[i], path_join(a, stage, names[i]), run, a, &envs[i], e) < 0)
			return -1;
		q.sandboxes[i] = &envs[i];
	}
	return bench_run(&q, run, a, ret, e);
}

/* Before anything is downloaded or installed. */
static int choose_workloads(struct pair_request *b, const struct run *run, struct arena *a, struct err *e)
{
	AUTO_BUF struct buf out = {0};
	struct strlist names = {0};
	if (ask_root(b, SCRIPTS "/run_workloads.py", "names", run, a, &out, e) < 0)
		return err_wrap(e, "cannot tell which workloads there are");
	strlist_split(&names, a, buf_cstr(&out), "\n");
	return bench_choose(&b->bench, &names, a, e);
}

int pair_bench(const struct pair_request *given, const struct run *run, struct arena *a, struct bench_result *ret,
	       const char **ret_other, struct err *e)
{
	struct pair_request b = *given;
	const char *wheels[] = {b.wheels[BENCH_OURS], b.wheels[BENCH_OTHER]}, *stage;
	b.bench.scripts_dir = path_join(a, b.q->profiles_dir, "bench");
	/* Before anything is downloaded; the other is for the same Python. */
	if (verify_python(b.q->root, wheels[BENCH_OURS], a, e) < 0)
		return -1;
	for (size_t i = 0; i < b.beside.count; i++)
		if (verify_python(b.q->root, b.beside.items[i], a, e) < 0)
			return -1;
	if (choose_workloads(&b, run, a, e) < 0)
		return -1;
	if (!wheels[BENCH_OTHER]) {
		struct wheel_name ours;
		struct wheel_page page;
		struct world_entry entry;
		if (check_torch(b.wheels[BENCH_OURS], a, &ours, e) < 0)
			return -1;
		const char *pin = arena_printf(a, "torch==%s", public_version(ours.version, a));
		if (wheel_list(b.q->store, pin, &b.q->fetch, run, a, &page, e) < 0 ||
		    lock_wheel(pin, ours.python, ours.abi, b.platform, page.files, page.count, a, &entry, e) < 0 ||
		    fetch_entry(&b, &entry, run, a, &wheels[BENCH_OTHER], e) < 0)
			return err_wrap(e, "the official wheel");
	}
	if (pair_check(wheels[BENCH_OURS], wheels[BENCH_OTHER], e) < 0 || store_stage(b.q->store, a, &stage, e) < 0)
		return -1;
	int rc = run_in(&b, wheels, stage, run, a, ret, e);
	log_status_end(run->log);
	store_drop_stage(b.q->store, stage);
	*ret_other = wheels[BENCH_OTHER];
	return rc;
}
