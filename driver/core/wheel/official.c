#include "core/wheel/requirement.h"

#include <inttypes.h>

#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "base/sys/machine.h"

#define MAGIC "ptbuild official 1"
#define GPUS "gpus "

enum { FILE_MAX = 1 << 20, FIELDS = 4 };

/* A list that is read line by line. */
struct reader {
	struct official *o;
	const char *line;
	unsigned number; /* of the line */
	struct arena *a;
};

static int bad(const struct reader *r, const char *what, struct err *e)
{
	return err_set(e, ERR_CONFIG, "%s:%u: %s", r->o->path, r->number, what);
}

static void add(struct official *o, const struct official_wheel *w, struct arena *a)
{
	o->wheels = arena_room(a, o->wheels, o->count, &o->cap, 32, sizeof(*o->wheels));
	o->wheels[o->count++] = *w;
}

static int read_line(const struct reader *r, struct err *e)
{
	struct arena *a = r->a;
	struct strlist fields = {0};
	struct official_wheel w = {0};
	struct err why = {0};

	strlist_split(&fields, a, r->line, " ");
	if (fields.count != FIELDS)
		return bad(r, "not a file, its sha256, its size and its CUDA", e);
	w.file = fields.items[0];
	w.sha256 = fields.items[1];
	w.cuda = fields.items[3];
	if (wheel_name_parse(w.file, a, &w.name, &why) < 0 ||
	    (official_machine(w.name.platform) < 0 && strcmp(w.name.platform, "any") != 0))
		return bad(r, why.kind ? why.msg : "not a wheel for Linux", e);
	if (!digest_valid_hex(w.sha256))
		return bad(r, "not a sha256", e);
	if (strspn(fields.items[2], "0123456789") != strlen(fields.items[2]) ||
	    strlen(fields.items[2]) > 12 || (w.size = strtoull(fields.items[2], NULL, 10)) == 0)
		return bad(r, "not a size", e);
	if (strcmp(w.cuda, "-") != 0 && !version_valid(w.cuda))
		return bad(r, "not a version of CUDA", e);
	add(r->o, &w, a);
	return 0;
}

/* "gpus x86_64 75 80 90": the targets of torch's GPU library. */
static int read_gpus(const struct reader *r, struct err *e)
{
	struct arena *a = r->a;
	struct strlist fields = {0};

	strlist_split(&fields, a, r->line, " ");
	if (fields.count < 3)
		return bad(r, "not a machine and its GPU targets", e);
	const bool arm = strcmp(fields.items[1], "aarch64") == 0;
	if (!arm && strcmp(fields.items[1], "x86_64") != 0)
		return bad(r, "not x86_64 or aarch64", e);
	for (size_t i = 2; i < fields.count; i++) {
		const char *target = fields.items[i],
			   *suffix = target + strspn(target, "0123456789");
		if (suffix == target || (*suffix && strcmp(suffix, "+ptx") != 0))
			return bad(r, "not a GPU target", e);
		strlist_ref(&r->o->gpus[arm], a, target);
	}

	return 0;
}

static int no_file(const char *profiles, const char *release, struct arena *a, struct err *e)
{
	struct strlist names = {0};
	const char *dir = path_join(a, profiles, "official");

	if (fs_is_dir(TRUSTED, dir) && fs_list(TRUSTED, dir, a, &names, ERR_IGNORED) < 0)
		names.count = 0;
	if (names.count)
		qsort(names.items, names.count, sizeof(*names.items), version_order);
	err_set(e, ERR_CONFIG, "the official wheels of release '%s' are not pinned", release);
	for (size_t i = 0; i < names.count; i++)
		if (strncmp(names.items[i], release, strlen(release)) == 0 &&
		    names.items[i][strlen(release)] == '.')
			return err_hint(e, "did you mean '%s'?", names.items[i]);
	const char *pinned = names.count ? strlist_join(&names, a, ", ") : "none";
	/* A release of a distribution has no wheels in the Python index. */
	if (!*release || release[strspn(release, "0123456789.")])
		return err_hint(e, "pinned are %s", pinned);
	return err_hint(
		e, "pinned are %s; 'ptbuild slim --release %s --pin torch==%s' pins its wheels",
		pinned, release, release);
}

bool official_pinned(const char *profiles, const char *release, struct arena *a)
{
	const char *path = path_join(a, path_join(a, profiles, "official"), release);
	return version_valid(release) && fs_exists(TRUSTED, path);
}

int official_read_file(const char *path, struct arena *a, struct official *ret, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	struct official o = {.path = path};
	struct reader r = {.o = &o, .a = a};

	if (fs_read(TRUSTED, o.path, FILE_MAX, &text, e) < 0)
		return -1;
	char *rest = arena_strdup(a, buf_cstr(&text));
	for (char *line; (line = strsep(&rest, "\n"));) {
		r.line = line;
		r.number++;
		if (r.number == 1 && strcmp(line, MAGIC) != 0)
			return bad(&r,
				   "not a list of official wheels: it does not begin with '" MAGIC
				   "'",
				   e);
		if (r.number == 1 || !*line || *line == '#')
			continue;
		const bool gpus = strncmp(line, GPUS, strlen(GPUS)) == 0;
		if ((gpus ? read_gpus : read_line)(&r, e) < 0)
			return -1;
	}

	*ret = o;
	return 0;
}

int official_read(const char *profiles, const char *release, struct arena *a, struct official *ret,
		  struct err *e)
{
	const char *path = path_join(a, path_join(a, profiles, "official"), release);

	if (!version_valid(release) || !fs_exists(TRUSTED, path))
		return no_file(profiles, release, a, e);
	return official_read_file(path, a, ret, e);
}

void official_text(const struct official *o, const char *release, struct buf *out)
{
	static const char *const machines[] = {"x86_64", "aarch64"};
	AUTO_ARENA struct arena scratch = {0};

	buf_printf(out,
		   MAGIC "\n# file, sha256, size, CUDA; made by 'ptbuild slim --release %s --pin "
			 "NAME==VERSION,...'\n",
		   release);
	for (size_t i = 0; i < ARRAY_LEN(machines); i++)
		if (o->gpus[i].count)
			buf_printf(out, GPUS "%s %s\n", machines[i],
				   strlist_join(&o->gpus[i], &scratch, " "));
	for (size_t i = 0; i < o->count; i++)
		buf_printf(out, "%s %s %" PRIu64 " %s\n", o->wheels[i].file, o->wheels[i].sha256,
			   o->wheels[i].size, o->wheels[i].cuda);
}

int official_machine(const char *tag)
{
	if (!strstr(tag, "linux"))
		return -1;
	return path_has_suffix(tag, "_x86_64") ? 0 : path_has_suffix(tag, "_aarch64") ? 1 : -1;
}

static bool same_but_build(const struct wheel_name *x, const struct wheel_name *y)
{
	return strcmp(x->dist, y->dist) == 0 && strcmp(x->python, y->python) == 0 &&
	       strcmp(x->abi, y->abi) == 0 &&
	       official_machine(x->platform) == official_machine(y->platform);
}

int official_take(struct official *o, const char *asked, const struct wheel_listed *files,
		  size_t count, const char *const cuda[2], struct arena *a, struct err *e)
{
	const char *version, *dist = wheel_normalize(text_pin(asked, a, &version), a);
	const size_t before = o->count;

	if (!version || !*dist || !*version) {
		err_set(e, ERR_USAGE, "not a wheel with its version: '%s'", asked);
		return err_hint(e, "write it as NAME==VERSION");
	}

	for (size_t i = 0; i < count; i++) {
		struct official_wheel w = {
			.file = files[i].name, .sha256 = files[i].sha256, .size = files[i].size};
		bool taken = false;
		if (wheel_name_parse(w.file, a, &w.name, ERR_IGNORED) < 0 ||
		    official_machine(w.name.platform) < 0 ||
		    strcmp(wheel_normalize(w.name.dist, a), dist) != 0 ||
		    strcmp(w.name.version, version) != 0 || !digest_valid_hex(w.sha256) || !w.size)
			continue;
		w.cuda = cuda[official_machine(w.name.platform)];
		if (!w.cuda)
			continue;
		for (size_t k = before; k < o->count && !taken; k++) {
			taken = same_but_build(&o->wheels[k].name, &w.name);
			if (taken && strtoul(w.name.build, NULL, 10) >
					     strtoul(o->wheels[k].name.build, NULL, 10))
				o->wheels[k] = w;
		}

		if (!taken)
			add(o, &w, a);
	}

	if (o->count == before)
		return err_set(e, ERR_NETWORK, "the index has no wheel of '%s' for Linux", asked);
	qsort(o->wheels + before, o->count - before, sizeof(*o->wheels), text_cmp);
	return 0;
}

void official_keep(struct official *o, const struct official *old, struct arena *a)
{
	const struct official named = *o;

	memcpy(o->gpus, old->gpus, sizeof(o->gpus));
	for (size_t i = 0; i < old->count; i++)
		if (!official_has(&named, wheel_normalize(old->wheels[i].name.dist, a), a))
			add(o, &old->wheels[i], a);
}

bool official_has(const struct official *o, const char *dist, struct arena *a)
{
	for (size_t i = 0; i < o->count; i++)
		if (strcmp(wheel_normalize(o->wheels[i].name.dist, a), dist) == 0)
			return true;
	return false;
}

static const char *machine_of(const struct official_wheel *w)
{
	if (strcmp(w->name.platform, "any") == 0)
		return "every machine";
	return official_machine(w->name.platform) ? "aarch64" : "x86_64";
}

static bool on_platform(const struct official_wheel *w, const char *platform)
{
	return strcmp(w->name.platform, "any") == 0 ||
	       official_machine(w->name.platform) == machine_is_arm(platform);
}

/* torch is for one toolkit; the runtime of its companions serves all of a major version. */
static bool fits_cuda(const struct official_wheel *w, const char *dist, const char *cuda)
{
	if (!cuda || strcmp(w->cuda, "-") == 0 || strcmp(w->cuda, cuda) == 0)
		return true;
	return strcmp(dist, "torch") != 0 && strtol(w->cuda, NULL, 10) == strtol(cuda, NULL, 10);
}

static bool is_alike(const struct official_wheel *x, const struct official_wheel *y)
{
	return official_machine(x->name.platform) == official_machine(y->name.platform) &&
	       strcmp(x->cuda, y->cuda) == 0;
}

/* "cp312, cp313 for x86_64 with CUDA 12.8; py3 for every machine" */
static const char *have_text(const struct official *o, const char *dist, struct arena *a)
{
	struct strlist groups = {0};

	for (size_t i = 0; i < o->count; i++) {
		const struct official_wheel *w = &o->wheels[i];
		struct strlist pythons = {0};
		if (strcmp(wheel_normalize(w->name.dist, a), dist) != 0)
			continue;
		for (size_t k = 0; k < o->count; k++) {
			const struct wheel_name *n = &o->wheels[k].name;
			if (strcmp(wheel_normalize(n->dist, a), dist) != 0 ||
			    !is_alike(&o->wheels[k], w))
				continue;
			/* "cp313t" is another interpreter. */
			strlist_once(&pythons, a,
				     path_has_suffix(n->abi, "t") ? n->abi : n->python);
		}

		const bool labelled = strcmp(w->cuda, "-") != 0;
		strlist_once(&groups, a,
			     arena_printf(a, "%s for %s%s%s", strlist_join(&pythons, a, ", "),
					  machine_of(w), labelled ? " with CUDA " : "",
					  labelled ? w->cuda : ""));
	}

	return groups.count ? strlist_join(&groups, a, "; ") : "none of it";
}

int official_find(const struct official *o, const char *dist, const char *python,
		  const char *platform, const char *cuda, struct arena *a,
		  const struct official_wheel **ret, struct err *e)
{
	for (size_t i = 0; i < o->count; i++) {
		const struct official_wheel *w = &o->wheels[i];
		if (strcmp(wheel_normalize(w->name.dist, a), dist) != 0)
			continue;
		if (wheel_name_takes(&w->name, python, a) && on_platform(w, platform) &&
		    fits_cuda(w, dist, cuda)) {
			*ret = w;
			return 0;
		}
	}

	err_set(e, ERR_CONFIG, "'%s' has no %s for Python %s, %s, CUDA %s", o->path, dist, python,
		platform, cuda ? cuda : "(any)");
	return err_hint(e, "it has %s", have_text(o, dist, a));
}

/* "12.8" of the pin of CUDA's runtime, or of the bundle that has it; NULL. */
static const char *pinned_cuda(const struct requirement *r, struct arena *a)
{
	static const char *const runtimes[] = {"nvidia_cuda_runtime_cu12",
					       "nvidia_cuda_runtime_cu11", "nvidia_cuda_runtime",
					       "cuda_toolkit"};
	const char *pin = strstr(r->specifier, "==");

	if (!pin || !strings_contain(runtimes, ARRAY_LEN(runtimes), r->name))
		return NULL;
	pin += strspn(pin, "= \t");
	const size_t major = strspn(pin, "0123456789");
	const size_t minor = pin[major] == '.' ? strspn(pin + major + 1, "0123456789") : 0;
	return major && minor ? arena_strndup(a, pin, major + 1 + minor) : NULL;
}

const char *official_cuda(const struct wheel_headers *metadata, const char *platform,
			  struct arena *a)
{
	struct marker_env env = {.platform = platform, .extra = ""};
	struct strlist lines = {0};

	if (platform && !strchr(platform, '-'))
		env.platform = arena_printf(a, "%s-linux", platform);
	wheel_headers_all(metadata, "Requires-Dist", a, &lines);
	for (size_t i = 0; i < lines.count; i++) {
		struct requirement r;
		if (requirement_parse(lines.items[i], a, &r, ERR_IGNORED) < 0 ||
		    marker_eval(r.marker, &env, a) == HOLDS_NEVER)
			continue;
		const char *cuda = pinned_cuda(&r, a);
		if (cuda)
			return cuda;
	}

	return "-";
}
