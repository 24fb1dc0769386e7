/* Any bytes as a CMakeCache.txt, as compile_commands.json, as the build.ninja of an extension
 * and as a log: an answer or an error that names the file. The first byte says which. */
#include <string.h>

#include "base/path.h"
#include "base/sys/fs.h"
#include "fuzz.h"
#include "step/compile/build.h"

static struct arena arena;
static const char *top;

static void clean(void)
{
	struct err e;
	(void)!fs_remove(TRUSTED, top, &e);
	arena_release(&arena);
}

/* In memory where there is such a directory: each input becomes a file. */
static void make_top(void)
{
	char *dir;
	struct err e = {0};

	fail_unless(fs_temp_dir(fs_is_dir(TRUSTED, "/dev/shm") ? "/dev/shm" : "/tmp",
				"ptbuild-fuzz-", &arena, &dir, &e) == 0);
	top = dir;
	atexit(clean);
}

static int put(const char *name, const void *data, size_t size)
{
	FILE *f = fopen(path_join(&arena, top, name), "wb");
	fail_unless(f && fwrite(data, 1, size, f) == size && fclose(f) == 0);
	return 0;
}

static int check(const struct plan *p, uint8_t kind, const uint8_t *data, size_t size,
		 struct config_report *r, struct err *e)
{
	static const char cache[] = "USE_X:BOOL=ON\nNAME:STRING=value\n",
			  ninja[] = "cflags = -mavx2\nbuild a.o: c a.c\n";
	struct err ignored;

	switch (kind % 4) {
	case 0:
		put("file", data, size);
		return check_config_cache(
			&(struct config_check){.plan = p, .top = top, .file = "file", .report = r},
			e);
	case 1:
		put("file", data, size);
		return check_config_commands(
			&(struct config_check){.plan = p, .top = top, .file = "file", .report = r},
			e);
	case 2:
		put("file", cache, strlen(cache));
		put("log", data, size);
		return check_config_cache(
			&(struct config_check){
				.plan = p, .top = top, .file = "file", .log = "log", .report = r},
			e);
	default:
		fail_unless(fs_mkdirs(TRUSTED, path_join(&arena, top, "build"), &ignored) == 0);
		put("build/build.ninja", kind & 4 ? data : (const void *)ninja,
		    kind & 4 ? size : strlen(ninja));
		put("log", kind & 4 ? (const void *)"" : data, kind & 4 ? 0 : size);
		return check_config_tree(
			&(struct config_check){
				.plan = p, .top = top, .build = "build", .log = "log", .report = r},
			e);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const flags[] = {"-mavx2"};
	static struct setting settings[] = {{.name = "NAME", .value = "value", .check = true},
					    {.name = "USE_X", .value = "ON", .check = true}};
	const struct plan p = {.cmake = {.items = settings, .count = 2},
			       .cpu_flags = {.items = (const char **)(uintptr_t)flags, .count = 1}};
	struct config_report r = {0};
	struct err e = {0};

	if (!top)
		make_top();
	if (size == 0)
		return 0;
	if (check(&p, data[0], data + 1, size - 1, &r, &e) == 0)
		fail_unless(r.commands == r.host_units + r.device_units &&
			    r.overridden <= r.host_units);
	else
		fail_unless((e.kind == ERR_POLICY || e.kind == ERR_INTEGRITY) && e.msg[0]);
	return 0;
}
