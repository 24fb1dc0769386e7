/* The compiler cache as the build step sets it, on compilers that it is known
 * to be wrong with: each object must be the one that the compiler itself makes. */
#include "support.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/path.h"
#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "core/root/sandbox.h"
#include "core/root/toolkit.h"
#include "step/compile/build_parts.h"

/* What nvcc does as far as the cache can see, on machines that have none:
 * it preprocesses for the device, compiles for the host, and makes
 * another object when that is to be linked for the device. */
static const char stand_in[] = "#!/bin/sh\n"
			       "mode=c out= src= rdc= defines= depend=\n"
			       "while [ $# -gt 0 ]; do\n"
			       "\tcase $1 in\n"
			       "\t-E) mode=E ;;\n"
			       "\t-c) ;;\n"
			       "\t-dc | --device-c | -rdc=true) rdc=-DRDC=1 ;;\n"
			       "\t-o) out=$2; shift ;;\n"
			       "\t-MD) depend=\"$depend -MD\" ;;\n"
			       "\t-MF) depend=\"$depend -MF $2\"; shift ;;\n"
			       "\t-D*) defines=\"$defines $1\" ;;\n"
			       "\t*) src=$1 ;;\n"
			       "\tesac\n"
			       "\tshift\n"
			       "done\n"
			       "if [ $mode = E ]; then exec gcc -x c++ -E -D__CUDA_ARCH__=520 "
			       "$defines $src ${out:+-o $out}; fi\n"
			       "exec gcc -x c++ -c $rdc $defines $depend $src -o $out\n";

static const char source[] = "#include \"v.h\"\n"
			     "#ifdef __CUDACC__\n"
			     "__device__ int twice(int x) { return 2 * x; }\n"
			     "#endif\n"
			     "#ifndef RDC\n"
			     "#define RDC 0\n"
			     "#endif\n"
			     "#ifndef __CUDA_ARCH__\n"
			     "int host(void) { return V + W + 100 * RDC; }\n"
			     "#endif\n";

struct bench {
	struct arena arena;
	const char *nvcc;
	/* what the build step gives to a build, with paths of the test directory */
	struct kvlist env;
};

static struct bench b;

static const char *host_path(const char *inside)
{
	static const struct {
		const char *inside, *host;
	} places[] = {{SANDBOX_CCACHE, "ccache"}, {SANDBOX_CFG, "cfg"}};

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		size_t n = strlen(places[i].inside);
		if (strncmp(inside, places[i].inside, n) == 0)
			return arena_printf(&b.arena, "%s%s", test_path("%s", places[i].host),
					    inside + n);
	}

	return inside;
}

/* The environment and the launcher are those of backend.c. */
static void prepare(void)
{
	static struct setting settings[] = {{.name = "CC", .value = "gcc"},
					    {.name = "PATH", .value = "/usr/bin:/bin"}};
	static const struct toolkit toolkit = {.text = "nvcc 13.0\n"};
	struct plan p = {.package = "pytorch",
			 .env = {.items = settings, .count = ARRAY_LEN(settings)},
			 .toolkit = &toolkit};
	const struct backend_options o = {.jobs = 1, .ccache = "/usr/bin/ccache"};
	const struct backend *backend;
	struct err e = {0};
	struct kvlist env = {0};

	test_dir();
	assert_ok(backend_find("setup-py-env", &backend, &e), &e);
	backend_env(&p, backend, &o, &b.arena, &env);
	for (size_t i = 0; i < env.count; i++)
		if (strncmp(env.items[i].key, "CCACHE_", 7) == 0 ||
		    strstr(env.items[i].key, "LAUNCHER"))
			kvlist_set(&b.env, &b.arena, env.items[i].key,
				   host_path(env.items[i].value));
	const char *launcher = kvlist_get(&b.env, "CMAKE_CUDA_COMPILER_LAUNCHER"),
		   *text = backend_nvcc_launcher(&p, o.ccache, &b.arena);
	assert_ok(fs_mkdirs(TRUSTED, test_path("cfg"), &e), &e);
	assert_ok(fs_write(TRUSTED, launcher, text, strlen(text), 0755, &e), &e);
	assert_ok(fs_mkdirs(TRUSTED, test_path("bin"), &e), &e);
	assert_ok(fs_write(TRUSTED, test_path("bin/nvcc"), stand_in, strlen(stand_in), 0755, &e),
		  &e);
	test_write(test_path("a.cu"), source);
	test_write(test_path("v.h"), "#ifndef __CUDA_ARCH__\n#define W 1\n#endif\n");
}

static void run(const char *command)
{
	AUTO_BUF struct buf env = {0};

	for (size_t i = 0; i < b.env.count; i++)
		buf_printf(&env, "%s='%s' ", b.env.items[i].key, b.env.items[i].value);
	int status = system(arena_printf(&b.arena,
					 "cd '%s' && env -i PATH=/usr/bin:/bin %s %s >out.txt 2>&1",
					 test_path("."), buf_cstr(&env), command));
	if (status != 0)
		fail_msg("%s: %s", command, test_read(test_path("out.txt")));
}

static char *object(const char *name)
{
	AUTO_BUF struct buf bytes = {0};
	struct err e = {0};

	assert_ok(fs_read(TRUSTED, test_path("%s", name), UINT64_C(1) << 24, &bytes, &e), &e);
	char hex[DIGEST_HEX_LEN + 1];
	digest_data(bytes.data, bytes.len, hex);
	return arena_strdup(&b.arena, hex);
}

/* The object of one compilation by way of the launcher. Other times of nvcc's
 * temporary files leave other bytes in some sections, so compilers that name them are
 * asked to compare what is in the object that matters. */
static const char *what_is_in(const char *name)
{
	int status = system(arena_printf(&b.arena,
					 "cd '%s' && { objdump -d --no-show-raw-insn %s | grep -vE "
					 "'file format|tmpxft'; readelf -SW %s | "
					 "awk '{print $2, $3}' | grep nv_relfatbin; } >what.txt",
					 test_path("."), name, name));

	assert_true(status == 0 || WEXITSTATUS(status) == 1);
	char *text = test_read(test_path("what.txt")), *copy = arena_strdup(&b.arena, text);
	free(text);
	return copy;
}

static const char *cached(const char *flags)
{
	run(arena_printf(&b.arena, "%s %s %s a.cu -o cached.o",
			 kvlist_get(&b.env, "CMAKE_CUDA_COMPILER_LAUNCHER"), b.nvcc, flags));
	return what_is_in("cached.o");
}

static const char *direct(const char *flags)
{
	run(arena_printf(&b.arena, "%s %s a.cu -o direct.o", b.nvcc, flags));
	return what_is_in("direct.o");
}

static unsigned counted(const char *what)
{
	run("ccache --print-stats");
	char *text = test_read(test_path("out.txt")), *at = strstr(text, what);
	unsigned n = at ? (unsigned)strtoul(at + strlen(what), NULL, 10) : 0;
	free(text);
	return n;
}

#define LIST "-MD -MF a.d "

static void device_links(void)
{
	const char *plain = direct("-c -DV=1"), *linked = direct("-dc -DV=1");

	assert_string_not_equal(plain, linked);
	assert_string_equal(cached("-c -DV=1 " LIST), plain);
	assert_string_equal(cached("-dc -DV=1 " LIST), linked);
	assert_string_equal(cached("--device-c -DV=1 " LIST), linked);
	assert_string_equal(cached("-c -DV=1 " LIST), plain);
	assert_int_equal(counted("cache_miss\t"), 2);
	assert_int_equal(counted("direct_cache_hit\t"), 2);
}

static void hidden_code(void)
{
	const char *one = direct("-c -DV=1"), *two = direct("-c -DV=2");

	assert_string_not_equal(one, two);
	assert_string_equal(cached("-c -DV=1 " LIST), one);
	assert_string_equal(cached("-c -DV=2 " LIST), two);
	assert_string_equal(cached("-c -DV=1"), one);
	assert_string_equal(cached("-c -DV=2"), two);
	test_write(test_path("v.h"), "#ifndef __CUDA_ARCH__\n#define W 40\n#endif\n");
	const char *edited = direct("-c -DV=1");
	assert_string_not_equal(edited, one);
	assert_string_equal(cached("-c -DV=1 " LIST), edited);
	assert_int_equal(counted("cache_miss\t"), 3);
	assert_string_equal(cached("-c -DV=1 " LIST), edited);
	assert_true(counted("direct_cache_hit\t") >= 1);
}

/* The stand-in on every machine, and the real one where it is. */
static void on_each_nvcc(void (*check)(void))
{
	static const char *const real = "/usr/local/cuda/bin/nvcc";

	prepare();
	b.nvcc = arena_strdup(&b.arena, test_path("bin/nvcc"));
	check();
	if (access(real, X_OK) != 0)
		return;
	prepare();
	b.nvcc = real;
	check();
}

static void code_for_device_linking_is_not_taken_for_other(void **state)
{
	(void)state;
	on_each_nvcc(device_links);
}

static void code_that_the_device_does_not_see_is_seen(void **state)
{
	(void)state;
	on_each_nvcc(hidden_code);
}

/* That the stand-in has what the launcher is for: without
 * it, or with another mode, the cache gives a wrong object. */
static void without_the_settings_the_objects_are_wrong(void **state)
{
	(void)state;
	prepare();
	b.nvcc = arena_strdup(&b.arena, test_path("bin/nvcc"));
	kvlist_set(&b.env, &b.arena, "CMAKE_CUDA_COMPILER_LAUNCHER", "/usr/bin/ccache");
	const char *linked = direct("-dc -DV=1");
	assert_string_equal(cached("-c -DV=1 " LIST), direct("-c -DV=1"));
	assert_string_not_equal(cached("-dc -DV=1 " LIST), linked);
	const char *two = direct("-c -DV=2");
	kvlist_set(&b.env, &b.arena, "CCACHE_DIR", arena_strdup(&b.arena, test_path("other")));
	assert_string_equal(cached("-c -DV=1"), direct("-c -DV=1"));
	assert_string_not_equal(cached("-c -DV=2"), two);
}

/* A compiler that changed behind the same name and time is another compiler. */
static void another_gcc_is_not_taken_for_the_first(void **state)
{
	static const char script[] = "#!/bin/sh\nexec /usr/bin/gcc -DV=%d \"$@\"\n";
	const struct timespec same[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
	struct err e = {0};

	(void)state;
	prepare();
	const char *gcc = arena_strdup(&b.arena, test_path("bin/gcc"));
	test_write(test_path("c.c"), "int host(void) { return V; }\n");
	for (int v = 1; v <= 2; v++) {
		const char *text = arena_printf(&b.arena, script, v);
		assert_ok(fs_write(TRUSTED, gcc, text, strlen(text), 0755, &e), &e);
		assert_int_equal(utimensat(AT_FDCWD, gcc, same, 0), 0);
		run(arena_printf(&b.arena, "%s %s -c c.c -o cached.o -MD -MF c.d",
				 kvlist_get(&b.env, "CMAKE_C_COMPILER_LAUNCHER"), gcc));
		run(arena_printf(&b.arena, "%s -c c.c -o direct.o", gcc));
		assert_string_equal(object("cached.o"), object("direct.o"));
	}
}

static int teardown(void **state)
{
	arena_release(&b.arena);
	b = (struct bench){0};
	return test_teardown(state);
}

#define T(name) cmocka_unit_test_teardown(name, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(code_for_device_linking_is_not_taken_for_other),
		T(code_that_the_device_does_not_see_is_seen),
		T(without_the_settings_the_objects_are_wrong),
		T(another_gcc_is_not_taken_for_the_first),
	};

	return cmocka_run_group_tests_name("ccache", tests, NULL, NULL);
}
