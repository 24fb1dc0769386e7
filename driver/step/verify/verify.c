#include "step/verify/verify.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <limits.h>
#include <strings.h>

#include "base/sys/machine.h"
#include "step/verify/verify_parts.h"

/* RECORD cannot hold its own digest, and signatures come after it. */
static bool is_exempt(const struct verifying *v, const char *path)
{
	const char *name = path_below(path, v->dist_info);
	return name && (strcmp(name, "RECORD") == 0 || strcmp(name, "RECORD.jws") == 0 ||
			strcmp(name, "RECORD.p7s") == 0);
}

static void check_member(struct verifying *v, const struct verify_member *m,
			 struct verify_some *without)
{
	const char *name = m->entry->name;
	const struct wheel_record_row *row = m->row;

	if (!row) {
		if (!is_exempt(v, name) || path_has_suffix(name, "/RECORD"))
			verify_add(v, FINDING_ERROR, RULE_RECORD, name, "is not listed in RECORD");
		return;
	}

	if (is_exempt(v, name) || m->broken)
		return;
	if (!*row->digest)
		verify_count(without, name, "");
	if (*row->digest && strcmp(row->digest, m->digest) != 0)
		verify_add(v, FINDING_ERROR, RULE_RECORD, name, "has the digest %s, RECORD says %s",
			   m->digest, row->digest);
	if (row->size < 0 && *row->digest)
		verify_add(v, FINDING_WARNING, RULE_RECORD, name, "has no size in RECORD");
	else if (row->size >= 0 && (uint64_t)row->size != m->entry->size)
		verify_add(v, FINDING_ERROR, RULE_RECORD, name,
			   "has %" PRIu64 " bytes, RECORD says %" PRId64, m->entry->size,
			   row->size);
}

static void verify_record_read(struct verifying *v)
{
	const char *path = path_join(v->a, v->dist_info, "RECORD");
	struct err why = {0};

	if (!*v->dist_info)
		return;
	if (!zip_find(v->zip, path)) {
		verify_add(v, FINDING_ERROR, RULE_RECORD, path, "is missing");
		return;
	}

	if (wheel_zip_record(v->zip, v->dist_info, v->a, &v->rows, &v->rows_count, &why) < 0) {
		verify_add_error(v, RULE_RECORD, path, &why);
		return;
	}

	v->rows_read = true;
	array_sort(v->rows, v->rows_count, sizeof(*v->rows), text_cmp);
	for (size_t i = 0; i < v->count; i++)
		v->members[i].row = text_find(v->members[i].entry->name, v->rows, v->rows_count,
					      sizeof(*v->rows));
}

static void verify_record(struct verifying *v)
{
	if (!v->rows_read)
		return;
	struct verify_some without = {0};
	for (size_t i = 0; i < v->rows_count; i++) {
		const char *path = v->rows[i].path;
		if (i > 0 && strcmp(path, v->rows[i - 1].path) == 0)
			verify_add(v, FINDING_ERROR, RULE_RECORD, path,
				   "is listed twice in RECORD");
		else if (!path_is_safe_relative(path))
			verify_add(v, FINDING_ERROR, RULE_RECORD, path,
				   "is not a path of a file in the wheel");
		else if (!zip_find(v->zip, path))
			verify_add(v, FINDING_ERROR, RULE_RECORD, path,
				   "is listed in RECORD but not in the wheel");
	}

	for (size_t i = 0; i < v->count; i++)
		check_member(v, &v->members[i], &without);
	if (without.count)
		verify_add(v, FINDING_ERROR, RULE_RECORD, without.file, "has no digest in RECORD%s",
			   verify_more(v, &without, "files"));
}

/* Thread pools: two in one process spin against each other. */
struct pool { /* one that is there when the wheel is used */
	const struct pool_row *row;
	const char *library; /* the name it is loaded by */
	const char *file;    /* the member that it is, or that needs it; NULL: of a companion */
	bool outside;
};

struct pools {
	struct verifying *v;
	struct pool *items;
	size_t count, cap;
};

/* How many of the names are there. Symbols may have a version behind '@'.
 * Few names are globs, and libraries have a hundred thousand symbols. */
static size_t count_symbols(const struct strlist *symbols, const char **names, unsigned count)
{
	size_t n = 0;

	for (unsigned k = 0; k < count; k++) {
		const bool glob = strpbrk(names[k], "*?[") != NULL;
		const size_t len = strlen(names[k]);
		bool found = false;
		for (size_t i = 0; i < symbols->count && !found; i++) {
			const char *s = symbols->items[i];
			found = glob ? fnmatch(names[k], s, 0) == 0
				     : strncmp(s, names[k], len) == 0 && (!s[len] || s[len] == '@');
		}

		n += found;
	}

	return n;
}

static bool is_pool(const struct pool_row *row, const struct elf_info *info, const char *name)
{
	if (!row->defines_count)
		return strings_match(row->libraries, row->libraries_count, name);
	return count_symbols(&info->defined, row->defines, row->defines_count) ==
		       row->defines_count &&
	       (!row->wants_count ||
		count_symbols(&info->undefined, row->wants, row->wants_count)) &&
	       !count_symbols(&info->defined, row->without, row->without_count) &&
	       !count_symbols(&info->undefined, row->without, row->without_count);
}

/* The loader loads a name once. */
static void add_pool(struct pools *l, struct pool pool)
{
	for (size_t i = 0; i < l->count; i++) {
		if (l->items[i].row == pool.row && strcmp(l->items[i].library, pool.library) == 0)
			return;
	}

	l->items = arena_room(l->v->a, l->items, l->count, &l->cap, 4, sizeof(*l->items));
	l->items[l->count++] = pool;
}

static void add_library(struct pools *l, const struct elf_info *info, const char *name,
			const char *file)
{
	const struct pool_file *rows = &l->v->q->tables->threads;

	for (unsigned i = 0; i < rows->pools_count; i++) {
		if (is_pool(&rows->pools[i], info, name))
			add_pool(l, (struct pool){&rows->pools[i], name, file, false});
	}
}

/* What a library needs that is not in the wheel is known by its name alone. */
static void add_needed(struct pools *l, const struct verify_member *m)
{
	const struct pool_file *rows = &l->v->q->tables->threads;

	for (size_t k = 0; k < m->elf.needed.count; k++) {
		const char *needed = m->elf.needed.items[k];
		for (unsigned i = 0; i < rows->pools_count; i++) {
			if (strings_match(rows->pools[i].libraries, rows->pools[i].libraries_count,
					  needed) &&
			    !verify_inside(l->v, needed))
				add_pool(l, (struct pool){&rows->pools[i], needed, m->entry->name,
							  true});
		}
	}
}

/* A library of another maker's that is installed outside of site-packages is
 * there to be chosen and linked with: MKL has one for each kind of threads. */
static bool is_loaded(const struct verifying *v, const struct verify_member *m)
{
	return m->kind == ELF_HOST && !m->elf_broken &&
	       (v->ours || wheel_installed(m->entry->name));
}

static void find_pools(struct pools *l)
{
	struct verifying *v = l->v;

	for (size_t i = 0; i < v->q->companions.count; i++)
		add_library(l, &v->q->companions.items[i], v->q->companions.items[i].soname, NULL);
	for (size_t i = 0; i < v->count; i++) {
		const struct verify_member *m = &v->members[i];
		if (verify_is_library(m) && is_loaded(v, m))
			add_library(l, &m->elf,
				    *m->elf.soname ? m->elf.soname : path_base(m->entry->name),
				    m->entry->name);
	}

	for (size_t i = 0; i < v->count; i++) {
		const struct verify_member *m = &v->members[i];
		if (is_loaded(v, m))
			add_needed(l, m);
	}
}

static void verify_threads(struct verifying *v)
{
	struct pools l = {.v = v};
	const struct pool *openmp = NULL;

	if (!v->q->tables)
		return;
	find_pools(&l);
	for (size_t i = 0; i < l.count && !openmp; i++)
		openmp = l.items[i].row->openmp ? &l.items[i] : NULL;
	/* Wheels of other packages never promised to be loaded beside another pool. */
	bool torch = v->named && strcmp(wheel_normalize(v->report.name.dist, v->a), "torch") == 0;
	for (size_t i = 0; openmp && i < l.count; i++) {
		const struct pool *p = &l.items[i];
		if (p == openmp || !p->file)
			continue;
		verify_add(v, torch || v->ours ? FINDING_ERROR : FINDING_WARNING, RULE_THREADS,
			   p->file, "%s%s%s%s%s next to '%s' (%s): %s; %s",
			   p->outside ? "needs '" : "is ", p->outside ? p->library : "",
			   p->outside ? "' (" : "", p->row->name, p->outside ? ")" : "",
			   openmp->library, openmp->row->name, p->row->why, p->row->instead);
	}
}

enum { THREADS_MAX = 16 };

void verify_add(struct verifying *v, enum finding_level level, enum verify_rule_id rule,
		const char *file, const char *fmt, ...)
{
	struct verify_report *r = &v->report;
	va_list ap;

	r->findings = arena_room(v->a, r->findings, r->count, &v->cap, 16, sizeof(*r->findings));
	va_start(ap, fmt);
	r->findings[r->count++] =
		(struct finding){level, verify_rules[rule].code, utf8_printable(file, v->a),
				 utf8_printable(arena_vprintf(v->a, fmt, ap), v->a)};
	va_end(ap);
	r->errors += level == FINDING_ERROR;
	r->warnings += level == FINDING_WARNING;
}

void verify_add_error(struct verifying *v, enum verify_rule_id rule, const char *file,
		      const struct err *why)
{
	if (why->kind != ERR_SYSTEM && why->kind != ERR_INTERRUPTED)
		verify_add(v, FINDING_ERROR, rule, file, "%s", why->msg);
	else if (v->fault.kind == ERR_NONE)
		v->fault = *why;
}

/* What a name would do where the wheel is unpacked, beyond what no archive may have (zip_open). */
static const char *name_fault(const char *name, struct arena *a)
{
	struct strlist parts = {0};

	strlist_split(&parts, a, name, "/");
	for (size_t i = 0; i < parts.count; i++)
		if (strlen(parts.items[i]) > NAME_MAX)
			return "has a name that file systems do not take: a part of it is longer "
			       "than 255 bytes";
	if (strchr(name, ':'))
		return "has a ':' in its name, which names a drive or a stream on Windows";
	if (strcmp(utf8_printable(name, a), name) != 0)
		return "has characters in its name that are not seen";
	return NULL;
}

struct folded {
	const char *key, *name; /* key: as some file system compares it */
	bool marks;             /* accents are characters of their own in it */
};

/* Case does not count, nor do dots and blanks at the end of a part, which Windows drops. */
static struct folded fold(const char *name, const char *installed, struct arena *a)
{
	struct folded f = {.key = arena_alloc(a, strlen(installed) + 1), .name = name};
	char *to = (char *)(uintptr_t)f.key;

	for (const char *s = installed; *s; s++) {
		size_t dropped = strspn(s, ". ");
		if (dropped && (s[dropped] == '/' || !s[dropped]))
			s += dropped - 1;
		else
			*to++ = (char)tolower((unsigned char)*s);
	}

	return f;
}

static bool is_word(const char *text, size_t len, const char *word)
{
	return strlen(word) == len && strncmp(text, word, len) == 0;
}

static bool is_module_file(const char *name)
{
	if (path_has_suffix(name, ".so"))
		return true;
	return path_has_suffix(name, ".py") || path_has_suffix(name, ".pyc");
}

/* Files that Python runs whenever it starts, whatever is imported. */
static void check_start(struct verifying *v, const char *name)
{
	const char *installed = wheel_installed(name);

	if (!installed)
		return;
	const char *base = path_base(installed), *slash = strchr(installed, '/');
	bool top = !slash,
	     package = slash && slash + 1 == base && strncmp(base, "__init__.", 9) == 0;
	size_t word = strcspn(installed, "./");
	bool custom = is_word(installed, word, "sitecustomize") ||
		      is_word(installed, word, "usercustomize");
	bool imported = (top || package) && is_module_file(base);
	if ((custom && imported) || (top && path_has_suffix(installed, ".pth")))
		verify_add(v, FINDING_WARNING, RULE_START, name,
			   "is read at every start of Python, also of programs that do not use "
			   "this package");
}

/* ".data" holds a directory for each scheme of
 * installation: an installer fails on anything else. */
static const char *data_fault(const char *name)
{
	static const char *const schemes[] = {"purelib/*", "platlib/*", "headers/*", "scripts/*",
					      "data/*"};
	const char *slash = strchr(name, '/');

	if (!slash || slash - name < 5 || strncmp(slash - 5, ".data", 5) != 0 || !slash[1] ||
	    strings_match(schemes, ARRAY_LEN(schemes), slash + 1))
		return NULL;
	return strchr(slash + 1, '/')
		       ? "is in a directory of .data other than purelib, platlib, headers, scripts "
			 "and data"
		       : "is in .data itself, and not in one of its directories";
}

/* Names of devices, with any suffix. */
static bool is_device(const char *name, struct arena *a)
{
	static const char *const devices[] = {"con", "prn", "aux", "nul", "com", "lpt"};
	struct strlist parts = {0};

	strlist_split(&parts, a, name, "/");
	for (size_t i = 0; i < parts.count; i++)
		for (size_t k = 0; k < ARRAY_LEN(devices); k++) {
			size_t n = strcspn(parts.items[i], "."), digit = k > 3;
			if (n == 3 + digit && strncasecmp(parts.items[i], devices[k], 3) == 0 &&
			    (!digit || isdigit((unsigned char)parts.items[i][3])))
				return true;
		}
	return false;
}

/* Names that differ in how accents are written alone, e and U+0301
 * or U+00E9, are alike so: in both forms the letter is a '?'. */
static struct folded without_accents(const char *name, struct arena *a)
{
	char *out = arena_alloc(a, strlen(name) + 1), *to = out;
	struct folded f = {.key = out, .name = name};

	for (const unsigned char *s = (const unsigned char *)name; *s;) {
		bool mark = s[0] == 0xcc || (s[0] == 0xcd && s[1] < 0xb0); /* U+0300 to U+036F */
		f.marks = f.marks || mark;
		if (mark && to > out)
			to[-1] = '?';
		else
			*to++ = s[0] < 0x80 ? (char)tolower(*s) : '?';
		for (s++; (*s & 0xc0) == 0x80; s++)
			;
	}

	return f;
}

/* Directories and modules that many have at the top by mistake;
 * check-wheel-contents has the same list (W005, W006). */
static void check_common(struct verifying *v, const char *name, struct strlist *told)
{
	static const char *const common[] = {"__init__", ".eggs", ".nox",    ".tox",     ".venv",
					     "app",      "build", "cli",     "data",     "dist",
					     "doc",      "docs",  "example", "examples", "lib",
					     "scripts",  "src",   "test",    "tests",    "venv"};
	const char *installed = wheel_installed(name);

	if (!installed || !*path_base(installed))
		return;
	const char *end = strchr(installed, '/');
	bool module = !end && path_has_suffix(installed, ".py");
	const char *top = arena_strndup(v->a, installed,
					module ? strlen(installed) - 3
					: end  ? (size_t)(end - installed)
					       : 0);
	if (strlist_contains(told, top) ||
	    strcmp(top, wheel_normalize(v->report.name.dist, v->a)) == 0)
		return;
	for (size_t i = 0; i < ARRAY_LEN(common); i++)
		if (strcmp(top, common[i]) == 0) {
			strlist_ref(told, v->a, top);
			verify_add(v, FINDING_WARNING, RULE_NAME, name,
				   "is in '%s' of site-packages, where others have one by mistake, "
				   "too: they overwrite "
				   "each other",
				   top);
		}
}

static void check_names(struct verifying *v)
{
	struct strlist common = {0};
	size_t count = zip_count(v->zip);
	struct folded *names = arena_array(v->a, count, sizeof(*names));
	struct folded *accents = arena_array(v->a, count, sizeof(*accents));

	for (size_t i = 0; i < count; i++) {
		const struct zip_entry *en = zip_at(v->zip, i);
		const char *installed = wheel_installed(en->name);
		accents[i] = without_accents(en->name, v->a);
		names[i] = fold(en->name, installed ? installed : en->name, v->a);
		const char *fault = name_fault(en->name, v->a), *misplaced = data_fault(en->name);
		if (fault)
			verify_add(v, FINDING_ERROR, RULE_NAME, en->name, "%s", fault);
		if (misplaced)
			verify_add(v, FINDING_ERROR, RULE_METADATA, en->name, "%s", misplaced);
		if (is_device(en->name, v->a))
			verify_add(v, FINDING_WARNING, RULE_NAME, en->name,
				   "has the name of a device on Windows in it");
		if (strlen(names[i].key) != strlen(installed ? installed : en->name))
			verify_add(v, FINDING_WARNING, RULE_NAME, en->name,
				   "has a part that ends in a dot or a space, which Windows drops");
		check_start(v, en->name);
		check_common(v, en->name, &common);
		if (en->mode & (S_ISUID | S_ISGID | S_ISVTX))
			verify_add(v, FINDING_ERROR, RULE_MODE, en->name,
				   "has mode %04o: setuid, setgid and sticky bits are not allowed",
				   en->mode & 07777);
	}

	array_sort(names, count, sizeof(*names), text_cmp);
	for (size_t i = 1; i < count; i++)
		if (strcmp(names[i - 1].key, names[i].key) == 0) {
			const char *x = wheel_installed(names[i - 1].name),
				   *y = wheel_installed(names[i].name);
			bool same = x && y && strcmp(x, y) == 0;
			verify_add(v, same ? FINDING_ERROR : FINDING_WARNING, RULE_NAME,
				   names[i].name, "is the same as '%s' %s: one of them is lost%s",
				   names[i - 1].name,
				   same ? "once installed" : "on macOS or Windows",
				   same ? "" : " there");
		}
	array_sort(accents, count, sizeof(*accents), text_cmp);
	for (size_t i = 1; i < count; i++)
		if (accents[i - 1].marks != accents[i].marks &&
		    strcmp(accents[i - 1].key, accents[i].key) == 0)
			verify_add(v, FINDING_WARNING, RULE_NAME, accents[i].name,
				   "differs from '%s' in how its accents are written: macOS treats "
				   "them as one name",
				   accents[i - 1].name);
}

static int examine(struct verifying *v, struct err *e)
{
	struct arena arenas[THREADS_MAX] = {0};
	unsigned threads = machine_processors();
	/* The members, and the one dist-info directory at the top. */
	size_t total = zip_count(v->zip);
	struct err why = {0};

	v->members = arena_array(v->a, total, sizeof(*v->members));
	for (size_t i = 0; i < total; i++)
		if (!path_has_suffix(zip_at(v->zip, i)->name, "/"))
			v->members[v->count++].entry = zip_at(v->zip, i);
	v->report.members = v->count;
	if (wheel_zip_dist_info(v->zip, v->a, &v->dist_info, &why) < 0)
		verify_add_error(v, RULE_METADATA, "", &why);
	check_names(v);
	verify_record_read(v);
	int rc = verify_members(v, threads < THREADS_MAX ? threads : THREADS_MAX, arenas, e);
	if (rc == 0) {
		for (size_t i = 0; i < v->count; i++) {
			const struct verify_member *m = &v->members[i];
			v->report.elf_files += m->kind != ELF_NONE;
			strlist_refs(&v->defined, v->a, m->elf.defined.items, m->elf.defined.count);
			if (m->broken)
				verify_add(v, FINDING_ERROR, RULE_ZIP, m->entry->name, "%s",
					   m->broken);
			if (m->build_path)
				verify_add(v, FINDING_ERROR, RULE_BUILD_PATH, m->entry->name,
					   "holds '%s' at offset %" PRIu64, m->build_path,
					   m->build_path_at);
		}

		for (size_t i = 0; i < v->q->companions.count; i++)
			strlist_refs(&v->defined, v->a, v->q->companions.items[i].defined.items,
				     v->q->companions.items[i].defined.count);
		strlist_sort(&v->defined);
		if (*v->dist_info) {
			verify_record(v);
			verify_info(v);
		}

		v->glibc = verify_needed_glibc(v, &(const char *){NULL});
		verify_parts(v);
		verify_elf(v);
		verify_load(v);
		verify_modules(v);
		verify_symbols(v);
		verify_threads(v);
		verify_isa(v);
		verify_gpu(v);
	}

	for (size_t i = 0; i < THREADS_MAX; i++)
		arena_release(&arenas[i]);
	return rc;
}

int verify_wheel(const struct verify_request *q, struct arena *a, struct verify_report *ret,
		 struct err *e)
{
	struct verifying v = {.q = q, .run = q->run, .a = a, .dist_info = ""};
	struct verify_report *r = &v.report;
	struct stat st;

	*r = (struct verify_report){.name = {"", "", "", "", "", "", ""},
				    .file = utf8_printable(path_base(q->wheel), a),
				    .tag = "",
				    .tag_why = "",
				    .requires_torch = "",
				    .code_beyond = "",
				    .promise = {.from = "", .platform = ""}};
	if (stat(q->wheel, &st) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot examine '%s'", q->wheel);
	if (digest_file(q->wheel, r->sha256, e) < 0)
		return -1;
	r->bytes = (uint64_t)st.st_size;
	v.named = wheel_name_parse(q->wheel, a, &r->name, e) == 0;
	if (!v.named)
		verify_add(&v, FINDING_ERROR, RULE_METADATA, "", "%s", e->msg);
	err_clear(e);
	if (q->provenance)
		verify_add(&v, FINDING_ERROR, RULE_PROVENANCE, "", "%s", q->provenance);
	v.musl = v.named && wheel_name_musl(&r->name, a);
	/* The code is compared with the caller's promise, else the label's. A promise for GPUs
	 * without a toolkit allows any: it gets the label's. */
	const char *plus = strchr(v.report.name.version, '+');
	struct promise label = {.from = "", .platform = ""};
	if (v.q->tables)
		promise_of_label(v.q->tables, plus ? plus + 1 : "", v.a, &label);
	v.report.promise = v.q->promise ? *v.q->promise : label;
	if (v.report.promise.gpu.count && !v.report.promise.cuda)
		v.report.promise.cuda = label.cuda;
	if (v.q->code)
		isa_rules_allowed(v.q->code, v.report.promise.isa, v.allowed);
	if (v.named && q->against)
		verify_against(&v);
	if (zip_open(q->wheel, a, &v.zip, e) < 0) {
		if (e->kind != ERR_INTEGRITY)
			return -1;
		verify_add(&v, FINDING_ERROR, RULE_ZIP, "", "%s", e->msg);
		err_clear(e);
	} else {
		int rc = examine(&v, e);
		zip_close(v.zip);
		if (rc < 0)
			return -1;
	}

	if (v.fault.kind != ERR_NONE) {
		*e = v.fault;
		return -1;
	}

	verify_machines(&v);
	r->tag_why = utf8_printable(r->tag_why, a);
	r->requires_torch = utf8_printable(r->requires_torch, a);
	*ret = v.report;
	return 0;
}
