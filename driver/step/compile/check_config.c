#include <strings.h>

#include "base/sys/fs.h"
#include "base/sys/json.h"
#include "core/ninja/ninja.h"
#include "step/compile/build_parts.h"

#define MAX_TEXT (UINT64_C(512) << 20)

enum { MAX_RESPONSE = 1 << 20, RESPONSE_DEPTH = 4 };

/* CMake's own reading of a boolean; -1 for any other word. */
static int cmake_bool(const char *v)
{
	static const char *const yes[] = {"1", "ON", "YES", "TRUE", "Y"};
	static const char *const no[] = {"0", "OFF", "NO", "FALSE", "N", "IGNORE", "NOTFOUND", ""};

	for (size_t i = 0; i < ARRAY_LEN(yes); i++)
		if (strcasecmp(v, yes[i]) == 0)
			return 1;
	for (size_t i = 0; i < ARRAY_LEN(no); i++)
		if (strcasecmp(v, no[i]) == 0)
			return 0;
	return -1;
}

static bool same_value(const char *asked, const char *got)
{
	int a = cmake_bool(asked);
	return strcmp(asked, got) == 0 || (a >= 0 && a == cmake_bool(got));
}

static const struct setting *find_setting(const struct settings *l, const char *name, size_t len)
{
	for (size_t i = 0; i < l->count; i++) {
		if (strncmp(l->items[i].name, name, len) == 0 && l->items[i].name[len] == '\0')
			return &l->items[i];
	}

	return NULL;
}

/* What the configuration has in another way than the plan. */
struct differences {
	struct buf out;
	size_t count;
	const char *log; /* of the build */
};

static void differences_release(struct differences *d)
{
	buf_release(&d->out);
}

static void add_difference(struct differences *d, const struct setting *s, const char *where,
			   const char *got)
{
	struct buf *out = &d->out;
	const char *log = d->log;

	if (d->count++ >= 12)
		return;
	buf_printf(out, "%s%s: asked %s, got %s in %s", d->count > 1 ? "; " : "", s->name, s->value,
		   got ? got : "nothing", where);
	/* The first line of the log that names the setting
	 * together with a word such as "not found". */
	static const char *const words[] = {"not found", "Not compiling", "disabl",
					    "Disabl",    "OFF",           "Turning",
					    "could not", "Could not",     "without"};
	for (const char *p = log; p && (p = strstr(p, s->name)) != NULL; p += strlen(s->name)) {
		const char *start = p, *end = strchr(p, '\n');
		while (start > log && start[-1] != '\n')
			start--;
		size_t len = end ? (size_t)(end - start) : strlen(start);
		char line[512];
		snprintf(line, sizeof(line), "%.*s", (int)(len < 400 ? len : 400), start);
		if (strstr(line, "cmake -G") || strstr(line, "-D"))
			continue; /* an echoed command line */
		for (size_t i = 0; i < ARRAY_LEN(words); i++) {
			if (strstr(line, words[i])) {
				buf_printf(out, " (the log says: %s)", line + strspn(line, " -"));
				return;
			}
		}
	}
}

/* One line "NAME:TYPE=VALUE"; NAME may be quoted. Gives pointers into the line. */
static int split_entry(char *line, char **ret_name, char **ret_value)
{
	const bool quoted = *line == '"';
	char *name = line + quoted, *end = strchr(name, quoted ? '"' : ':');
	char *equal = end && end[quoted] == ':' ? strchr(end + quoted, '=') : NULL;

	if (!equal)
		return -1;
	*end = '\0';
	*ret_name = name;
	*ret_value = equal + 1;
	return 0;
}

/* The values of the plan's settings in a cache, by index; NULL where absent. */
static int read_cache(const struct config_check *k, struct arena *a, const char **values,
		      struct err *e)
{
	const struct plan *p = k->plan;
	const char *top = k->top, *rel = k->file;
	AUTO_BUF struct buf text = {0};

	if (fs_read(top, rel, MAX_TEXT, &text, e) < 0)
		return -1;
	unsigned number = 0;
	char *save = NULL;
	for (char *line = text.len ? text.data : NULL; line; line = save) {
		save = strchr(line, '\n');
		if (save)
			*save++ = '\0';
		number++;
		if (*line == '#' || strncmp(line, "//", 2) == 0 || !line[strspn(line, " \t\r")])
			continue;
		char *name, *value;
		if (split_entry(line, &name, &value) < 0)
			return err_set(e, ERR_INTEGRITY, "'%s' line %u: not a cache entry: '%.80s'",
				       path_join(a, top, rel), number, line);
		const struct setting *s = find_setting(&p->cmake, name, strlen(name));
		if (s)
			values[s - p->cmake.items] = arena_strdup(a, value);
	}

	return 0;
}

/* PyTorch's summary: lines "--   NAME   : VALUE" after "******** Summary ********". The log of a
 * resumed tree has several; the last counts. */
static void compare_summary(const struct plan *p, struct differences *d)
{
	static const char mark[] = "******** Summary ********";
	const char *at = NULL;

	for (const char *m = d->log; (m = strstr(m, mark)) != NULL; m += sizeof(mark) - 1)
		at = m;
	const char *end = at ? strstr(at, "-- Configuring done") : NULL;
	while (at && (!end || at < end)) {
		const char *line = at, *next = strchr(at, '\n');
		at = next ? next + 1 : NULL;
		if (strncmp(line, "--", 2) != 0)
			continue;
		line += 2 + strspn(line + 2, " ");
		size_t len = strspn(line, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
		const char *colon = line + len + strspn(line + len, " ");
		const struct setting *s = len ? find_setting(&p->cmake, line, len) : NULL;
		if (*colon != ':' || !s || cmake_bool(s->value) < 0)
			continue;
		const char *v = colon + 1 + strspn(colon + 1, " ");
		char value[64];
		snprintf(value, sizeof(value), "%.*s", (int)strcspn(v, "\r\n "), v);
		if (!same_value(s->value, value))
			add_difference(d, s, "the summary", *value ? value : "nothing");
	}
}

int check_config_cache(const struct config_check *k, struct err *e)
{
	const struct plan *p = k->plan;
	const char *top = k->top;
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf log = {0};
	struct differences d CLEANUP(differences_release) = {0};
	const char **values = arena_array(&a, p->cmake.count, sizeof(*values));

	if (read_cache(k, &a, values, e) < 0)
		return -1;
	/* A summary that cannot be read proves nothing. */
	if (k->log && fs_exists(top, k->log) && fs_read(top, k->log, MAX_TEXT, &log, e) < 0)
		return -1;
	d.log = buf_cstr(&log);
	for (size_t i = 0; i < p->cmake.count; i++) {
		const struct setting *s = &p->cmake.items[i];
		if (!values[i] || !same_value(s->value, values[i]))
			add_difference(&d, s, "CMakeCache.txt", values[i]);
	}

	compare_summary(p, &d);
	if (d.count) {
		err_set(e, ERR_POLICY, "the configuration is not what was asked for: %s%s",
			buf_cstr(&d.out), d.count > 12 ? "; ..." : "");
		return err_hint(e, "install what the build did not find (see the log), or change "
				   "the profile or --set");
	}

	k->report->entries += p->cmake.count;
	return 0;
}

static bool has_word(const char *command, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = command; (at = strstr(at, word)) != NULL; at += n) {
		bool left = at == command || isspace((unsigned char)at[-1]) || at[-1] == '"' ||
			    at[-1] == ',' || at[-1] == '=';
		bool right =
			!at[n] || isspace((unsigned char)at[n]) || at[n] == '"' || at[n] == ',';
		if (left && right)
			return true;
	}

	return false;
}

/* Whether an argument after a flag overrides it: another value for it ("-mcpu=generic" after
 * "-mcpu=neoverse-v1"), or "-mno-avx" after "-mavx2". GCC and clang obey the last; -march= counts
 * whatever -mcpu= says. */
static bool takes_back(const char *word, size_t len, const char *flag)
{
	const char *value = strchr(flag, '=');

	if (value)
		return strncmp(word, flag, (size_t)(value + 1 - flag)) == 0 &&
		       (strlen(flag) != len || strncmp(word, flag, len) != 0);
	if (strncmp(flag, "-mno-", 5) == 0 || strncmp(word, "-mno-", 5) != 0)
		return false;
	return strncmp(word + 5, flag + 2, len - 5) == 0 || strncmp(word + 5, "sse", 3) == 0;
}

/* Returns the last argument that overrides a flag of the plan, for messages; NULL if none does. */
static const char *overridden(const struct plan *p, const char *command, char *word, size_t size)
{
	static const char between[] = " \t\r\n\",";
	const char *found = NULL;

	for (size_t i = 0; i < p->cpu_flags.count; i++) {
		const char *flag = p->cpu_flags.items[i], *last = NULL;
		size_t len;
		for (const char *at = command; *(at += strspn(at, between)); at += len) {
			len = strcspn(at, between);
			if (len == strlen(flag) && strncmp(at, flag, len) == 0)
				last = NULL;
			else if (takes_back(at, len, flag))
				last = at;
		}

		found = last ? last : found;
	}

	if (found)
		snprintf(word, size, "%.*s", (int)strcspn(found, between), found);
	return found ? word : NULL;
}

/* 'c' for C and C++ units, 'u' for CUDA, 0 for others (assembler, linker, ...). */
static char unit_kind(const char *file)
{
	static const char *const host[] = {".c", ".cc", ".cpp", ".cxx", ".C"};

	for (size_t i = 0; i < ARRAY_LEN(host); i++) {
		if (path_has_suffix(file, host[i]))
			return 'c';
	}

	return path_has_suffix(file, ".cu") ? 'u' : 0;
}

/* Compile commands that are checked: of which file, and what is wrong with how many. */
struct checking {
	const struct plan *plan;
	const char *top, *rel; /* the file that has them */
	struct config_report *r;
	size_t wrong;
	char first[600];
};

static void wrong_unit(struct checking *c, const char *file, const char *what, const char *flag)
{
	if (c->wrong++ == 0)
		snprintf(c->first, sizeof(c->first), "'%s' %s '%s'", file, what, flag);
}

static void check_command(struct checking *c, const char *file, const char *command)
{
	const struct plan *p = c->plan;
	struct config_report *r = c->r;
	char kind = unit_kind(file);

	if (!kind)
		return;
	r->commands++;
	if (kind == 'c')
		r->host_units++;
	else
		r->device_units++;
	if (has_word(command, "-march=native"))
		wrong_unit(c, file, "is compiled for the machine it is built on:", "-march=native");
	if (has_word(command, "-mcpu=native"))
		wrong_unit(c, file, "is compiled for the machine it is built on:", "-mcpu=native");
	if (has_word(command, "-mtune=native"))
		wrong_unit(c, file, "is tuned for the machine it is built on:", "-mtune=native");
	for (size_t i = 0; i < p->cpu_flags.count; i++) {
		const char *flag = p->cpu_flags.items[i];
		bool has = has_word(command, flag);
		if (kind == 'c' && !has) {
			wrong_unit(c, file, "is compiled without", flag);
			return;
		}

		if (kind == 'u' && has) {
			wrong_unit(c, file, "is CUDA code that gets the CPU flag", flag);
			return;
		}
	}

	char word[100];
	if (kind == 'c' && overridden(p, command, word, sizeof(word)) && r->overridden++ == 0)
		snprintf(r->first_overridden, sizeof(r->first_overridden), "'%s' has '%s'", file,
			 word);
}

/* Kernels for other processors than the plan's (XNNPACK, ATen's
 * SVE) have flags of their own on purpose; most units do not. */
static int report_wrong(const struct checking *c, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	const struct config_report *r = c->r;

	if (!c->wrong && r->overridden * 2 <= r->host_units)
		return 0;
	if (c->wrong)
		err_set(e, ERR_POLICY, "%zu compile command%s not as asked: %s", c->wrong,
			c->wrong == 1 ? " is" : "s are", c->first);
	else
		err_set(e, ERR_POLICY, "%zu of %zu units override the planned CPU flags: %s",
			r->overridden, r->host_units, r->first_overridden);
	return err_hint(e, "see '%s'", path_join(&a, c->top, c->rel));
}

/* The file that this word names: behind '@', or, of nvcc and
 * clang, behind an option; NULL. `before`: the last word. */
static const char *named_file(const char *word, size_t n, const char *before, size_t before_n)
{
	static const char *const options[] = {"--options-file", "-optf", "--config"};

	if (n > 1 && *word == '@')
		return word + 1;
	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		size_t len = strlen(options[i]);
		if (n && before_n == len && strncmp(before, options[i], len) == 0)
			return word;
		if (n > len + 1 && strncmp(word, options[i], len) == 0 && word[len] == '=')
			return word + len + 1;
	}

	return NULL;
}

/* Where the files of a command's words are. */
struct response_files {
	const char *top, *dir; /* dir: where the command runs */
	struct arena *arena;
};

/* Compilers take words from a file, which may name another. Where they
 * cannot read it the word stands for itself, and so it does here. */
static const char *with_files(const struct response_files *f, const char *command, unsigned depth)
{
	struct arena *a = f->arena;
	static const char ends[] = " \t\r\n\"'";
	AUTO_BUF struct buf out = {0};
	const char *before = "";
	size_t before_n = 0;

	if (depth == 0 ||
	    (!strchr(command, '@') && !strstr(command, "-opt") && !strstr(command, "--config")))
		return command;
	for (const char *at = command; *at;) {
		size_t n = strcspn(at, ends);
		AUTO_BUF struct buf text = {0};
		const char *name = named_file(at, n, before, before_n);
		const char *path =
			name ? path_absolute(a, f->dir,
					     arena_strndup(a, name, (size_t)(at + n - name)))
			     : "";
		const char *rel = path_below(path, SANDBOX_TOP);
		rel = rel ? rel : path_below(path, f->top);
		if (rel && fs_read(f->top, rel, MAX_RESPONSE, &text, ERR_IGNORED) == 0)
			buf_addstr(&out, with_files(f, buf_cstr(&text), depth - 1));
		else
			buf_add(&out, at, n);
		before = at;
		before_n = n;
		at += n;
		n = strspn(at, ends);
		buf_add(&out, at, n);
		at += n;
	}

	return arena_strdup(a, buf_cstr(&out));
}

int check_config_commands(const struct config_check *k, struct err *e)
{
	const char *top = k->top, *commands = k->file;
	AUTO_ARENA struct arena a = {0};
	const char *path = path_join(&a, top, commands);
	AUTO_JSON json_t *j = NULL;
	struct checking c = {.plan = k->plan, .top = top, .rel = commands, .r = k->report};
	size_t i;
	json_t *entry;

	if (json_read(top, commands, &j, e) < 0)
		return -1;
	if (!json_is_array(j))
		return err_set(e, ERR_INTEGRITY, "'%s' is not an array of compile commands", path);
	json_array_foreach(j, i, entry)
	{
		const char *file = json_member(entry, "file");
		const char *command = json_member(entry, "command");
		const char *dir = json_member(entry, "directory");
		AUTO_ARENA struct arena scratch = {0};
		if (!file || !command)
			return err_set(e, ERR_INTEGRITY, "'%s' entry %zu has no file or no command",
				       path, i);
		const struct response_files f = {
			.top = top, .dir = dir ? dir : "/", .arena = &scratch};
		check_command(&c, file, with_files(&f, command, RESPONSE_DEPTH));
	}

	return report_wrong(&c, e);
}

/* Adds the values of a variable, which are lines "NAME = VALUE". */
static void add_values(const char *text, const char *name, struct buf *out)
{
	char mark[40];

	snprintf(mark, sizeof(mark), "\n%s = ", name);
	while ((text = strstr(text, mark))) {
		text += strlen(mark);
		buf_printf(out, " %.*s", (int)strcspn(text, "\r\n"), text);
	}
}

/* cpp_extension's build.ninja has the flags of all units in variables. */
static int check_ninja(struct checking *c, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf text = {0}, host = {0}, device = {0};
	struct ninja_edge *edges;
	size_t count;

	buf_addc(&text, '\n');
	if (fs_read(c->top, c->rel, MAX_TEXT, &text, e) < 0)
		return -1;
	add_values(text.data, "cflags", &host);
	add_values(text.data, "post_cflags", &host);
	add_values(text.data, "cuda_cflags", &device);
	add_values(text.data, "cuda_post_cflags", &device);
	ninja_build_parse(text.data, text.len, &a, &edges, &count);
	for (size_t i = 0; i < count; i++) {
		const bool cuda = unit_kind(edges[i].input) == 'u';
		check_command(c, edges[i].input, buf_cstr(cuda ? &device : &host));
	}

	return report_wrong(c, e);
}

/* The word after the last " -c " of a line; NULL without one. */
static char *compiled_file(const char *line, struct arena *a)
{
	const char *file = NULL;

	for (const char *at = line; (at = strstr(at, " -c ")) != NULL; at += 3)
		file = at + 4;
	return file ? arena_strndup(a, file, strcspn(file, " \t\r")) : NULL;
}

/* Files of these names, the outermost of each: those further down are
 * of projects inside the build (external projects, compiler checks). */
enum { CACHE, COMMANDS, NINJA, CHECKS, OLD_CHECKS, FILES };

struct found {
	struct arena *arena;
	const char *paths[FILES];
};

static unsigned depth(const char *path)
{
	unsigned n = 0;

	for (; *path; path++)
		n += *path == '/';
	return n;
}

static int find_file(const char *rel, const struct stat *st, void *user, struct err *e)
{
	static const char *const names[FILES] = {"CMakeCache.txt", "compile_commands.json",
						 "build.ninja", "CMakeConfigureLog.yaml",
						 "CMakeError.log" /* until 3.25 */};
	struct found *f = user;

	(void)st;
	(void)e;
	for (unsigned i = 0; i < FILES; i++)
		if (strcmp(path_base(rel), names[i]) == 0 &&
		    (!f->paths[i] || depth(rel) < depth(f->paths[i])))
			f->paths[i] = arena_strdup(f->arena, rel);
	return 0;
}

/* A check of CMake's that was killed, as for memory, counts
 * as one that failed: a feature is off, and stays so. */
static int check_checks(const char *top, const char *rel, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf text = {0};

	if (fs_read(top, rel, MAX_TEXT, &text, e) < 0)
		return -1;
	const char *killed = build_log_killed(buf_cstr(&text), &a);
	if (!killed)
		return 0;
	err_set(e, ERR_BUILD, "a program was killed while CMake tried what there is: %s",
		killed + strspn(killed, " "));
	return err_hint(e, "the same command configures from scratch; see '%s'",
			path_join(&a, top, rel));
}

int check_config_tree(const struct config_check *k, struct err *e)
{
	const struct plan *p = k->plan;
	const char *top = k->top, *build = k->build, *log = k->log;
	const bool cmake = k->cmake;
	struct config_report *r = k->report;
	struct config_check one = *k;
	AUTO_ARENA struct arena a = {0};
	struct found f = {.arena = &a};

	/* What the build of an extension leaves, and
	 * where, is its own affair: its wheel is judged. */
	if (plan_is_extension(p) && !fs_exists(top, build))
		return 0;
	if (fs_walk(top, build, find_file, &f, e) < 0)
		return -1;
	if (plan_is_extension(p) && !f.paths[COMMANDS] && !f.paths[NINJA])
		return 0;
	const char *cache = f.paths[CACHE], *commands = f.paths[COMMANDS], *ninja = f.paths[NINJA];
	if (cmake && (!cache || !commands)) {
		err_set(e, ERR_POLICY,
			"the build left no %s below '%s', so its configuration cannot be checked",
			cache ? "compile_commands.json" : "CMakeCache.txt",
			path_join(&a, top, build));
		return err_hint(e, "see the log '%s'", log ? path_join(&a, top, log) : "");
	}

	for (unsigned i = CHECKS; cmake && i <= OLD_CHECKS; i++)
		if (f.paths[i] && check_checks(top, path_join(&a, build, f.paths[i]), e) < 0)
			return -1;
	if (cache) {
		one.file = path_join(&a, build, cache);
		if (check_config_cache(&one, e) < 0)
			return -1;
	}

	if (commands) {
		one.file = path_join(&a, build, commands);
		return check_config_commands(&one, e);
	}

	if (ninja) {
		struct config_report last = {0};
		/* Every extension of a setup.py writes its build.ninja over the one before.
		 * ninja's own lines in the log, "[1/6] c++ ... -c a.cpp -o a.o", have them all. */
		AUTO_BUF struct buf text = {0};
		struct checking in_log = {.plan = p, .top = top, .rel = log, .r = r};
		struct strlist lines = {0};
		if (log && fs_exists(top, log)) {
			if (fs_read(top, log, MAX_TEXT, &text, e) < 0)
				return -1;
			strlist_split(&lines, &a, buf_cstr(&text), "\n");
			for (size_t n = 0; n < lines.count; n++) {
				/* pip's */
				const char *line = lines.items[n] + strspn(lines.items[n], " ");
				const char *file = *line == '[' && isdigit((unsigned char)line[1])
							   ? compiled_file(line, &a)
							   : NULL;
				if (file)
					check_command(&in_log, file, line);
			}

			if (report_wrong(&in_log, e) < 0)
				return -1;
		}

		struct checking c = {.plan = p,
				     .top = top,
				     .rel = path_join(&a, build, ninja),
				     .r = r->commands ? &last : r};
		return check_ninja(&c, e);
	}

	return err_set(e, ERR_POLICY,
		       "the build left neither compile_commands.json nor build.ninja below '%s'",
		       path_join(&a, top, build));
}
