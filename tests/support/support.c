#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys/fs.h"

static char current[256];
static bool there;
static pid_t owner;

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

/* Plain libc on purpose: the tests of the file-system module must not lean on the module. */
static void remove_current(void)
{
	if (there)
		nftw(current, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	there = false;
}

/* Of the process that made it: one that it forks may end as well. */
static void remove_last(void)
{
	if (getpid() == owner)
		remove_current();
}

/* The name stays for the process: a variable of the environment may have it, and
 * what is started would make one of an earlier name again, which nobody removes. */
const char *test_dir(void)
{
	const char *tmp = getenv("TMPDIR");

	remove_current();
	there = owner == getpid() && mkdir(current, 0700) == 0;
	if (there)
		return current;
	snprintf(current, sizeof(current), "%s/ptbuild-test-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(current))
		fail_msg("cannot make '%s': %s", current, strerror(errno));
	if (!owner)
		atexit(remove_last);
	owner = getpid();
	there = true;
	return current;
}

const char *test_path(const char *fmt, ...)
{
	static char buffers[8][4096];
	static unsigned next;
	char *out = buffers[next++ % 8];

	if (!there)
		test_dir();
	int n = snprintf(out, sizeof(buffers[0]), "%s/", current);
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(out + n, sizeof(buffers[0]) - (size_t)n, fmt, ap);
	va_end(ap);
	return out;
}

int test_teardown(void **state)
{
	(void)state;
	remove_current();
	return 0;
}

void test_write_bytes(const char *path, const void *data, size_t len)
{
	char dir[4096];

	snprintf(dir, sizeof(dir), "%s", path);
	for (char *p = dir + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		mkdir(dir, 0755);
		*p = '/';
	}

	FILE *f = fopen(path, "wb");
	if (!f)
		fail_msg("cannot write '%s': %s", path, strerror(errno));
	if (fwrite(data, 1, len, f) != len || fclose(f) != 0)
		fail_msg("cannot write '%s'", path);
}

void test_write(const char *path, const char *text)
{
	test_write_bytes(path, text, strlen(text));
}

void test_python(const char *version)
{
	char config[64];

	snprintf(config, sizeof(config), "version = %s.5\n", version);
	test_write(test_path("venv/pyvenv.cfg"), config);
	setenv("VIRTUAL_ENV", test_path("venv"), 1);
}

char *test_read(const char *path)
{
	FILE *f = fopen(path, "rb");

	if (!f)
		return NULL;
	size_t cap = 65536, len = 0;
	char *out = malloc(cap + 1);
	for (size_t n; out && (n = fread(out + len, 1, cap - len, f)) > 0;) {
		len += n;
		if (len == cap)
			out = realloc(out, (cap *= 2) + 1);
	}

	fclose(f);
	if (out)
		out[len] = '\0';
	return out;
}

const struct run *test_run(void)
{
	static struct log log = {.level = LOG_QUIET, .fd = 2};
	static const struct run run = {.log = &log, .cancel_fd = -1};
	return &run;
}

size_t test_count_entries(const char *dir)
{
	AUTO_ARENA struct arena a = {0};
	struct err e = {0};
	struct strlist l = {0};

	assert_ok(fs_list(TRUSTED, dir, &a, &l, &e), &e);
	return l.count;
}

int test_has(const char *text, const char *part)
{
	return text && strstr(text, part) != NULL;
}

void test_file_holds(const char *path, const char *text)
{
	char *have = test_read(path);

	if (!have)
		fail_msg("cannot read '%s'", path);
	assert_string_equal(have, text);
	free(have);
}

static bool put_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return ok;
}

bool test_own_mounts(void)
{
	char users[64], groups[64];

	snprintf(users, sizeof(users), "0 %u 1", geteuid());
	snprintf(groups, sizeof(groups), "0 %u 1", getegid());
	return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
	       put_text("/proc/self/setgroups", "deny") && put_text("/proc/self/uid_map", users) &&
	       put_text("/proc/self/gid_map", groups) &&
	       mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}
