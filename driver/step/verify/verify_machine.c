/* On which machines a wheel runs, by what is in it. */
#include "core/plan/cuda_libraries.h"
#include "core/plan/gpu_parts.h"
#include "core/plan/runs_on.h"
#include "core/wheel/requirement.h"
#include "step/verify/verify_parts.h"

/* How much of a path is a version of CUDA or torch, or a GPU target:
 * "cuda126", "cu12", "torch211", "sm90a", "sm_100"; else 0. */
static size_t version_word(const char *at)
{
	static const char *const words[] = {"cuda", "cu", "torch", "sm_", "sm"};

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		const size_t n = strlen(words[i]);
		const size_t digits =
			strncmp(at, words[i], n) == 0 ? strspn(at + n, "0123456789") : 0;
		const char *end = at + n + digits;
		if (digits < 2)
			continue;
		end += *words[i] == 's' && (*end == 'a' || *end == 'f');
		if (!isalnum((unsigned char)*end))
			return (size_t)(end - at);
	}

	return 0;
}

/* The name that alternatives share: "liba_cuda126.so" and "liba_cuda130.so"
 * without the version, and so "sm90/a.so" and "sm100/a.so". */
static const char *stem_of(const char *name, struct arena *a)
{
	for (const char *at = name; *at; at++) {
		const size_t n = at == name || strchr("_-/.", at[-1]) ? version_word(at) : 0;
		if (n)
			return arena_printf(a, "%.*s%s", (int)(at - name), name, at + n);
	}

	return name;
}

/* The CUDA version behind "cuda" or "cu": "13" of
 * "jax-cuda13-plugin", "11.7" of "mxnet-cu117"; NULL. */
static const char *cuda_in(const char *name, struct arena *a)
{
	for (const char *at = name; (at = strstr(at, "cu")); at++) {
		const char *digits = at + (strncmp(at, "cuda", 4) == 0 ? 4 : 2);
		digits += *digits == '-';
		const size_t n = strspn(digits, "0123456789");
		if (at != name && isalnum((unsigned char)at[-1]))
			continue;
		if (n == 2)
			return arena_strndup(a, digits, n);
		if (n == 3)
			return arena_printf(a, "%.2s.%c", digits, digits[2]);
	}

	return NULL;
}

/* The line of CUDA that alone has a library or package: "13"; NULL: none, or several. */
static const char *line_of(const struct tables *t, const char *library, const char *package,
			   struct arena *a)
{
	const char *found = NULL;

	for (unsigned i = 0; i < t->layouts_count; i++) {
		const struct layout_row *layout = &t->layouts[i];
		bool has = false;
		for (unsigned k = 0; k < layout->libraries_count && !has; k++) {
			const struct cuda_library_row *row = &layout->libraries[k];
			has = library && strings_match(row->names, row->names_count, library);
			has = has ||
			      (package && strcmp(wheel_normalize(row->package, a), package) == 0);
		}

		if (has && found)
			return NULL;
		found = has ? cuda_in(layout->name, a) : found;
	}

	return found;
}

static const char *lower(const char *one, const char *other)
{
	return !other || (one && version_cmp(one, other) <= 0) ? one : other;
}

/* The CUDA version that a library asks the loader for. */
static const char *needed_cuda(const struct verifying *v, const struct elf_info *elf)
{
	static const char runtime[] = "libcudart.so.";
	const char *found = NULL;

	for (size_t i = 0; i < elf->needed.count && !found; i++) {
		const char *name = elf->needed.items[i];
		if (strncmp(name, runtime, strlen(runtime)) == 0)
			return arena_strdup(v->a, name + strlen(runtime));
		if (v->q->tables)
			found = line_of(v->q->tables, name, NULL, v->a);
	}

	return found;
}

/* The lowest of all libraries; NULL: none asks. */
static const char *lowest_needed(const struct verifying *v)
{
	const char *lowest = NULL;

	for (size_t i = 0; i < v->count; i++) {
		const char *own = needed_cuda(v, &v->members[i].elf);
		lowest = own ? lower(own, lowest) : lowest;
	}

	return lowest;
}

/* The lowest that a path of GPU code names: "13" of "nvidia/cu13/lib/x.so". */
static const char *lowest_named(const struct verifying *v)
{
	const char *lowest = NULL;

	for (size_t i = 0; i < v->parts->count; i++) {
		const char *own = cuda_in(v->parts->items[i].file, v->a);
		lowest = own ? lower(own, lowest) : lowest;
	}

	return lowest;
}

/* What an extra asks for is somebody's choice. */
void verify_requires_cuda(struct verifying *v, const struct requirement *r)
{
	if (!v->q->tables)
		return;
	const bool bundle = strcmp(r->name, "cuda_toolkit") == 0;
	const char *found = cuda_in(wheel_index_name(r->name, v->a), v->a);
	const char *number = bundle ? strpbrk(r->specifier, "=~>") : NULL;
	number = number ? strpbrk(number, "0123456789") : NULL;
	if (number)
		found = arena_strndup(v->a, number, strspn(number, "0123456789"));
	if (!found && strncmp(r->name, "nvidia_", 7) == 0)
		found = line_of(v->q->tables, NULL, r->name, v->a);
	v->cuda_required = found ? lower(found, v->cuda_required) : v->cuda_required;
}

/* CUDA's own libraries run wherever it does, static archives
 * are linked with later, and of torch the main library decides. */
static bool counts(const struct verifying *v, const char *file, bool torch)
{
	const char *base = path_base(file);

	if (path_has_suffix(base, ".a") || path_has_suffix(base, ".o"))
		return false;
	if (torch)
		return strncmp(base, "libtorch_cuda.", 14) == 0;
	return cuda_source(v->q->tables, &v->requires, base, v->a) == CUDA_UNKNOWN;
}

static const char *driver_for(const struct verifying *v, const char *cuda)
{
	struct runs_on r = {.driver = "", .cuda = ""};

	if (cuda)
		runs_on_set_cuda(v->q->tables, cuda, &r);
	return r.driver;
}

static void add_part(struct verifying *v, const struct verify_member *m)
{
	struct gpu_part *part = &v->parts->items[v->parts->count++];
	const char *cuda = needed_cuda(v, &m->elf);

	cuda = cuda ? cuda : cuda_in(path_base(m->entry->name), v->a);
	*part = (struct gpu_part){.file = arena_strdup(v->a, m->entry->name),
				  .group = stem_of(m->entry->name, v->a),
				  .entries =
					  arena_array(v->a, m->gpu.count, sizeof(*part->entries)),
				  .units = m->gpu.containers ? m->gpu.containers : 1,
				  .driver = driver_for(v, cuda)};
	for (size_t i = 0; i < m->gpu.count; i++) {
		struct fatbin_entry *to = &part->entries[part->count++];
		*to = (struct fatbin_entry){.kind = m->gpu.items[i].kind};
		memcpy(to->target, m->gpu.items[i].target, sizeof(to->target));
	}
}

/* CUDA's compilers and linkers, which know the GPUs of their toolkit alone. */
static bool is_compiler(const struct cuda_library_row *row)
{
	return strcmp(row->extra, "nvrtc") == 0 || strcmp(row->extra, "nvjitlink") == 0;
}

/* Whether it is one, or needs one, as the libraries with GPU code do. */
static bool is_of_compilers(const struct layout_row *l, const struct cuda_library_row *row)
{
	bool is = is_compiler(row);

	for (unsigned i = 0; i < row->needs_count && !is; i++) {
		const struct cuda_library_row *other = text_search(
			row->needs[i], l->libraries, l->libraries_count, sizeof(*other));
		is = other && is_compiler(other);
	}

	return is;
}

static bool uses_compilers(const struct verifying *v, const struct elf_info *elf)
{
	const struct tables *t = v->q->tables;

	for (unsigned i = 0; i < t->layouts_count; i++)
		for (unsigned k = 0; k < t->layouts[i].libraries_count; k++) {
			const struct cuda_library_row *row = &t->layouts[i].libraries[k];
			if (!is_of_compilers(&t->layouts[i], row))
				continue;
			if (!elf &&
			    strlist_contains(&v->brought, wheel_normalize(row->package, v->a)))
				return true;
			for (size_t n = 0; elf && n < elf->needed.count; n++)
				if (strings_match(row->names, row->names_count,
						  elf->needed.items[n]))
					return true;
		}
	return false;
}

static bool uses_torch_gpus(const struct elf_info *elf)
{
	return strlist_contains(&elf->needed, "libtorch_cuda.so") ||
	       strlist_contains(&elf->needed, "libc10_cuda.so");
}

/* That METADATA asks for them, or a library does that has no GPU code of its own. A torch for
 * this CUDA has code for the GPUs of its toolkit. */
static bool needs_libraries(const struct verifying *v)
{
	bool needs = uses_compilers(v, NULL);

	for (size_t i = 0; i < v->count && !needs; i++) {
		const struct verify_member *m = &v->members[i];
		needs = !m->gpu.count && (uses_compilers(v, &m->elf) || uses_torch_gpus(&m->elf));
	}

	return needs;
}

/* By CUDA's libraries or the driver; an extension of torch's serves the GPU code beside it. */
static bool uses_gpus(const struct verifying *v, const struct verify_member *m)
{
	bool uses = false;

	for (size_t i = 0; i < m->elf.needed.count; i++) {
		const char *name = m->elf.needed.items[i];
		if (verify_is_of_torch(name) && strncmp(name, "libgomp", 7) != 0)
			return false;
		uses = uses || cuda_source(v->q->tables, &v->requires, name, v->a) != CUDA_UNKNOWN;
	}

	return uses;
}

/* Whether it has GPU code, or loads a library of the wheel that does. */
static bool reaches_code(const struct verifying *v, const struct verify_member *m,
			 struct strlist *seen)
{
	if (m->gpu.count)
		return true;
	if (strlist_contains(seen, m->entry->name))
		return false;
	strlist_ref(seen, v->a, m->entry->name);
	for (size_t i = 0; i < m->elf.needed.count; i++) {
		const struct verify_member *other = verify_inside(v, m->elf.needed.items[i]);
		if (other && reaches_code(v, other, seen))
			return true;
	}

	return false;
}

static bool is_host(const struct verifying *v, const struct verify_member *m)
{
	struct strlist seen = {0};

	return verify_is_library(m) && counts(v, m->entry->name, false) && uses_gpus(v, m) &&
	       !reaches_code(v, m, &seen);
}

static void weigh(struct verifying *v)
{
	struct strlist hosts = {0};

	for (size_t i = 0; i < v->count; i++) {
		const struct verify_member *m = &v->members[i];
		if (m->gpu.count) {
			v->parts->bytes += m->entry->size;
		} else if (is_host(v, m)) {
			v->parts->host_bytes += m->entry->size;
			strlist_once(&hosts, v->a, stem_of(m->entry->name, v->a));
		}
	}

	v->parts->hosts = hosts.count;
}

static size_t add_parts(struct verifying *v, bool all)
{
	const bool torch = fatbin_is_torch(v->report.name.dist);

	for (size_t i = 0; i < v->count; i++) {
		const struct verify_member *m = &v->members[i];
		const bool archive = path_has_suffix(m->entry->name, ".a") ||
				     path_has_suffix(m->entry->name, ".o");
		if (m->gpu.count && (all ? !archive : counts(v, m->entry->name, torch)))
			add_part(v, m);
	}

	return v->parts->count;
}

void verify_parts(struct verifying *v)
{
	if (!v->q->tables)
		return;
	v->parts = arena_alloc(v->a, sizeof(*v->parts));
	v->parts->items = arena_array(v->a, v->count + 1, sizeof(*v->parts->items));
	v->parts->alone = tables_chips(v->q->tables, v->a, &v->parts->alone_count);
	if (!add_parts(v, false))
		(void)add_parts(v, true);
	weigh(v);
	v->cuda_libraries = needs_libraries(v);
	v->cuda = lowest_needed(v);
	const char *dist = v->named ? v->report.name.dist : "";
	if (!v->cuda)
		v->cuda = v->cuda_required;
	if (!v->cuda && v->parts->count)
		v->cuda = cuda_in(wheel_index_name(dist, v->a), v->a);
	if (!v->cuda && v->parts->count)
		v->cuda = line_of(v->q->tables, NULL, wheel_normalize(dist, v->a), v->a);
	if (!v->cuda)
		v->cuda = lowest_named(v);
}

/* A wheel for any machine that has libraries for one,
 * which is an error of its tag, runs there alone. */
static void set_machine(struct verifying *v)
{
	static const char *const machines[] = {"x86_64", "aarch64"};
	struct verify_report *r = &v->report;
	bool wrong = false;

	for (size_t i = 0; i < r->count; i++)
		wrong = wrong || (r->findings[i].level == FINDING_ERROR &&
				  strcmp(r->findings[i].rule, "tag") == 0);
	if (!wrong || strcmp(r->name.platform, "any") != 0)
		return;
	for (size_t i = 0; i < ARRAY_LEN(machines); i++) {
		if (!path_has_suffix(r->tag, machines[i]))
			continue;
		r->runs_on.platform = arena_printf(v->a, "%s-linux", machines[i]);
		r->runs_on.platforms = (struct strlist){0};
		strlist_ref(&r->runs_on.platforms, v->a, r->runs_on.platform);
	}
}

void verify_machines(struct verifying *v)
{
	struct verify_report *r = &v->report;
	struct strlist targets = {0};

	if (!v->q->tables || !v->named)
		return;
	if (v->parts)
		gpu_parts_targets(v->parts, v->a, &targets);
	/* The table's first row covers all older ones. */
	const char *tag = r->tag;
	if (strcmp(tag, "manylinux_2_17_x86_64") == 0)
		tag = arena_printf(v->a, "manylinux_2_%u_x86_64", v->glibc > 5 ? v->glibc : 5);
	runs_on_of_wheel(v->q->tables, &r->name, tag, &r->promise, &targets, r->requires_torch,
			 v->a, &r->runs_on);
	r->runs_on.requires_python = v->requires_python;
	set_machine(v);
	if (v->parts && v->parts->count && !r->promise.gpu_known)
		r->runs_on.parts = v->parts;
	if (!v->cuda || *r->runs_on.cuda)
		return;
	runs_on_set_cuda(v->q->tables, v->cuda, &r->runs_on);
	r->runs_on.libraries = v->cuda_libraries;
}
