/* Any bytes as one of the files below profiles/: the first says which. What loads can be planned
 * with; what does not is refused with the name of a file: another table may miss what is gone. */
#include <string.h>
#include <unistd.h>

#include "../support/plan_text.h"
#include "base/path.h"
#include "base/sys/fs.h"
#include "base/term.h"
#include "core/plan/plan.h"
#include "core/variant/variant.h"
#include "fuzz.h"

static const char *const files[] = {"isa.yaml",
				    "gpu.yaml",
				    "cuda.yaml",
				    "blas.yaml",
				    "toggles.yaml",
				    "releases/2.8.0.yaml",
				    "matrices/build-pytorch/main.yaml",
				    "examples/old-and-new.yaml"};

/* A copy of the tables for each file, so that none has to be mended between two inputs. */
static struct {
	struct arena a;
	char *top;
	const char *dirs[ARRAY_LEN(files)];
} copies;

static void drop_copies(void)
{
	struct err e = {0};

	if (fs_remove(TRUSTED, copies.top, &e) < 0)
		abort();
	arena_release(&copies.a);
}

/* The others are read again for each input and change nothing. */
static void keep_one_release(const char *dir)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist names = {0};
	struct err e = {0};
	const char *releases = path_join(&a, dir, "releases");

	fail_unless(fs_list(TRUSTED, releases, &a, &names, &e) == 0);
	for (size_t i = 0; i < names.count; i++)
		if (strcmp(names.items[i], "2.8.0.yaml") != 0)
			unlink(path_join(&a, releases, names.items[i]));
}

static void make_copies(void)
{
	struct err e = {0};

	if (copies.top)
		return;
	fail_unless(fs_temp_dir(fs_is_dir(TRUSTED, "/dev/shm") ? "/dev/shm" : NULL, "fuzz-tables-",
				&copies.a, &copies.top, &e) == 0);
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		copies.dirs[i] =
			path_join(&copies.a, copies.top, arena_printf(&copies.a, "%zu", i));
		fail_unless(fs_copy_tree(PROFILES_DIR, copies.dirs[i], &e) == 0);
		keep_one_release(copies.dirs[i]);
	}

	atexit(drop_copies);
}

static void plan(const struct tables *t, const char *name, struct arena *a)
{
	struct variant v;
	const struct plan *p = NULL;
	struct err e = {0};

	if (variant_parse(t, name, a, &v, &e) < 0)
		return;
	struct plan_request q = {.variant = &v, .release = t->releases[0].name};
	for (unsigned i = 0; i < t->releases_count; i++)
		if (strcmp(t->releases[i].base, "2.8.0") == 0)
			q.release = t->releases[i].name;
	if (plan_resolve(t, &q, a, &p, &e) < 0)
		fail_unless(e.kind != ERR_NONE && e.msg[0] && !p);
	else
		fail_unless(p->compile_key[0] && *plan_text(p, PLAN_REASONS, a));
}

static void walk(const struct matrix *m, struct arena *a)
{
	struct matrix_walk w = {0};
	for (unsigned i = 0; i < 1000 && matrix_next(m, &w, a); i++)
		continue;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = NULL;
	const struct matrix *m = NULL;
	struct profile profile;
	struct err e = {0};

	if (size < 2)
		return 0;
	make_copies();
	size_t which = data[0] % ARRAY_LEN(files);
	const char *path = path_join(&a, copies.dirs[which], files[which]);
	unlink(path);
	FILE *f = fopen(path, "wb");
	fail_unless(f && fwrite(data + 1, 1, size - 1, f) == size - 1 && fclose(f) == 0);
	if (tables_load(copies.dirs[which], &a, &t, &e) < 0) {
		fail_unless((e.kind == ERR_CONFIG || e.kind == ERR_INTEGRITY) &&
			    strstr(e.msg, ".yaml") != NULL);
		return 0;
	}

	plan(t, "pytorch-python313-cuda12_8-sm75+sm90a+ptx-avx512", &a);
	plan(t, "torchvision-python313-cpu-avx", &a);
	if (matrix_load(t, "build-pytorch/main", &a, &m, &e) == 0)
		walk(m, &a);
	else
		fail_unless(e.kind == ERR_CONFIG && e.msg[0]);
	if (profile_load(t, "old-and-new", &a, &profile, &e) < 0)
		fail_unless(e.kind == ERR_CONFIG && e.msg[0]);
	return 0;
}
