#include "core/root/root.h"

#include <fnmatch.h>
#include <limits.h>

#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "base/sys/machine.h"
#include "base/sys/proc.h"
#include "core/world/world.h"

#define MAX_LINKS 40 /* the kernel's own limit */
#define MAX_INCLUDES 8
#define MAX_TEXT (1U << 20)

char *root_host_path(const struct root *r, const char *path, struct arena *a)
{
	return r->host ? arena_strdup(a, path) : path_join(a, r->dir, path);
}

/* The key of the world of a store; NULL for any other root. */
static const char *world_key(const struct root *r, struct arena *a, char **ret_name)
{
	struct world_stamp stamp;
	bool is = !r->host && world_read_stamp(r->dir, a, &stamp, ERR_IGNORED) == 1 &&
		  path_has_suffix(r->dir, arena_printf(a, "/worlds/%s/root", stamp.key));

	if (!is)
		return NULL;
	*ret_name = stamp.name;
	return stamp.key;
}

const char *root_world_fix(const struct root *r, struct arena *a)
{
	char *name;

	if (!world_key(r, a, &name))
		return NULL;
	return arena_printf(
		a,
		"nothing is installed in a world of the store: take another world or release, or a "
		"root of "
		"your own, made with 'ptbuild world make %s --copy DIR' and named with --root DIR",
		name);
}

char *root_install(const struct root *r, bool on_host, const char *packages, struct arena *a)
{
	on_host = on_host || r->host;
	if (on_host ? !proc_find_host(a, "apt-get") : strncmp(r->id, "debian", 6) != 0)
		return arena_printf(a, "install what Debian calls %s %s", packages,
				    on_host ? "on this machine" : "in the root");
	if (on_host)
		return arena_printf(a, "sudo apt-get install %s", packages);
	return arena_printf(a, "sudo chroot %s sh -c 'apt-get update && apt-get install -y %s'",
			    shell_quoted(r->dir, a), packages);
}

static void pop(struct buf *out)
{
	while (out->len > 0 && out->data[out->len - 1] != '/')
		out->len--;
	if (out->len > 0)
		out->len--;
	if (out->data)
		out->data[out->len] = '\0';
}

/* Component by component, because older kernels and
 * some containers lack openat2(RESOLVE_IN_ROOT). */
char *root_resolve(const struct root *r, const char *path, struct arena *a)
{
	AUTO_BUF struct buf out = {0};
	const char *rest = path;
	unsigned links = 0;

	while (*rest) {
		size_t n = strcspn(rest, "/");
		const char *next = rest + n + strspn(rest + n, "/");
		if (n == 0 || (n == 1 && rest[0] == '.')) {
			rest = next;
			continue;
		}

		if (n == 2 && rest[0] == '.' && rest[1] == '.') {
			pop(&out);
			rest = next;
			continue;
		}

		size_t keep = out.len;
		buf_addc(&out, '/');
		buf_add(&out, rest, n);
		const char *host = root_host_path(r, buf_cstr(&out), a);
		struct stat st;
		if (lstat(host, &st) < 0)
			return NULL;
		if (S_ISLNK(st.st_mode)) {
			char target[PATH_MAX];
			ssize_t len = readlink(host, target, sizeof(target) - 1);
			if (len <= 0)
				return NULL;
			if (++links > MAX_LINKS) {
				errno = ELOOP;
				return NULL;
			}

			target[len] = '\0';
			out.len = target[0] == '/' ? 0 : keep;
			out.data[out.len] = '\0';
			rest = arena_printf(a, "%s/%s", target, next);
		} else if (*next && !S_ISDIR(st.st_mode)) {
			errno = ENOTDIR;
			return NULL;
		} else {
			rest = next;
		}
	}

	return arena_strdup(a, out.len > 0 ? out.data : "/");
}

int root_find(const struct root *r, const char *path, struct arena *a, const char **ret,
	      struct err *e)
{
	const char *real = root_resolve(r, path, a);
	bool is_absent = errno == ENOENT || errno == ENOTDIR || errno == ELOOP;

	if (!real && !is_absent && errno != EACCES)
		return err_errno(e, ERR_SYSTEM, "cannot look for '%s' in the root '%s'", path,
				 r->dir);
	*ret = real;
	return 0;
}

static bool is_program(const struct root *r, const char *path, struct arena *a)
{
	const char *real = root_resolve(r, path, a);
	struct stat st;

	return real && lstat(root_host_path(r, real, a), &st) == 0 && S_ISREG(st.st_mode) &&
	       (st.st_mode & 0111) != 0;
}

char *root_find_program(const struct root *r, const char *name, struct arena *a)
{
	if (!*name)
		return NULL;
	if (strchr(name, '/'))
		return name[0] == '/' && is_program(r, name, a) ? arena_strdup(a, name) : NULL;
	struct strlist dirs = {0};
	strlist_split(&dirs, a, ROOT_PATH, ":");
	for (size_t i = 0; i < dirs.count; i++) {
		char *path = path_join(a, dirs.items[i], name);
		if (is_program(r, path, a))
			return path;
	}

	return NULL;
}

char *root_path_of(const char *python, struct arena *a)
{
	const char *usual = "/usr/bin:/bin", *dir = python ? path_dir(a, python) : "/usr/bin";

	if (strcmp(dir, "/usr/bin") == 0 || strcmp(dir, "/bin") == 0)
		return arena_strdup(a, usual);
	return arena_printf(a, "%s:%s", dir, usual);
}

char *root_build_path(const struct root *r, struct arena *a)
{
	return root_path_of(root_find_program(r, "python3", a), a);
}

char *root_python(const struct root *r, struct arena *a)
{
	const char *path = root_find_program(r, "python3", a);

	if (path)
		path = root_resolve(r, path, a);
	const char *name = path ? path_base(path) : "";
	return strncmp(name, "python3.", 8) == 0 ? arena_strdup(a, name + strlen("python")) : NULL;
}

int root_read(const struct root *r, const char *path, uint64_t max, struct buf *out, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const char *real;

	if (root_find(r, path, &a, &real, e) < 0)
		return -1;
	if (!real)
		return 0;
	return fs_read(TRUSTED, root_host_path(r, real, &a), max, out, e) < 0 ? -1 : 1;
}

int root_list(const struct root *r, const char *dir, struct arena *a, struct strlist *ret,
	      struct err *e)
{
	const char *real;

	if (root_find(r, dir, a, &real, e) < 0)
		return -1;
	return real ? fs_list(TRUSTED, root_host_path(r, real, a), a, ret, e) : 0;
}

struct listing {
	const struct root *root;
	const char *dir;
	struct arena *a;
	struct strlist *ret;
};

static int list_file(const char *rel, const struct stat *st, void *user, struct err *e)
{
	const struct listing *l = user;
	struct stat real;
	const char *path = S_ISLNK(st->st_mode)
				   ? root_resolve(l->root, path_join(l->a, l->dir, rel), l->a)
				   : NULL;

	(void)e;
	if (path && lstat(root_host_path(l->root, path, l->a), &real) == 0)
		st = &real;
	if (S_ISREG(st->st_mode))
		strlist_add(l->ret, l->a, rel);
	return 0;
}

int root_files(const struct root *r, const char *dir, struct arena *a, struct strlist *ret,
	       struct err *e)
{
	const char *real;

	if (root_find(r, dir, a, &real, e) < 0)
		return -1;
	struct listing l = {.root = r, .dir = real, .a = a, .ret = ret};
	return real ? fs_walk(TRUSTED, root_host_path(r, real, a), list_file, &l, e) : 0;
}

/* The value of KEY=value in os-release, without quotes; NULL if absent. */
static const char *os_field(const char *text, const char *key, struct arena *a)
{
	size_t klen = strlen(key);
	struct strlist lines = {0};

	strlist_split(&lines, a, text, "\r\n");
	for (size_t i = 0; i < lines.count; i++) {
		if (strncmp(lines.items[i], key, klen) != 0 || lines.items[i][klen] != '=')
			continue;
		const char *v = lines.items[i] + klen + 1;
		size_t n = strlen(v);
		while (n > 0 && v[n - 1] == ' ')
			n--;
		bool quoted = n >= 2 && (v[0] == '"' || v[0] == '\'') && v[n - 1] == v[0];
		return quoted ? arena_strndup(a, v + 1, n - 2) : arena_strndup(a, v, n);
	}

	return NULL;
}

static const char *os_id(const char *text, struct arena *a)
{
	const char *id = os_field(text, "ID", a);
	const char *version = os_field(text, "VERSION_ID", a);

	if (!id || !*id)
		return "unknown";
	return version && *version ? arena_printf(a, "%s %s", id, version) : id;
}

/* Names, sizes and link targets in one directory; no sizes
 * of directories, which differ between file systems. */
static int list_names(const struct root *r, const char *dir, struct buf *out, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const char *real;
	struct strlist names = {0};

	if (root_find(r, dir, &a, &real, e) < 0)
		return -1;
	if (!real)
		return 0;
	const char *host = root_host_path(r, real, &a);
	if (fs_list(TRUSTED, host, &a, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		const char *path = path_join(&a, host, names.items[i]);
		struct stat st;
		char target[PATH_MAX];
		if (lstat(path, &st) < 0)
			continue;
		ssize_t n = S_ISLNK(st.st_mode) ? readlink(path, target, sizeof(target)) : -1;
		if (n >= 0)
			buf_printf(out, "%s/%s -> %.*s\n", dir, names.items[i], (int)n, target);
		else if (S_ISREG(st.st_mode))
			buf_printf(out, "%s/%s %lld\n", dir, names.items[i], (long long)st.st_size);
		else
			buf_printf(out, "%s/%s/\n", dir, names.items[i]);
	}

	return 0;
}

static int fingerprint(struct root *r, const char *os_release, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	int got = root_dpkg_text(r, &text, e);

	if (got < 0)
		return -1;
	if (got == 0) {
		static const char *const dirs[] = {"/usr/bin", "/usr/lib", "/usr/lib64"};
		buf_printf(&text, "os-release\n%s\n", os_release);
		for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
			if (list_names(r, dirs[i], &text, e) < 0)
				return -1;
	}

	/* A world's other parts, such as a CUDA toolkit, are not packages and only in its key. */
	if (root_read(r, "/" WORLD_STAMP, MAX_TEXT, &text, e) < 0)
		return -1;
	digest_data(text.data, text.len, r->fingerprint);
	return 0;
}

/* The platform of a program, by the head of its ELF file; NULL: another file. */
static const char *program_platform(const struct root *r, const char *path, struct arena *a)
{
	enum { HEAD = 20, CLASS = 4, DATA = 5, MACHINE = 18 };
	unsigned char head[HEAD];
	const char *real = root_resolve(r, path, a);
	AUTO_FD int fd = real ? open(root_host_path(r, real, a), O_RDONLY | O_CLOEXEC) : -1;

	if (fd < 0 || read(fd, head, sizeof(head)) != HEAD || memcmp(head, "\177ELF", 4) != 0)
		return NULL;
	if (head[CLASS] != 2 || head[DATA] != 1 || head[MACHINE + 1] != 0)
		return NULL;
	return head[MACHINE] == 0x3e   ? "x86_64-linux"
	       : head[MACHINE] == 0xb7 ? "aarch64-linux"
				       : NULL;
}

static const char *root_platform(const struct root *r, struct arena *a)
{
	static const char *const programs[] = {"/usr/bin/sh", "/usr/bin/env", "/usr/bin/python3"};
	const char *found = NULL;

	for (size_t i = 0; i < ARRAY_LEN(programs) && !found && !r->host; i++)
		found = program_platform(r, programs[i], a);
	return found ? found : machine_platform(a);
}

int root_open(const char *dir, struct arena *a, struct root *ret, struct err *e)
{
	struct root r = {.dir = "/", .host = true};

	if (dir && strcmp(dir, "/") != 0) {
		AUTO_FREE char *real = realpath(dir, NULL);
		if (!real && errno == ENOENT) {
			err_set(e, ERR_USAGE, "the root '%s' does not exist", dir);
			return err_hint(e,
					"'ptbuild world make debian13 --copy %s' makes one; --root "
					"world:debian13 is one "
					"that ptbuild makes and keeps",
					shell_quoted(dir, a));
		}

		if (!real)
			return err_errno(e, ERR_USAGE, "cannot open the root '%s'", dir);
		r.dir = arena_strdup(a, real);
		r.host = strcmp(real, "/") == 0;
	}

	const char *bin = root_resolve(&r, "/usr/bin", a);
	if (!bin || !fs_is_dir(TRUSTED, root_host_path(&r, bin, a))) {
		err_set(e, ERR_USAGE, "'%s' is not a root file system: it has no usr/bin", r.dir);
		return err_hint(e, "name a directory with an unpacked root file system, "
				   "world:NAME, or / for this "
				   "machine's own");
	}

	AUTO_BUF struct buf os = {0};
	int got = root_read(&r, "/etc/os-release", MAX_TEXT, &os, e);
	if (got == 0)
		got = root_read(&r, "/usr/lib/os-release", MAX_TEXT, &os, e);
	if (got < 0)
		return -1;
	r.id = os_id(buf_cstr(&os), a);
	r.platform = root_platform(&r, a);
	char *name;
	r.world = world_key(&r, a, &name);
	if (fingerprint(&r, buf_cstr(&os), e) < 0)
		return err_wrap(e, "root '%s'", r.dir);
	*ret = r;
	return 0;
}

static void add_dir(const struct root *r, const char *dir, struct arena *a, struct strlist *out)
{
	const char *real = root_resolve(r, dir, a);
	if (!strlist_contains(out, dir) && real && fs_is_dir(TRUSTED, root_host_path(r, real, a)))
		strlist_add(out, a, dir);
}

/* The directories that ld.so.conf and its includes name. */
struct ld_conf {
	const struct root *r;
	unsigned depth; /* of includes */
	struct arena *a;
	struct strlist *out;
};

static int read_ld_conf(struct ld_conf *c, const char *conf, struct err *e);

/* An "include" line. Wildcards are in the last component, where every distribution has them. */
static int include_conf(struct ld_conf *c, const char *from, const char *pattern, struct err *e)
{
	struct arena *a = c->a;
	const char *full = pattern[0] == '/' ? pattern : path_join(a, path_dir(a, from), pattern);
	const char *dir = path_dir(a, full);

	if (strpbrk(dir, "*?["))
		return err_set(
			e, ERR_CONFIG,
			"wildcard in a directory's name is not supported: 'include %s' in '%s'",
			pattern, from);
	struct strlist names = {0};
	if (root_list(c->r, dir, a, &names, e) < 0)
		return -1;
	c->depth++;
	for (size_t i = 0; i < names.count; i++)
		if (fnmatch(path_base(full), names.items[i], FNM_PERIOD) == 0 &&
		    read_ld_conf(c, path_join(a, dir, names.items[i]), e) < 0)
			return -1;
	c->depth--;
	return 0;
}

static int read_ld_conf(struct ld_conf *c, const char *conf, struct err *e)
{
	struct arena *a = c->a;
	AUTO_BUF struct buf text = {0};

	if (c->depth > MAX_INCLUDES)
		return err_set(e, ERR_CONFIG, "include lines nested more than %d deep: '%s'",
			       MAX_INCLUDES, conf);
	int got = root_read(c->r, conf, MAX_TEXT, &text, e);
	if (got <= 0)
		return got;
	struct strlist lines = {0};
	strlist_split(&lines, a, buf_cstr(&text), "\n");
	for (size_t i = 0; i < lines.count; i++) {
		char *line = arena_strdup(a, lines.items[i]);
		line[strcspn(line, "#")] = '\0';
		struct strlist words = {0};
		strlist_split(&words, a, line, " \t\r:,");
		if (words.count == 0 || strcmp(words.items[0], "hwcap") == 0)
			continue;
		if (strcmp(words.items[0], "include") == 0) {
			for (size_t w = 1; w < words.count; w++)
				if (include_conf(c, conf, words.items[w], e) < 0)
					return -1;
			continue;
		}

		for (size_t w = 0; w < words.count; w++)
			if (words.items[w][0] == '/') /* old ones are "dir=libc type" */
				add_dir(c->r,
					arena_strndup(a, words.items[w],
						      strcspn(words.items[w], "=")),
					a, c->out);
	}

	return 0;
}

int root_library_dirs(const struct root *r, struct arena *a, struct strlist *ret, struct err *e)
{
	static const char *const defaults[] = {"/lib64", "/usr/lib64", "/lib", "/usr/lib"};
	struct strlist out = {0};

	if (read_ld_conf(&(struct ld_conf){.r = r, .a = a, .out = &out}, "/etc/ld.so.conf", e) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(defaults); i++)
		add_dir(r, defaults[i], a, &out);
	strlist_append(ret, a, &out);
	return 0;
}

enum { LIBC_MAX = 16 << 20 };

/* The library carries what it prints when it is run: "GNU C
 * Library (Debian GLIBC 2.41-12) stable release version 2.41.". */
static const char *glibc_in(const struct buf *library, struct arena *a)
{
	static const char name[] = "GNU C Library ", before[] = " release version ";
	const char *at = memmem(library->data, library->len, name, strlen(name));
	const char *end = at ? memchr(at, '\0', (size_t)(library->data + library->len - at)) : NULL;
	const char *version = end ? strstr(at, before) : NULL;

	if (!version)
		return "";
	version += strlen(before);
	size_t n = strspn(version, "0123456789.");
	while (n && version[n - 1] == '.')
		n--;
	return arena_strndup(a, version, n);
}

int root_glibc(const struct root *r, struct arena *a, const char **ret, struct err *e)
{
	struct strlist dirs = {0};
	const char *found = "";

	if (root_library_dirs(r, a, &dirs, e) < 0)
		return -1;
	for (size_t i = 0; i < dirs.count && !*found; i++) {
		AUTO_BUF struct buf library = {0};
		int got = root_read(r, path_join(a, dirs.items[i], "libc.so.6"), LIBC_MAX, &library,
				    e);
		if (got < 0)
			return -1;
		if (got)
			found = glibc_in(&library, a);
	}

	*ret = found;
	return 0;
}
