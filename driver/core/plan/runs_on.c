#include "core/plan/runs_on.h"

#include "base/sys/json.h"
#include "core/plan/plan.h"
#include "core/wheel/wheel.h"

/* "128" for "12.8". */
static const struct toolkit_row *toolkit_of(const struct tables *t, const char *digits,
					    struct arena *a)
{
	for (unsigned i = 0; i < t->toolkits_count; i++) {
		struct strlist parts = {0};
		strlist_split(&parts, a, t->toolkits[i].version, ".");
		if (strcmp(strlist_join(&parts, a, ""), digits) == 0)
			return &t->toolkits[i];
	}

	return NULL;
}

/* How many pieces at `from` spell the name, as labels
 * spell it: split at '_' and '.'. 0: they do not. */
static size_t spells(const struct strlist *pieces, size_t from, const char *name, struct arena *a)
{
	struct strlist words = {0};

	strlist_split(&words, a, name, "_-+.");
	if (words.count > pieces->count - from)
		return 0;
	for (size_t i = 0; i < words.count; i++) {
		if (strcmp(words.items[i], pieces->items[from + i]) != 0)
			return 0;
	}

	return words.count;
}

/* Returns the row with the longest name that matches there. */
static const struct isa_row *isa_of(const struct tables *t, const struct strlist *pieces,
				    size_t from, struct arena *a)
{
	const struct isa_row *found = NULL;
	size_t longest = 0;

	for (unsigned i = 0; i < t->isas_count; i++) {
		size_t n = spells(pieces, from, t->isas[i].name, a);
		if (n > longest) {
			longest = n;
			found = &t->isas[i];
		}
	}

	return found;
}

void promise_of_profile(const struct profile *p, const char *cuda, const char *from,
			struct arena *a, struct promise *ret)
{
	*ret = (struct promise){.from = from,
				.binding = true,
				.platform = p->platform,
				.isa = p->isa,
				.gpu_known = true,
				.cuda = cuda};
	for (unsigned i = 0; i < p->targets_count; i++)
		strlist_ref(&ret->gpu, a, buildenv_capability(&p->targets[i], a));
}

void promise_of_plan(const struct plan *p, struct arena *a, struct promise *ret)
{
	/* Code that ptbuild did not compile declares nothing: what it uses is searched and
	 * reported. */
	*ret = (struct promise){.from = arena_printf(a, "the plan of '%s'", p->variant),
				.binding = !p->captured,
				.platform = p->platform,
				.isa = p->isa_row,
				.gpu_known = true,
				.gpu = p->gpu,
				.cuda = p->cuda,
				.tegra = p->toolkit && p->toolkit->tegra};
}

static bool is_gpu_word(const char *piece)
{
	return strncmp(piece, "sm", 2) == 0 && isdigit((unsigned char)piece[2]);
}

/* Adds the targets that begin at the first one, "sm90" and "ptx"; the index behind them. */
static size_t gpu_words(const struct strlist *pieces, struct arena *a, struct strlist *ret,
			size_t *ret_first)
{
	size_t i = 0;

	while (i < pieces->count && !is_gpu_word(pieces->items[i]))
		i++;
	*ret_first = i;
	for (; i < pieces->count; i++) {
		if (!is_gpu_word(pieces->items[i]) && strcmp(pieces->items[i], "ptx") != 0)
			break;
		strlist_ref(ret, a, pieces->items[i]);
	}

	return i;
}

void promise_of_label(const struct tables *t, const char *label, struct arena *a,
		      struct promise *ret)
{
	const char *from = *label ? arena_printf(a, "its label '%s'", label) : "no label";
	struct strlist pieces = {0}, gpu = {0};
	const struct toolkit_row *toolkit = NULL;
	struct profile p;
	size_t first;

	*ret = (struct promise){.from = from, .platform = ""};
	strlist_split(&pieces, a, label_without_torch(label, a), ".");
	if (pieces.count && strncmp(pieces.items[0], "cu", 2) == 0)
		toolkit = toolkit_of(t, pieces.items[0] + 2, a);
	if (toolkit)
		ret->cuda = toolkit->version;
	const size_t end = gpu_words(&pieces, a, &gpu, &first);
	/* slim's label ends with them, whatever upstream's own begins with. */
	const bool slim = gpu.count && end == pieces.count;
	const bool cpu = pieces.count > 1 && strcmp(pieces.items[0], "cpu") == 0;
	const bool built = cpu || (toolkit && gpu.count && first == 1);
	const size_t at = cpu ? 1 : end;
	const struct isa_row *isa =
		!slim && built && at < pieces.count ? isa_of(t, &pieces, at, a) : NULL;
	if (!slim && !isa)
		return;
	const char *targets = cpu && !slim ? "cpu" : strlist_join(&gpu, a, "+");
	const char *name = arena_printf(a, "%s-%s", targets, slim ? "avx2" : isa->name);
	if (profile_parse(t, name, a, &p, ERR_IGNORED) < 0)
		return;
	promise_of_profile(&p, toolkit ? toolkit->version : NULL, from, a, ret);
	ret->tegra = strlist_contains(&pieces, LABEL_TEGRA);
	if (slim) {
		ret->binding = false;
		ret->platform = "";
		ret->isa = NULL;
	}
}

/* "9.0" of "9.0a" and "9.0+PTX". */
static size_t number_len(const char *capability)
{
	return strspn(capability, "0123456789.");
}

/* The floor of the toolkit's line, or what the newest of the GPUs needs. */
static const char *driver_of(const struct tables *t, const struct runs_on *r, const char *cuda)
{
	const struct toolkit_row *toolkit = cuda ? tables_toolkit(t, cuda) : NULL;
	const char *driver = toolkit ? toolkit->driver_floor : "";

	for (size_t i = 0; toolkit && i < r->gpu.count; i++)
		if (r->gpu_rows[i] && version_cmp(r->gpu_rows[i]->driver_min, driver) > 0)
			driver = r->gpu_rows[i]->driver_min;
	return driver;
}

static void set_hardware(const struct tables *t, const struct promise *p, struct arena *a,
			 struct runs_on *r)
{
	r->isa_known = p->binding;
	r->isa = p->isa;
	r->tables = t;
	r->gpu_rows = arena_array(a, r->gpu.count, sizeof(const struct gpu_row *));
	for (size_t i = 0; i < r->gpu.count; i++)
		r->gpu_rows[i] = tables_gpu_capability(t, r->gpu.items[i]);
	r->driver = r->gpu.count ? driver_of(t, r, p->cuda) : "";
	r->cuda = r->gpu.count && p->cuda ? p->cuda : "";
	r->tegra = p->tegra;
}

void runs_on_of_plan(const struct tables *t, const struct plan *p, const char *glibc,
		     struct arena *a, struct runs_on *ret)
{
	struct promise promise;

	promise_of_plan(p, a, &promise);
	struct runs_on r = {.platform = p->platform,
			    .musl = "",
			    .python = p->python,
			    .glibc = glibc,
			    .glibc_at_most = true,
			    .gpu = promise.gpu,
			    .torch = p->torch_version,
			    .torch_of_root = strcmp(p->torch, "root") == 0};
	strlist_ref(&r.platforms, a, r.platform);
	set_hardware(t, &promise, a, &r);
	*ret = r;
}

/* Installers go by the name, loaders by the symbols. */
static void set_platform(const struct wheel_name *n, const char *tag, struct arena *a,
			 struct runs_on *r)
{
	struct strlist tags = {0};
	unsigned named = 0, inside = manylinux_glibc(tag);
	const char *musl = wheel_name_musl(n, a);

	strlist_split(&tags, a, n->platform, ".");
	r->musl = musl ? musl : "";
	wheel_name_platforms(n, a, &r->platforms);
	r->any_libc = !musl && strstr(n->platform, "musllinux_");
	for (size_t i = 0; i < tags.count; i++) {
		unsigned minor = manylinux_glibc(tags.items[i]);
		named = !named || (minor && minor < named) ? minor : named;
	}

	if (!strlist_contains(&tags, "any"))
		r->platform = strlist_join(&r->platforms, a, " or ");
	unsigned most = named > inside ? named : inside;
	r->glibc = most ? arena_printf(a, "2.%u", most) : "";
}

/* "90a" as "9.0a". */
static void add_targets(const struct strlist *targets, struct arena *a, struct strlist *ret)
{
	for (size_t i = 0; i < targets->count; i++) {
		size_t n = strspn(targets->items[i], "0123456789");
		if (n > 1)
			strlist_addf(ret, a, "%.*s.%s", (int)n - 1, targets->items[i],
				     targets->items[i] + n - 1);
	}
}

void runs_on_of_wheel(const struct tables *t, const struct wheel_name *n, const char *tag,
		      const struct promise *p, const struct strlist *targets,
		      const char *requires_torch, struct arena *a, struct runs_on *ret)
{
	const char *torch = strstr(requires_torch, "==");
	struct runs_on r = {.platform = "", .musl = "", .torch = ""};

	if (torch) { /* "torch (==2.9.1)" of old metadata, "torch==2.9.1; python_version > '3'" */
		torch += 2 + strspn(torch + 2, " ");
		r.torch = arena_strndup(a, torch, strcspn(torch, " ),;"));
	} else if ((torch = strpbrk(requires_torch,
				    "<>~!"))) { /* of torch's stable ABI: ">=2.14.0" */
		r.torch = arena_strndup(a, torch, strcspn(torch, ");"));
	}

	if (p->gpu_known)
		r.gpu = p->gpu;
	else
		add_targets(targets, a, &r.gpu);
	struct wheel_name *own = arena_alloc(a, sizeof(*own));
	*own = *n;
	r.wheel = own;
	r.python = wheel_name_pythons(n, a, &r.python_newer);
	set_platform(n, tag, a, &r);
	set_hardware(t, p, a, &r);
	*ret = r;
}

void runs_on_set_cuda(const struct tables *t, const char *cuda, struct runs_on *r)
{
	r->tables = t;
	r->cuda = cuda;
	for (unsigned i = 0; i < t->toolkits_count && !*r->driver; i++)
		if (strtol(t->toolkits[i].version, NULL, 10) == strtol(cuda, NULL, 10))
			r->driver = t->toolkits[i].driver_floor;
	for (unsigned i = 0; i < t->cuda_lines_count && !*r->driver; i++)
		if (strtol(t->cuda_lines[i].cuda, NULL, 10) == strtol(cuda, NULL, 10))
			r->driver = t->cuda_lines[i].driver_floor;
}

bool runs_on_python(const struct runs_on *r, const char *python, struct arena *a)
{
	if (r->wheel)
		return wheel_name_takes(r->wheel, python, a);
	return r->python_newer ? version_cmp(python, r->python) >= 0
			       : strcmp(python, r->python) == 0;
}

int runs_on_requires(const struct runs_on *r, const char *python, struct arena *a)
{
	enum wheel_python_fit fit;

	if (!r->requires_python ||
	    wheel_requires_python(r->requires_python, python, a, &fit, ERR_IGNORED) < 0)
		return 1;
	return fit == WHEEL_PYTHON_ALWAYS ? 1 : fit == WHEEL_PYTHON_BY_PATCH ? -1 : 0;
}

bool runs_on_installs(const struct runs_on *r, const char *python, const char *platform,
		      const char *glibc, struct arena *a)
{
	const char *machine = arena_strndup(a, platform, strcspn(platform, "-"));

	return !r->wheel || strncmp(glibc, "2.", 2) != 0 ||
	       wheel_name_installs(
		       r->wheel, python,
		       &(struct wheel_machine){machine, (unsigned)strtoul(glibc + 2, NULL, 10)}, a);
}

json_t *runs_on_json(const struct runs_on *r)
{
	json_t *features =
		r->isa ? json_from_strings(r->isa->cpuinfo, r->isa->cpuinfo_count) : json_array();
	json_t *o = json_pack(
		"{s:o, s:s, s:b, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o}", "platform",
		json_filled(r->platform), "python", r->python, "python_newer", r->python_newer,
		"glibc", json_filled(r->glibc), "glibc_at_most", r->glibc_at_most, "isa",
		json_or_null(r->isa ? r->isa->name : NULL), "features", features, "processors",
		json_or_null(r->isa ? r->isa->cpus : NULL), "gpu", json_from_strlist(&r->gpu),
		"driver", json_filled(r->driver), "torch", json_filled(r->torch));

	if (*r->musl)
		json_object_set_new(o, "musl", json_string(r->musl));
	return o;
}

static const char *processor_text(const struct runs_on *r, struct arena *a)
{
	const char *machine = arena_strndup(a, r->platform,
					    r->platforms.count > 1 ? strlen(r->platform)
								   : strcspn(r->platform, "-"));

	if (r->isa)
		return arena_printf(a, "%s with %s: %s", machine, r->isa->name, r->isa->cpus);
	return r->isa_known ? machine
			    : arena_printf(a, "%s; its label declares no instruction set", machine);
}

static const char *glibc_text(const struct runs_on *r, struct arena *a)
{
	if (!*r->glibc)
		return "not declared";
	return arena_printf(a,
			    r->glibc_at_most
				    ? "%s, the root's, at most; the finished wheel may need less"
				    : "%s or newer",
			    r->glibc);
}

/* "9.0 and newer 9.x (Hopper: H100, H200)". */
static const char *gpu_text(const struct runs_on *r, size_t i, struct arena *a)
{
	const char *capability = r->gpu.items[i], *suffix = capability + number_len(capability);
	const struct gpu_row *row = r->gpu_rows[i];
	const char *number = arena_strndup(a, capability, (size_t)(suffix - capability)), *reach;
	struct strlist devices = {0};

	if (row)
		strlist_refs(&devices, a, row->devices, row->devices_count);
	if (strchr(suffix, '+'))
		reach = "and all newer";
	else if (*suffix == 'f')
		reach = "and its family";
	else if (*suffix || (row && row->tegra))
		reach = "only";
	else
		reach = arena_printf(a, "and newer %.*s.x", (int)strcspn(number, "."), number);
	if (!row)
		return arena_printf(a, "%s %s", number, reach);
	if (!devices.count)
		return arena_printf(a, "%s %s (%s)", number, reach, row->name);
	const char *models = strlist_join(&devices, a, ", ");
	return arena_printf(a, "%s %s (%s: %s)", number, reach, row->name, models);
}

void runs_on_lines(const struct runs_on *r, struct arena *a, struct kvlist *ret)
{
	struct strlist gpus = {0};
	const char *threaded = path_has_suffix(r->python, "t") ? " (free-threaded)" : "";

	kvlist_set(ret, a, "python",
		   *r->python ? arena_printf(a, "%s%s %s", r->python, threaded,
					     r->python_newer ? "or newer" : "only")
			      : "none: no installer asks for its tags");
	if (*r->musl)
		kvlist_set(ret, a, "musl", arena_printf(a, "%s or newer, not glibc", r->musl));
	else if (strstr(r->platform, "linux") && (*r->glibc || !r->glibc_at_most))
		kvlist_set(ret, a, "glibc", glibc_text(r, a));
	if (*r->platform)
		kvlist_set(ret, a, "processor", processor_text(r, a));
	for (size_t i = 0; i < r->gpu.count; i++)
		strlist_ref(&gpus, a, gpu_text(r, i, a));
	if (gpus.count)
		kvlist_set(ret, a, "gpu", strlist_join(&gpus, a, "; "));
	if (*r->driver)
		kvlist_set(ret, a, "driver", arena_printf(a, "NVIDIA's %s or newer", r->driver));
	if (*r->torch)
		kvlist_set(ret, a, "torch",
			   r->torch_of_root ? arena_printf(a, "%s, the root's own", r->torch)
					    : r->torch);
}

char *runs_on_text(const struct runs_on *r, struct arena *a)
{
	struct kvlist lines = {0};
	struct strlist parts = {0};

	runs_on_lines(r, a, &lines);
	for (size_t i = 0; i < lines.count; i++)
		strlist_addf(&parts, a, "%s %s", lines.items[i].key, lines.items[i].value);
	return strlist_join(&parts, a, "; ");
}
