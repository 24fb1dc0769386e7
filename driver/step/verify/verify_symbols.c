/* Undefined symbols: without any one of them the
 * library does not load, or fails at the first call. */
#include <dlfcn.h>

#include "core/elf/elf.h"
#include "core/plan/cuda_libraries.h"
#include "step/verify/verify_parts.h"

enum { SHOWN_MAX = 10 }; /* findings of one library */

enum origin { PROVIDED, OPEN, UNVERSIONED, MISSING };

struct symbols {
	struct verifying *v;
	void *libc, *libm;       /* this machine's; the names are the same on every one */
	struct strlist *closure; /* by member: what it needs, itself or through others */
	struct strlist *outside; /* of it what is not at hand */
	bool loads_global;
};

const struct elf_info *verify_at_hand(const struct verifying *v, const char *needed)
{
	const struct verify_member *m = verify_inside(v, needed);

	for (size_t i = 0; i < v->q->companions.count; i++) {
		if (strcmp(v->q->companions.items[i].soname, needed) == 0)
			return &v->q->companions.items[i];
	}

	return m && verify_is_library(m) ? &m->elf : NULL;
}

/* Whether every symbol of this system library has a version,
 * so that one wanted without is from somewhere else. */
static bool is_versioned_system(const struct verifying *v, const char *needed)
{
	return verify_is_loader(needed) ||
	       (v->q->policy && manylinux_allows(v->q->policy, needed) &&
		manylinux_versioned(v->q->policy, needed));
}

/* Namespaces, and names outside of any, of what torch's libraries export:
 * nm -D of 2.6.0 and 2.13.0 for x86_64 and of 2.15.0 for aarch64. */
static const char *const torch_names[] = {
	"at",         "c10",         "c10d",       "torch",
	"caffe2",     "std",         "__gnu_cxx",  "THP*",
	"THC*",       "THM*",        "Packed*",    "fbgemm*",
	"gloo",       "google",      "onnx*",      "ao",
	"tensorpipe", "libkineto",   "fmt",        "ideep",
	"dnnl",       "qnnpack",     "xnnpack",    "kleidiai",
	"nlohmann",   "pybind11",    "sdp",        "ska",
	"cuda",       "cutlass*",    "cub*",       "thrust",
	"nv*",        "mslk",        "*pytorch*",  "PyTorch*",
	"httplib",    "at_*",        "torch_*",    "asmjit",
	"ncclapi",    "flatbuffers", "register_*", "DisableTorchFunction*"};

/* The same of the C++ runtime. */
static const char *const runtime_names[] = {"std",     "__gnu_cxx", "__cxxabiv1",
					    "__cxa_*", "__gxx_*",   "__dynamic_cast"};

/* The outermost name in a C++ symbol: "at" of "_ZN2at6native3fooEi"
 * and of "_ZTVN2at6TensorE"; NULL where it has another form. */
static const char *outermost(const char *symbol, struct arena *a)
{
	const char *s = symbol + strlen("_Z");
	char *end;

	if (*s == 'G' || (*s == 'T' && s[1] && strchr("VTISWH", s[1])))
		s += 2;
	if (*s == 'N')
		s += 1 + strspn(s + 1, "KVrRO");
	if (*s == 'S' && s[1] != '_' && !isdigit((unsigned char)s[1]))
		return "std";
	size_t n = isdigit((unsigned char)*s) ? strtoul(s, &end, 10) : 0;
	return n && n <= strlen(end) ? arena_strndup(a, end, n) : NULL;
}

/* Whether a library that is not at hand can define a symbol without a version. Those of the system
 * and of CUDA have no C++ names, nor have they what nvcc leaves to the link of device code. */
static bool may_define(const struct symbols *l, const char *library, const char *symbol)
{
	struct verifying *v = l->v;
	bool cpp = strncmp(symbol, "_Z", 2) == 0;
	const char *name = cpp ? outermost(symbol, v->a) : symbol;

	if (strcmp(library, "libstdc++.so.6") == 0)
		return !name || strings_match(runtime_names, ARRAY_LEN(runtime_names), name);
	if (is_versioned_system(v, library))
		return false;
	if (verify_is_of_torch(library))
		return !cpp || !name || strings_match(torch_names, ARRAY_LEN(torch_names), name);
	if ((v->q->policy && manylinux_allows(v->q->policy, library)) ||
	    (v->q->tables && cuda_source(v->q->tables, &v->brought, library, v->a) != CUDA_UNKNOWN))
		return !cpp && strncmp(symbol, "__cudaRegisterLinkedBinary", 26) != 0;
	return true;
}

static bool may_be_outside(const struct symbols *l, const struct verify_member *m,
			   const char *symbol)
{
	const struct strlist *outside = &l->outside[m - l->v->members];

	for (size_t i = 0; i < outside->count; i++)
		if (may_define(l, outside->items[i], symbol))
			return true;
	return false;
}

bool verify_is_defined(const struct verifying *v, const char *symbol)
{
	return text_find(symbol, v->defined.items, v->defined.count, sizeof(symbol));
}

static enum origin of_version(const struct symbols *l, const struct verify_member *m,
			      const char *name, const char *version)
{
	struct verifying *v = l->v;
	const struct strlist *closure = &l->closure[m - v->members];

	for (size_t i = 0; i < m->elf.versions_count; i++) {
		const char *file = m->elf.versions[i].file;
		if (strcmp(m->elf.versions[i].version, version) != 0)
			continue;
		/* Told by verify_versions. */
		if (verify_version_file(v, m, closure, file) > VERSION_FILE_OPEN)
			return PROVIDED;
		/* Versions of system libraries are compared with the policy by the rule `tag`. */
		const struct elf_info *info = verify_at_hand(v, file);
		if (!info)
			return verify_is_loader(file) || (v->q->policy &&
							  manylinux_allows(v->q->policy, file))
				       ? PROVIDED
				       : OPEN;
		/* verify_versions reports it */
		if (verify_is_defined(v, name) || verify_lacks_version(info, version))
			return PROVIDED;
	}

	return MISSING;
}

static enum origin origin_of(const struct symbols *l, const struct verify_member *m,
			     const char *symbol)
{
	const char *at = strchr(symbol, '@');

	if (at)
		return of_version(l, m, arena_strndup(l->v->a, symbol, (size_t)(at - symbol)),
				  at + 1);
	if (verify_is_defined(l->v, symbol) || strncmp(symbol, "Py", 2) == 0 ||
	    strncmp(symbol, "_Py", 3) == 0)
		return PROVIDED;
	if ((l->libc && dlsym(l->libc, symbol)) || (l->libm && dlsym(l->libm, symbol)))
		return l->v->musl ? PROVIDED : UNVERSIONED; /* musl's symbols have no versions */
	return may_be_outside(l, m, symbol) ? OPEN : MISSING;
}

static bool is_module(const struct elf_info *elf)
{
	for (size_t i = 0; i < elf->defined.count; i++)
		if (strncmp(elf->defined.items[i], "PyInit_", 7) == 0)
			return true;
	return false;
}

/* The names that it is loaded by. */
static bool is_named(const struct strlist *names, const struct verify_member *m)
{
	return strlist_contains(names, path_base(m->entry->name)) ||
	       strlist_contains(names, m->elf.soname);
}

/* Whether Python, or a program of the wheel, loads it together with what needs it. */
static bool is_loaded_inside(const struct symbols *l, const struct verify_member *m)
{
	const struct verifying *v = l->v;

	if (m->elf.program || is_module(&m->elf))
		return true;
	for (size_t i = 0; i < v->count; i++) {
		const struct verify_member *other = &v->members[i];
		const bool root = other->elf.program || is_module(&other->elf);
		if (other != m && root && is_named(&l->closure[i], m))
			return true;
	}

	return false;
}

/* Whether a library of the wheel has its name as a text, to
 * load it by: libmkl_rt.so.3 has those of its back ends. */
static bool is_loaded_by_name(const struct symbols *l, const struct verify_member *m)
{
	enum { READ_MAX = 512 << 20 };
	const char *name = *m->elf.soname ? m->elf.soname : path_base(m->entry->name);

	for (size_t i = 0; i < l->v->count; i++) {
		const struct verify_member *other = &l->v->members[i];
		struct buf AUTO_BUF data = {0};
		if (other == m || !verify_is_library(other) || is_named(&other->elf.needed, m) ||
		    strcmp(other->elf.soname, name) == 0)
			continue;
		if (zip_read(l->v->zip, other->entry, READ_MAX, &data, ERR_IGNORED) == 0 &&
		    memmem(data.data, data.len, name, strlen(name)))
			return true;
	}

	return false;
}

/* Whether it is made for a program that supplies some of its symbols: a library that is
 * installed outside of site-packages, to link with, or one that another loads by its name. */
static bool is_for_a_host(const struct symbols *l, const struct verify_member *m)
{
	if (l->v->ours || is_loaded_inside(l, m))
		return false;
	return !wheel_installed(m->entry->name) || is_loaded_by_name(l, m);
}

static void tell_missing(struct verifying *v, const struct verify_member *m,
			 const struct strlist *missing)
{
	for (size_t i = 0; i < missing->count && i < SHOWN_MAX; i++)
		verify_add(v, FINDING_ERROR, RULE_UNDEFINED, m->entry->name,
			   "needs the symbol '%s', which nothing provides",
			   demangle(missing->items[i], v->a));
	if (missing->count > SHOWN_MAX)
		verify_add(v, FINDING_ERROR, RULE_UNDEFINED, m->entry->name,
			   "needs %zu more symbols that nothing provides",
			   missing->count - SHOWN_MAX);
}

static void check_library(const struct symbols *l, const struct verify_member *m, size_t *open)
{
	struct strlist unversioned = {0}, elsewhere = {0}, missing = {0};
	struct strlist unseen = {0};

	verify_not_given(l->v, &unseen);
	for (size_t i = 0; i < m->elf.undefined.count; i++) {
		const char *symbol = m->elf.undefined.items[i];
		enum origin o = origin_of(l, m, symbol);
		*open += o == OPEN;
		if (o == UNVERSIONED)
			strlist_ref(&unversioned, l->v->a, symbol);
		if (o == MISSING && unseen.count && l->loads_global && !strchr(symbol, '@'))
			strlist_ref(&elsewhere, l->v->a, demangle(symbol, l->v->a));
		else if (o == MISSING)
			strlist_ref(&missing, l->v->a, symbol);
	}

	if (missing.count && is_for_a_host(l, m))
		verify_add(l->v, FINDING_NOTE, RULE_UNDEFINED, m->entry->name,
			   "needs the symbol '%s'%s that nothing in the wheel provides: the "
			   "program that loads it must",
			   demangle(missing.items[0], l->v->a),
			   missing.count > 1
				   ? arena_printf(l->v->a, ", the first of %zu", missing.count)
				   : "");
	else
		tell_missing(l->v, m, &missing);
	verify_versions(l->v, m, &l->closure[m - l->v->members]);
	if (elsewhere.count)
		verify_add(l->v, FINDING_NOTE, RULE_UNDEFINED, m->entry->name,
			   "needs the symbol '%s', which the wheel does not provide%s; its Python "
			   "code may load it with "
			   "RTLD_GLOBAL from a package that it or an extra of it requires (give it "
			   "with --with): %s",
			   elsewhere.items[0],
			   elsewhere.count > 1
				   ? arena_printf(l->v->a, ", the first of %zu", elsewhere.count)
				   : "",
			   strlist_join(&unseen, l->v->a, ", "));
	/* Python itself has loaded both. */
	if (unversioned.count)
		verify_add(l->v, l->v->ours ? FINDING_WARNING : FINDING_NOTE, RULE_UNDEFINED,
			   m->entry->name,
			   "uses %s of the C library, which it does not need by name: something "
			   "else must have loaded it",
			   strlist_join(&unversioned, l->v->a, ", "));
}

/* The libraries that were not given, each once. */
static const char *absent(const struct symbols *l)
{
	struct verifying *v = l->v;
	struct strlist names = {0};

	for (size_t i = 0; i < v->count; i++) {
		const struct strlist *outside = &l->outside[i];
		for (size_t k = 0; k < outside->count; k++)
			if (!is_versioned_system(v, outside->items[k]))
				strlist_once(&names, v->a, outside->items[k]);
	}

	strlist_sort(&names);
	return strlist_join(&names, v->a, ", ");
}

void verify_symbols(struct verifying *v)
{
	struct symbols l = {.v = v,
			    .closure = arena_array(v->a, v->count, sizeof(*l.closure)),
			    .outside = arena_array(v->a, v->count, sizeof(*l.outside))};
	size_t open = 0;

	if (!v->q->policy)
		return;
	/* Both are loaded already. */
	l.libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	l.libm = dlopen("libm.so.6", RTLD_LAZY | RTLD_NOLOAD);
	for (size_t i = 0; i < v->count; i++) {
		struct strlist seen = {0};
		for (size_t n = 0; n < v->members[i].elf.needed.count; n++)
			strlist_once(&seen, l.v->a, v->members[i].elf.needed.items[n]);
		for (size_t n = 0; n < seen.count; n++) {
			const struct elf_info *there = verify_at_hand(l.v, seen.items[n]);
			for (size_t k = 0; there && k < there->needed.count; k++)
				strlist_once(&seen, l.v->a, there->needed.items[k]);
			if (!there)
				strlist_ref(&l.outside[i], l.v->a, seen.items[n]);
		}

		l.closure[i] = seen;
		l.loads_global = l.loads_global || v->members[i].loads_global;
	}

	for (size_t i = 0; i < v->count; i++) {
		if (verify_is_library(&v->members[i]))
			check_library(&l, &v->members[i], &open);
	}

	if (l.libc)
		dlclose(l.libc);
	if (l.libm)
		dlclose(l.libm);
	if (open)
		verify_add(v, FINDING_NOTE, RULE_UNDEFINED_UNCHECKED, "",
			   "%zu symbol%s may come from libraries that were not given (--with): %s",
			   open, open == 1 ? "" : "s", absent(&l));
}

/* Libraries that are installed beside the wheel, read for the symbols that they define. */
/* Without a SONAME a library is needed by the name of its file. */
static int read_one(const char *path, const char *name, struct arena *a, struct companions *c,
		    struct err *e)
{
	c->items = arena_room(a, c->items, c->count, &c->cap, 16, sizeof(*c->items));
	struct elf_info *info = &c->items[c->count];
	int rc = elf_try_all(path, a, info, e);
	if (rc <= 0)
		return rc;
	if (!*info->soname)
		info->soname = arena_strdup(a, path_base(name));
	c->count++;
	return 0;
}

static int read_member(struct zip_reader *z, const struct zip_entry *en, const char *tmp,
		       struct arena *a, struct companions *c, struct err *e)
{
	AUTO_FD int fd = open(tmp, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return err_errno(e, ERR_SYSTEM, "cannot create '%s'", tmp);
	if (zip_extract_fd(z, en, fd, NULL, e) < 0)
		return fs_disk_place(tmp, e);
	return read_one(tmp, en->name, a, c, e) < 0 ? err_wrap(e, "%s", en->name) : 0;
}

int companions_of_wheel(const char *wheel, const struct run *run, struct arena *a,
			struct companions *c, struct err *e)
{
	struct zip_reader *z;
	char *dir;

	if (zip_open(wheel, a, &z, e) < 0)
		return -1;
	int rc = fs_temp_dir(NULL, "ptbuild-verify-", a, &dir, e);
	bool made = rc == 0;
	for (size_t i = 0; i < zip_count(z) && rc == 0; i++) {
		const struct zip_entry *en = zip_at(z, i);
		if (strstr(path_base(en->name), ".so"))
			rc = run_check(run, e) < 0
				     ? -1
				     : read_member(z, en, path_join(a, dir, "member"), a, c, e);
	}

	if (made)
		(void)!fs_remove(TRUSTED, dir, ERR_IGNORED);
	zip_close(z);
	return rc;
}

int companions_of_files(const struct strlist *paths, struct arena *a, struct companions *c,
			struct err *e)
{
	for (size_t i = 0; i < paths->count; i++) {
		if (read_one(paths->items[i], paths->items[i], a, c, e) < 0)
			return -1;
	}

	return 0;
}
