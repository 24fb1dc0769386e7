#include "step/pipeline/pipeline.h"

#include "base/sys/json.h"
#include "step/fetch/fetch.h"
#include "step/lock/lock_make.h"
#include "step/verify/verify.h"

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
	return err_set(e, ERR_POLICY, "'%s' is a wheel of %s, and the workloads are torch's",
		       path_base(wheel), ret->dist);
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
		err_set(e, ERR_POLICY,
			"the wheels cannot be compared: '%s' is of %s %s, '%s' of %s",
			path_base(ours), parts[i].what, parts[i].ours, path_base(other),
			parts[i].other);
		return err_hint(e, "both must have the same version, Python and ABI; only local "
				   "labels (+cpu.avx2) may differ");
	}

	return 0;
}

/* ---- what a wheel pins ---- */

struct pairing {
	const struct pair_request *b;
	const struct run *run;
	struct arena *a;
	const struct sandbox *root; /* the root alone, with BENCH_SCRIPTS */
	const char *scripts_dir;
	const char *stage; /* where the environments are made */
};

struct pins {
	struct pin {
		const char *line, *text; /* as it was given; NAME==VERSION */
		struct strlist extras;
	} items[REQUIRES_MAX];
	size_t count;
};

/* Reads a line of a wheel's metadata: NAME==VERSION or NAME[EXTRA,...]==VERSION, of the characters
 * that each may have. */
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
	if (n == 0 || n >= 80 || strlen(rest) >= 80)
		return false;
	if (strncmp(rest, "==", 2) != 0 || !rest[2])
		return false;
	return !rest[2 + strspn(rest + 2, version)];
#undef NAME
}

/* What there is beside it, as the root's Python does not see it. */
static json_t *have(const struct pairing *p)
{
	json_t *all = json_object();

	for (size_t i = 0; i < p->b->beside.count; i++) {
		struct wheel_name n;
		if (wheel_name_parse(p->b->beside.items[i], p->a, &n, ERR_IGNORED) == 0)
			json_object_set_new(all, wheel_normalize(n.dist, p->a),
					    json_string(n.version));
	}

	return all;
}

/* A root in which nothing of the wheels is, and the scripts. */
static int show_root(struct pairing *p, struct sandbox *root, struct err *e)
{
	if (sandbox_init(root, p->b->q->kind, p->b->q->root, p->a, e) < 0)
		return -1;
	kvlist_set(&root->env, p->a, "PATH", "/usr/bin:/bin");
	sandbox_add(root, SANDBOX_RO, p->scripts_dir, BENCH_SCRIPTS);
	p->root = root;
	return 0;
}

/* Adds the pins of a wheel with these extras. */
static int add_pins(const struct pairing *p, const char *wheel, const struct strlist *extras,
		    struct pins *ret, struct err *e)
{
	struct arena *a = p->a;
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
		return err_set(e, ERR_INTEGRITY, "'%s' requires %zu distributions",
			       path_base(wheel), requires.count);
	AUTO_JSON json_t *question =
		json_pack("{s:o, s:o, s:o}", "requires", json_from_strlist(&requires), "extras",
			  json_from_strlist(extras), "have", have(p));
	AUTO_FREE char *asked = json_dumps(question, JSON_COMPACT);
	static const char script[] = BENCH_SCRIPTS "/requires.py";
	const char *argv[] = {"python3", "-I", script, asked, NULL};
	if (sandbox_capture(p->root, argv, p->run, &out, e) < 0)
		return err_wrap(e, "cannot tell what '%s' requires", path_base(wheel));
	strlist_split(&lines, a, buf_cstr(&out), "\n");
	for (size_t i = 0; i < lines.count; i++) {
		struct pin pin = {0};
		bool again = false;
		if (!read_pin(lines.items[i], a, &pin))
			return err_set(e, ERR_INTEGRITY, "'%s' requires '%.100s'", path_base(wheel),
				       lines.items[i]);
		for (size_t k = 0; k < ret->count; k++)
			again = again || strcmp(ret->items[k].line, pin.line) == 0;
		if (!again && ret->count == ARRAY_LEN(ret->items))
			return err_set(e, ERR_INTEGRITY,
				       "'%s' requires more than %zu distributions",
				       path_base(wheel), ret->count);
		if (!again)
			ret->items[ret->count++] = pin;
	}

	return 0;
}

/* One wheel's file in the store, by the digest that the index
 * lists; of those for several Pythons that of this one. */
static int fetch_pin(const struct pairing *p, const char *pin, const struct wheel_name *torch,
		     const char **ret, struct err *e)
{
	const struct pipeline_request *q = p->b->q;
	struct wheel_page page;
	struct world_entry entry;
	struct fetch_stats stats;

	if (wheel_list(&(struct fetcher){q->store, &q->fetch, p->run, p->a}, pin, &page, e) < 0 ||
	    (lock_wheel(pin, "py3", "none", p->b->platform, page.files, page.count, p->a, &entry,
			ERR_IGNORED) < 0 &&
	     lock_wheel(pin, torch->python, torch->abi, p->b->platform, page.files, page.count,
			p->a, &entry, e) < 0))
		return -1;
	struct fetch_source source = {
		.name = entry.place, .sha256 = entry.sha256, .max_bytes = entry.size};
	strlist_addf(&source.urls, p->a, "wheel:%s==%s/%s", entry.name, entry.version, entry.place);
	if (fetch_all(&(struct fetcher){q->store, &q->fetch, p->run, p->a}, &source, 1, &stats, e) <
	    0)
		return -1;
	*ret = source.path;
	return 0;
}

/* The wheels that it pins, into the store. */
static int fetch_pins(const struct pairing *p, const char *wheel, struct strlist *ret,
		      struct err *e)
{
	struct pins *pins = arena_alloc(p->a, sizeof(*pins));
	struct wheel_name torch;
	const char *file;

	if (add_pins(p, wheel, &(struct strlist){0}, pins, e) < 0 ||
	    wheel_name_parse(wheel, p->a, &torch, e) < 0)
		return -1;
	for (size_t i = 0; i < pins->count; i++) {
		const struct pin *pin = &pins->items[i];
		log_stage(p->run->log, "bench: %s, which '%s' requires", pin->text,
			  path_base(wheel));
		if (fetch_pin(p, pin->text, &torch, &file, e) < 0) {
			err_wrap(e, "%s, which '%s' requires", pin->text, path_base(wheel));
			return *e->hint ? -1 : err_hint(e, "give its wheel with --with FILE");
		}

		if (pin->extras.count && add_pins(p, file, &pin->extras, pins, e) < 0)
			return -1;
		strlist_once(ret, p->a, file);
	}

	return 0;
}

/* ---- both ---- */

static int make_environment(const struct pairing *p, const char *wheel, const char *dir,
			    struct sandbox *ret, struct err *e)
{
	const struct pipeline_request *q = p->b->q;
	struct verify_run_request v = {
		.run = p->run, .root = q->root, .kind = q->kind, .wheel = wheel, .work_dir = dir};

	strlist_append(&v.beside, p->a, &p->b->beside);
	if (fetch_pins(p, wheel, &v.beside, e) < 0)
		return -1;
	log_stage(p->run->log, "bench: '%s' is installed", path_base(wheel));
	return verify_environment(&v, p->a, ret, e) < 0 ? err_wrap(e, "'%s'", path_base(wheel)) : 0;
}

static struct bench_request request_of(const struct pairing *p)
{
	return (struct bench_request){.root = p->root,
				      .python = VERIFY_PYTHON,
				      .scripts_dir = p->scripts_dir,
				      .asked = p->b->asked,
				      .run = p->run};
}

static int run_staged(const struct pairing *p, const char *const *wheels, json_t **ret,
		      struct err *e)
{
	static const char *const names[] = {"wheel", "other"};
	struct bench_request q = request_of(p);
	struct sandbox *envs = arena_array(p->a, BENCH_SIDES, sizeof(*envs));
	json_t *files = json_array();

	json_object_set_new(q.asked, "files", files);
	q.runs_dir = path_join(p->a, p->stage, "runs");
	for (size_t i = 0; i < BENCH_SIDES; i++) {
		json_array_append_new(files, json_string(path_base(wheels[i])));
		if (make_environment(p, wheels[i], path_join(p->a, p->stage, names[i]), &envs[i],
				     e) < 0)
			return -1;
		q.sandboxes[i] = &envs[i];
	}

	if (fs_mkdirs(TRUSTED, q.runs_dir, e) < 0)
		return -1;
	return bench_run(&q, ret, e);
}

/* Before anything is downloaded or installed: the other is for the same Python. */
static int check_first(const struct pairing *p, struct err *e)
{
	const struct pair_request *b = p->b;
	const struct bench_request q = request_of(p);

	if (verify_python(b->q->root, b->wheels[BENCH_OURS], p->a, e) < 0)
		return -1;
	for (size_t i = 0; i < b->beside.count; i++)
		if (verify_python(b->q->root, b->beside.items[i], p->a, e) < 0)
			return -1;
	return bench_check(&q, e);
}

int pair_bench(const struct pair_request *b, struct arena *a, json_t **ret, struct err *e)
{
	struct sandbox root;
	struct pairing p = {.b = b,
			    .run = b->run,
			    .a = a,
			    .scripts_dir = path_join(a, b->q->profiles_dir, "bench")};
	const char *wheels[] = {b->wheels[BENCH_OURS], b->wheels[BENCH_OTHER]};

	json_object_set_new(b->asked, "scripts", json_string(p.scripts_dir));
	if (show_root(&p, &root, e) < 0 || check_first(&p, e) < 0)
		return -1;
	if (!wheels[BENCH_OTHER]) {
		struct wheel_name ours;
		if (check_torch(b->wheels[BENCH_OURS], a, &ours, e) < 0)
			return -1;
		const char *pin = arena_printf(a, "torch==%s", public_version(ours.version, a));
		if (fetch_pin(&p, pin, &ours, &wheels[BENCH_OTHER], e) < 0)
			return err_wrap(e, "the official wheel");
	}

	if (pair_check(wheels[BENCH_OURS], wheels[BENCH_OTHER], e) < 0 ||
	    store_stage(b->q->store, a, &p.stage, e) < 0)
		return -1;
	int rc = run_staged(&p, wheels, ret, e);
	log_status_end(b->run->log);
	store_drop_stage(b->q->store, p.stage);
	return rc;
}
