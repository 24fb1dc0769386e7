#include "core/root/sandbox.h"

#include <limits.h>

#include "base/sys/json.h"

static const char *const kind_names[] = {[SANDBOX_BWRAP] = "bubblewrap", [SANDBOX_NONE] = "none"};

const char *sandbox_kind_name(enum sandbox_kind kind)
{
	return kind_names[kind];
}

bool sandbox_kind_parse(const char *name, enum sandbox_kind *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(kind_names); i++) {
		if (strcmp(kind_names[i], name) == 0) {
			*ret = (enum sandbox_kind)i;
			return true;
		}
	}

	return false;
}

#define PASSWD                                                                                     \
	"root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n"                                         \
	"ptbuild:x:1000:1000:ptbuild:" SANDBOX_HOME ":/bin/sh\n"                                   \
	"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
#define GROUP                                                                                      \
	"root:x:0:\n"                                                                              \
	"ptbuild:x:1000:\n"                                                                        \
	"nogroup:x:65534:\n"

/* The machine's users and host name stay out of a build; tests bind "localhost". */
static const struct {
	const char *path;
	const char *data;
} own_files[] = {
	{"/etc/passwd", PASSWD},
	{"/etc/group", GROUP},
	{"/etc/hosts", "127.0.0.1 localhost ptbuild\n::1 localhost\n"},
};

void sandbox_add(struct sandbox *s, enum sandbox_op_type type, const char *source, const char *dest)
{
	s->ops = arena_room(s->arena, s->ops, s->count, &s->cap, 32, sizeof(*s->ops));
	s->ops[s->count++] = (struct sandbox_op){
		.type = type,
		.source = source ? arena_strdup(s->arena, source) : NULL,
		.dest = arena_strdup(s->arena, dest),
	};
}

void sandbox_emulate_as(struct sandbox *s, const char *cpu)
{
	if (s->emulation && *cpu)
		kvlist_set(&s->env, s->arena, "QEMU_CPU", cpu);
}

void sandbox_copy(const struct sandbox *s, struct arena *a, struct sandbox *ret)
{
	struct sandbox copy = *s;

	copy.arena = a;
	copy.ops = arena_array(a, s->cap, sizeof(*copy.ops));
	if (s->count)
		memcpy(copy.ops, s->ops, s->count * sizeof(*copy.ops));
	copy.env = (struct kvlist){0};
	for (size_t i = 0; i < s->env.count; i++)
		kvlist_set(&copy.env, a, s->env.items[i].key, s->env.items[i].value);
	*ret = copy;
}

/* A path of the root, read-only at its own place. A link stays
 * a link, so that /lib and /usr/lib remain one directory. */
static void show(struct sandbox *s, const char *path)
{
	const char *host = root_host_path(s->root, path, s->arena);
	struct stat st;
	char target[PATH_MAX];

	if (lstat(host, &st) < 0)
		return;
	ssize_t n = S_ISLNK(st.st_mode) ? readlink(host, target, sizeof(target) - 1) : -1;
	if (n > 0) {
		target[n] = '\0';
		sandbox_add(s, SANDBOX_LINK, target, path);
	} else if (!S_ISLNK(st.st_mode)) {
		sandbox_add(s, SANDBOX_RO, host, path);
	}
}

static bool has_file(const struct sandbox *s, const char *path)
{
	struct stat st;
	return lstat(root_host_path(s->root, path, s->arena), &st) == 0 && S_ISREG(st.st_mode);
}

/* The host's /etc holds keys and passwords, so only what is needed is shown; of an unpacked root
 * all of it. pip reads the certificates when it is imported, whether it needs them or not. CMake
 * chooses its platform rules by debian_version (Platform/Linux.cmake: libraries are not
 * executable). */
static void show_etc(struct sandbox *s)
{
	static const char *const needed[] = {
		"/etc/alternatives", "/etc/debian_version", "/etc/ld.so.cache", "/etc/ld.so.conf",
		"/etc/ld.so.conf.d", "/etc/protocols",      "/etc/services",    "/etc/ssl/certs"};
	struct stat st;
	bool whole = !s->root->host && lstat(root_host_path(s->root, "/etc", s->arena), &st) == 0 &&
		     S_ISDIR(st.st_mode);

	if (whole) {
		show(s, "/etc");
	} else {
		sandbox_add(s, SANDBOX_DIR, NULL, "/etc");
		for (size_t i = 0; i < ARRAY_LEN(needed); i++)
			show(s, needed[i]);
	}

	/* Files cannot be made in a read-only directory, only mounted over. */
	for (size_t i = 0; i < ARRAY_LEN(own_files); i++)
		if (!whole || has_file(s, own_files[i].path))
			sandbox_add(s, SANDBOX_DATA, own_files[i].data, own_files[i].path);
}

int sandbox_check_root(enum sandbox_kind kind, const char *root, struct err *e)
{
	if (kind != SANDBOX_NONE)
		return 0;
	err_set(e, ERR_POLICY, "the root '%s' cannot be used without a sandbox", root);
	return err_hint(e, "--root / is this machine's own, or keep the sandbox on");
}

int sandbox_init(struct sandbox *s, enum sandbox_kind kind, const struct root *root,
		 struct arena *a, struct err *e)
{
	static const char *const tops[] = {"/usr",   "/bin",   "/sbin",  "/lib",
					   "/lib32", "/lib64", "/libx32"};

	if (!root->host && sandbox_check_root(kind, root->dir, e) < 0)
		return -1;
	*s = (struct sandbox){.kind = kind, .arena = a, .root = root, .cwd = "/"};
	s->emulation = root->emulation;
	s->emulated = root->emulation ? root->dir : NULL;
	if (s->emulation)
		kvlist_set(&s->env, a, "QEMU_CPU", s->emulation->cpu);
	for (size_t i = 0; i < ARRAY_LEN(tops); i++)
		show(s, tops[i]);
	if (!root->host)
		show(s, "/opt");
	show_etc(s);
	sandbox_add(s, SANDBOX_PROC, NULL, "/proc");
	sandbox_add(s, SANDBOX_DEV, NULL, "/dev");
	sandbox_add(s, SANDBOX_TMPFS, NULL, "/tmp");
	sandbox_add(s, SANDBOX_TMPFS, NULL, SANDBOX_HOME);
	sandbox_add(s, SANDBOX_TMPFS, NULL, SANDBOX_TMP);
	return 0;
}

/* Without a user namespace there are no --uid and --disable-userns. A setuid bubblewrap has dropped
 * the privilege that the latter needs; the filter of system calls forbids new namespaces too. */
static void add_isolation(const struct sandbox *s, struct strlist *ret)
{
	static const char all[] =
		"--unshare-ipc --unshare-pid --unshare-uts --unshare-cgroup-try --hostname ptbuild "
		"--die-with-parent --clearenv";

	if (s->way != SANDBOX_WAY_NO_USER)
		strlist_split(ret, s->arena, "--unshare-user --uid 1000 --gid 1000", " ");
	/* bubblewrap 0.8: in a user namespace of its own a program would have capabilities again.
	 * It writes /proc/sys, which is read-only where /proc is shared. */
	if (s->way == SANDBOX_WAY_USER && !s->proc_shared)
		strlist_ref(ret, s->arena, "--disable-userns");
	strlist_split(ret, s->arena, all, " ");
	/* With the caller's session a program could type into its terminal (TIOCSTI). */
	if (!s->terminal)
		strlist_ref(ret, s->arena, "--new-session");
	if (!s->network)
		strlist_ref(ret, s->arena, "--unshare-net");
}

/* The kernel's out-of-memory killer counts files of a tmpfs to no process. */
static void add_size(const struct sandbox *s, const char *dest, struct strlist *ret)
{
	unsigned parts = strcmp(dest, SANDBOX_TMP) == 0 ? 2 : 8;

	if (!s->memory)
		return;
	strlist_ref(ret, s->arena, "--size");
	strlist_addf(ret, s->arena, "%llu", (unsigned long long)(s->memory / parts));
}

void sandbox_options(const struct sandbox *s, struct strlist *ret)
{
	static const char *const options[] = {
		[SANDBOX_RO] = "--ro-bind",   [SANDBOX_RW] = "--bind",
		[SANDBOX_TMPFS] = "--tmpfs",  [SANDBOX_DIR] = "--dir",
		[SANDBOX_LINK] = "--symlink", [SANDBOX_PROC] = "--proc",
		[SANDBOX_DEV] = "--dev",      [SANDBOX_DATA] = "--ro-bind-data"};
	struct arena *a = s->arena;
	int fd = 3;

	add_isolation(s, ret);
	for (size_t i = 0; i < s->count; i++) {
		const struct sandbox_op *op = &s->ops[i];
		if (op->type == SANDBOX_TMPFS)
			add_size(s, op->dest, ret);
		const bool shared = op->type == SANDBOX_PROC && s->proc_shared;
		strlist_ref(ret, a, shared ? "--ro-bind" : options[op->type]);
		if (shared)
			strlist_ref(ret, a, "/proc");
		if (op->type == SANDBOX_DATA)
			strlist_addf(ret, a, "%d", fd++);
		else if (op->source)
			strlist_add(ret, a, op->source);
		strlist_add(ret, a, op->dest);
		/* bubblewrap covers some of its files; the others can be written by their owner. */
		if (op->type == SANDBOX_PROC && !s->proc_open && !shared)
			strlist_split(ret, a, arena_printf(a, "--remount-ro %s", op->dest), " ");
		if (op->type == SANDBOX_PROC)
			strlist_split(ret, a,
				      arena_printf(a, "--ro-bind-try /proc/sys %s/sys", op->dest),
				      " ");
		/* /proc/keys lists all keys that the caller's
		 * user may see, whatever the keyring. */
		if (op->type == SANDBOX_PROC && !s->keys_open)
			strlist_split(ret, a,
				      arena_printf(a, "--ro-bind-try /dev/null %s/keys", op->dest),
				      " ");
		if (op->type == SANDBOX_DEV && s->memory) {
			const char *shm = path_join(a, op->dest, "shm");
			add_size(s, shm, ret);
			strlist_split(ret, a, arena_printf(a, "--tmpfs %s", shm), " ");
		}

		/* /dev is a tmpfs as well. */
		if (op->type == SANDBOX_DEV && !s->proc_open)
			strlist_split(ret, a, arena_printf(a, "--remount-ro %s", op->dest), " ");
	}

	strlist_split(ret, a, "--remount-ro /", " ");
	for (size_t i = 0; i < s->env.count; i++) {
		strlist_ref(ret, a, "--setenv");
		strlist_add(ret, a, s->env.items[i].key);
		strlist_add(ret, a, s->env.items[i].value);
	}

	strlist_ref(ret, a, "--chdir");
	strlist_add(ret, a, s->cwd ? s->cwd : "/");
}

int sandbox_argv(const struct sandbox *s, const char *const *argv, struct strlist *ret,
		 struct err *e)
{
	struct arena *a = s->arena;

	if (!argv[0] || !*argv[0])
		return err_set(e, ERR_USAGE, "no program to run in the sandbox");
	if (s->kind == SANDBOX_BWRAP) {
		strlist_add(ret, a, "bwrap");
		sandbox_options(s, ret);
		strlist_add(ret, a, "--");
	}

	for (size_t i = 0; argv[i]; i++)
		strlist_add(ret, a,
			    s->kind == SANDBOX_NONE ? sandbox_host_text(s, argv[i], a) : argv[i]);
	return 0;
}

/* Whether a directory's name ends before this
 * character: "/ptbuild/src" is not in "/ptbuild/src2". */
static bool ends_name(char c)
{
	bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
	bool digit = c >= '0' && c <= '9';
	bool mark = c && strchr("._-+~", c);

	return !letter && !digit && !mark;
}

/* The operation with the longest dest that the text begins with, the last one of equals. */
static const struct sandbox_op *bound_at(const struct sandbox *s, const char *text)
{
	const struct sandbox_op *best = NULL;
	size_t best_len = 0;

	for (size_t i = 0; i < s->count; i++) {
		const struct sandbox_op *op = &s->ops[i];
		size_t n = strlen(op->dest);
		if (op->type == SANDBOX_LINK || n < best_len || n <= 1)
			continue;
		if (strncmp(text, op->dest, n) == 0 && ends_name(text[n])) {
			best = op;
			best_len = n;
		}
	}

	return best;
}

static const char *host_of(const struct sandbox_op *op)
{
	if (op->type == SANDBOX_RO || op->type == SANDBOX_RW)
		return op->source;
	return strcmp(op->dest, SANDBOX_TMP) == 0 ? "/tmp" : op->dest;
}

/* Whether the '/' at `p` begins an absolute path: before it in its word is nothing,
 * an option that has no path yet, punctuation only, or the "//" of a file URL. */
static bool begins_path(const char *word, const char *p)
{
	size_t n = (size_t)(p - word);

	if (memchr(word, '/', n))
		return n == 2 && word[0] == '/' && word[1] == '/';
	if (n == 0 || word[0] == '-')
		return true;
	for (size_t i = 0; i < n; i++)
		if (!ends_name(word[i]))
			return false;
	return true;
}

char *sandbox_host_text(const struct sandbox *s, const char *text, struct arena *a)
{
	AUTO_BUF struct buf out = {0};
	const char *word = text;

	for (const char *p = text; *p;) {
		const struct sandbox_op *op =
			*p == '/' && begins_path(word, p) ? bound_at(s, p) : NULL;
		if (op) {
			buf_addstr(&out, host_of(op));
			p += strlen(op->dest);
			continue;
		}

		buf_addc(&out, *p);
		if (strchr(":=,; \t\n\"'", *p))
			word = p + 1;
		p++;
	}

	return arena_strdup(a, buf_cstr(&out));
}

static const char *const type_names[] = {
	[SANDBOX_RO] = "ro",   [SANDBOX_RW] = "rw",     [SANDBOX_TMPFS] = "tmpfs",
	[SANDBOX_DIR] = "dir", [SANDBOX_LINK] = "link", [SANDBOX_PROC] = "proc",
	[SANDBOX_DEV] = "dev", [SANDBOX_DATA] = "data"};

json_t *sandbox_to_json(const struct sandbox *s)
{
	json_t *ops = json_array(), *env = json_array();

	for (size_t i = 0; i < s->count; i++)
		json_array_append_new(ops, json_pack("{s:s, s:o, s:o}", "type",
						     type_names[s->ops[i].type], "source",
						     json_or_null(s->ops[i].source), "dest",
						     json_or_null(s->ops[i].dest)));
	for (size_t i = 0; i < s->env.count; i++)
		json_array_append_new(env, json_pack("[o, o]", json_or_null(s->env.items[i].key),
						     json_or_null(s->env.items[i].value)));
	json_t *out = json_pack("{s:s, s:b, s:o, s:o, s:o}", "kind", sandbox_kind_name(s->kind),
				"network", s->network, "cwd", json_or_null(s->cwd), "ops", ops,
				"env", env);
	const struct emulation *m = s->emulation;
	if (m)
		json_object_set_new(out, "emulation",
				    json_pack("{s:s, s:s, s:o, s:s, s:s, s:s}", "platform",
					      m->platform, "program", m->program, "layer",
					      json_or_null(m->layer), "cpu", m->cpu, "name",
					      m->name, "root", s->emulated));
	return out;
}

static bool read_emulation(const json_t *j, struct sandbox *s)
{
	struct emulation *m = arena_alloc(s->arena, sizeof(*m));
	const json_t *layer = json_object_get(j, "layer");
	const char *const texts[] = {json_member(j, "platform"), json_member(j, "program"),
				     json_member(j, "cpu"), json_member(j, "name"),
				     json_member(j, "root")};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (!texts[i] || !*texts[i])
			return false;
	if (!json_is_string(layer) && !json_is_null(layer))
		return false;
	*m = (struct emulation){.platform = arena_strdup(s->arena, texts[0]),
				.program = arena_strdup(s->arena, texts[1]),
				.cpu = arena_strdup(s->arena, texts[2]),
				.name = arena_strdup(s->arena, texts[3])};
	if (json_is_string(layer))
		m->layer = arena_strdup(s->arena, json_string_value(layer));
	s->emulation = m;
	s->emulated = arena_strdup(s->arena, texts[4]);
	return *m->program == '/' && *s->emulated == '/';
}

static bool read_op(const json_t *j, struct sandbox *s)
{
	const char *type = json_member(j, "type");
	const char *dest = json_member(j, "dest");
	const json_t *source = json_object_get(j, "source");

	for (size_t i = 0; type && dest && i < ARRAY_LEN(type_names); i++) {
		if (strcmp(type, type_names[i]) != 0)
			continue;
		bool wanted = i == SANDBOX_RO || i == SANDBOX_RW || i == SANDBOX_LINK ||
			      i == SANDBOX_DATA;
		if (*dest != '/' || wanted != json_is_string(source))
			return false;
		sandbox_add(s, (enum sandbox_op_type)i, json_string_value(source), dest);
		return true;
	}

	return false;
}

static bool read_all(json_t *j, struct sandbox *s)
{
	const char *kind, *key, *value;
	int network;
	json_t *ops, *env;

	if (json_unpack(j, "{s:s, s:b, s:s, s:o, s:o}", "kind", &kind, "network", &network, "cwd",
			&s->cwd, "ops", &ops, "env", &env) < 0)
		return false;
	if (!sandbox_kind_parse(kind, &s->kind) || *s->cwd != '/')
		return false;
	if (!json_is_array(ops) || !json_is_array(env))
		return false;
	s->network = network;
	s->cwd = arena_strdup(s->arena, s->cwd);
	for (size_t i = 0; i < json_array_size(ops); i++)
		if (!read_op(json_array_get(ops, i), s))
			return false;
	for (size_t i = 0; i < json_array_size(env); i++) {
		if (json_unpack(json_array_get(env, i), "[s, s]", &key, &value) < 0 || !*key ||
		    strchr(key, '='))
			return false;
		kvlist_set(&s->env, s->arena, key, value);
	}

	const json_t *emulation = json_object_get(j, "emulation");
	return !emulation || read_emulation(emulation, s);
}

int sandbox_from_json(const json_t *j, const char *name, struct arena *a, struct sandbox *ret,
		      struct err *e)
{
	struct sandbox s = {.arena = a};

	if (!read_all((json_t *)j, &s))
		return err_set(e, ERR_INTEGRITY, "'%s' does not describe a sandbox", name);
	*ret = s;
	return 0;
}
