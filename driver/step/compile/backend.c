#include "step/compile/build_parts.h"

#include "base/sys/digest.h"

#define RPATH_64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
const char BACKEND_RPATH[] = SANDBOX_TOP
	"/rpath/" RPATH_64 RPATH_64 RPATH_64 RPATH_64 RPATH_64 RPATH_64 RPATH_64 RPATH_64;

#define PREFIX_MAP "-ffile-prefix-map=" SANDBOX_SRC "/="
/* Headers of a torch wheel put their own path into what is compiled against them. */
#define TORCH_MAP "-ffile-prefix-map=" SANDBOX_TORCH "/="
/* So do those of pybind11, which a list or lock may install. */
#define VENV_MAP "-ffile-prefix-map=" SANDBOX_VENV "/="

static const char *const setup_configure[] = {"python3", "setup.py", "build", "--cmake-only", NULL};
/* Stored: relocation unpacks the wheel at once, and Python's deflate needs 17 s for PyTorch. */
static const char *const setup_build[] = {"python3",   "setup.py",      "bdist_wheel", "--dist-dir",
					  SANDBOX_OUT, "--compression", "stored",      NULL};
/* The standard front end; everything it needs is
 * already installed, so neither isolation nor an index. */
#define PIP_WHEEL                                                                                  \
	"python3", "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--no-index",        \
		"--no-cache-dir", "--wheel-dir", SANDBOX_OUT, "--verbose"
static const char *const pip_build[] = {PIP_WHEEL, "--config-settings=build-dir=build", ".", NULL};
/* What may be of any back end: one that does not know a setting refuses it. Where there is
 * no pyproject.toml pip would else have setup.py remove all objects when it fails ("clean"). */
static const char *const extension_build[] = {PIP_WHEEL, "--use-pep517", ".", NULL};

static const struct backend backends[] = {
	/* PyTorch <= 2.11: setup.py turns USE_*, BUILD_*,
	 * CMAKE_* of the environment into -D options. */
	{.name = "setup-py-env", .configure = setup_configure, .build = setup_build, .cmake = true},
	/* 2.12 and 2.13: setup.py still drives, but CMake itself reads the environment
	 * (cmake/EnvVarForwarding.cmake). */
	{.name = "setup-py-cmake-env",
	 .configure = setup_configure,
	 .build = setup_build,
	 .cmake = true},
	/* >= 2.14 */
	{.name = "scikit-build-core", .configure = NULL, .build = pip_build, .cmake = true},
	/* torchvision, and torchaudio >= 2.11: extensions of torch.utils.cpp_extension. */
	{.name = "setuptools", .configure = NULL, .build = setup_build, .cmake = false},
	/* torchaudio <= 2.10: setup.py runs CMake by itself. */
	{.name = "setuptools-cmake", .configure = NULL, .build = setup_build, .cmake = true},
	{.name = TABLES_EXTENSION_BACKEND,
	 .configure = NULL,
	 .build = extension_build,
	 .cmake = false},
};

int backend_find(const char *name, const struct backend **ret, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(backends); i++) {
		if (strcmp(backends[i].name, name) == 0) {
			*ret = &backends[i];
			return 0;
		}
	}

	return err_set(e, ERR_CONFIG, "no build backend '%s'", name);
}

int backend_shares(const struct backend *b, const char *package, struct err *e)
{
	if (b->configure)
		return 0;
	err_set(e, ERR_POLICY,
		"%s cannot be built in shards: its build ('%s') does not say beforehand what it "
		"compiles",
		package, b->name);
	return err_hint(e, "build it as a whole, without --shard");
}

const char *backend_linker(const struct plan *p, const struct toolchain *t)
{
	const char *asked = settings_value(&p->env, "PTBUILD_LINKER");
	const struct tool *gcc = toolchain_get(t, "gcc");

	/* GCC knows -fuse-ld=mold from 12.1 on. */
	if (!asked || strcmp(asked, "mold") != 0 || !toolchain_get(t, "mold")->path ||
	    version_cmp(gcc->version, "12.1") < 0)
		return NULL;
	return asked;
}

static void append_flag(struct kvlist *env, struct arena *a, const char *key, const char *flag)
{
	const char *have = kvlist_get(env, key);
	kvlist_set(env, a, key, have && *have ? arena_printf(a, "%s %s", have, flag) : flag);
}

static void add_prefix_map(const struct plan *p, struct kvlist *env, struct arena *a,
			   const char *map)
{
	append_flag(env, a, "CFLAGS", map);
	append_flag(env, a, "CXXFLAGS", map);
	if (p->toolkit) /* nvcc sees neither of these, but always reads this */
		append_flag(env, a, "NVCC_APPEND_FLAGS", arena_printf(a, "-Xcompiler=%s", map));
}

/* nvcc is a driver (a script in Debian): its output identifies the compiler that it runs, its bytes
 * do not. The host's compilers are identified by their bytes, with CUDA and without, so that both
 * share their objects. */
static const char *nvcc_identity(const struct plan *p, struct arena *a)
{
	char digest[DIGEST_HEX_LEN + 1];

	if (!p->toolkit)
		return "content";
	digest_data(p->toolkit->text, strlen(p->toolkit->text), digest);
	return arena_printf(a, "string:%s", digest);
}

/* One of our scripts, with variables of this build in front. */
static char *script(const char *variables, const unsigned char *text, size_t size, struct arena *a)
{
	return arena_printf(a, "#!/bin/sh\n%s\n%.*s", variables, (int)size, (const char *)text);
}

char *backend_nvcc_launcher(const struct plan *p, const char *ccache, struct arena *a)
{
	const char *variables =
		arena_printf(a, "identity='%s' ccache='%s'", nvcc_identity(p, a), ccache);
	return script(variables, nvcc_by_ccache_script, nvcc_by_ccache_script_size, a);
}

char *backend_heap(struct arena *a)
{
	/* Else it begins at an eighth of the memory, and at 128 MiB at the latest (GCC's manual,
	 * "ggc-min-heapsize"): with GCC 13 a tenth of the time of PyTorch's larger units. */
	const char *variables =
		arena_printf(a, "heap=%llu", (unsigned long long)(BACKEND_HEAP_BYTES >> 10));

	return script(variables, larger_heap_script, larger_heap_script_size, a);
}

static void compiler_cache(const struct plan *p, const struct backend *b,
			   const struct backend_options *o, struct arena *a, struct kvlist *env)
{
	if (b->cmake) {
		kvlist_set(env, a, "CMAKE_C_COMPILER_LAUNCHER", o->ccache);
		kvlist_set(env, a, "CMAKE_CXX_COMPILER_LAUNCHER", o->ccache);
		kvlist_set(env, a, "CMAKE_CUDA_COMPILER_LAUNCHER", BACKEND_NVCC_LAUNCHER);
	} else {
		/* distutils splits CC when it links, so "ccache gcc" does not work there: ccache is
		 * found by the compilers' names. */
		kvlist_set(env, a, "PATH",
			   arena_printf(a, "%s:%s", BACKEND_MASQUERADE, kvlist_get(env, "PATH")));
		if (p->toolkit) /* how torch.utils.cpp_extension runs nvcc */
			kvlist_set(
				env, a, "PYTORCH_NVCC",
				arena_printf(a, "%s %s", BACKEND_NVCC_LAUNCHER, p->toolkit->nvcc));
	}

	kvlist_set(env, a, "CCACHE_DIR", SANDBOX_CCACHE);
	/* Builds write in that directory. A ccache.conf that one leaves there could name a
	 * command (prefix_command, compiler_check) that runs in the next one: with this no other
	 * file is read (ccache's manual, "Configuration"). */
	kvlist_set(env, a, "CCACHE_CONFIGPATH", "/dev/null");
	/* Depend mode uses the compiler's own list of headers: the preprocessor mode has returned
	 * wrong objects for CUDA. */
	kvlist_set(env, a, "CCACHE_DEPEND", "1");
	const char *precompiled = settings_value(&p->env, "USE_PRECOMPILED_HEADERS");
	if (precompiled && strcmp(precompiled, "ON") == 0) {
		/* What ccache asks for with precompiled headers (its manual, "Precompiled
		 * headers"). Their bytes differ from run to run, but the cache keeps them
		 * like any other result. It then does not look for __DATE__, so releases,
		 * whose time differs, must not share results. */
		kvlist_set(env, a, "CCACHE_SLOPPINESS", "pch_defines,time_macros");
		const char *epoch = kvlist_get(env, "SOURCE_DATE_EPOCH");
		kvlist_set(env, a, "CCACHE_NAMESPACE", epoch ? epoch : "0");
	}

	/* A new root of the same packages has other time stamps but the same compiler. */
	kvlist_set(env, a, "CCACHE_COMPILERCHECK", "content");
	kvlist_set(env, a, "CCACHE_NOHASHDIR", "1");
	kvlist_set(env, a, "CCACHE_MAXSIZE", o->ccache_size ? o->ccache_size : "30G");
	kvlist_set(env, a, "CCACHE_TEMPDIR", SANDBOX_CCACHE "/tmp");
}

void backend_env(const struct plan *p, const struct backend *b, const struct backend_options *o,
		 struct arena *a, struct kvlist *ret)
{
	struct kvlist env = {0};

	for (size_t i = 0; i < p->env.count; i++)
		kvlist_set(&env, a, p->env.items[i].name, p->env.items[i].value);
	if (!b->cmake)
		add_prefix_map(p, &env, a, PREFIX_MAP);
	if (!b->cmake && o->torch)
		add_prefix_map(p, &env, a, TORCH_MAP);
	if (!b->cmake && o->venv)
		add_prefix_map(p, &env, a, VENV_MAP);
	if (o->linker)
		append_flag(&env, a, "LDFLAGS", arena_printf(a, "-fuse-ld=%s", o->linker));
	append_flag(&env, a, "LDFLAGS",
		    arena_printf(a, "-Wl,--disable-new-dtags,-rpath,%s", BACKEND_RPATH));
	if (o->ccache)
		compiler_cache(p, b, o, a, &env);
	/* CMake keeps a copy that is less than a second younger than its origin, even half a copy
	 * that a kill or a full disk left. */
	if (b->cmake)
		kvlist_set(&env, a, "CMAKE_INSTALL_ALWAYS", "1");
	const char *jobs = arena_printf(a, "%u", o->jobs);
	kvlist_set(&env, a, "MAX_JOBS", jobs);
	kvlist_set(&env, a, "CMAKE_BUILD_PARALLEL_LEVEL", jobs);
	const char *modules = b->cmake ? NULL : BACKEND_MODULES;
	if (modules || o->torch)
		kvlist_set(&env, a, "PYTHONPATH",
			   modules && o->torch ? arena_printf(a, "%s:%s", modules, o->torch)
			   : modules           ? modules
					       : o->torch);
	if (o->venv)
		kvlist_set(&env, a, "PATH",
			   arena_printf(a, "%s/bin:%s", o->venv, kvlist_get(&env, "PATH")));
	kvlist_sort(&env);
	*ret = env;
}

char *backend_cache_file(const struct plan *p, struct arena *a)
{
	AUTO_BUF struct buf out = {0};

	buf_addstr(&out, "# Cache entries that no environment variable reaches.\n");
	for (size_t i = 0; i < p->cache.count; i++) {
		buf_printf(&out, "set(%s \"", p->cache.items[i].name);
		/* A CMake string literal: the characters that
		 * mean something inside quotes are escaped. */
		const char *s = p->cache.items[i].value;
		for (; *s; s++) {
			if (*s == '"' || *s == '\\' || *s == '$')
				buf_addc(&out, '\\');
			buf_addc(&out, *s);
		}

		buf_addstr(&out, "\" CACHE STRING \"\")\n");
	}

	buf_addstr(&out, "add_compile_options(\"$<$<COMPILE_LANGUAGE:C,CXX>:" PREFIX_MAP ">\")\n");
	buf_addstr(&out, "add_compile_options(\"$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=" PREFIX_MAP
			 ">\")\n");
	if (p->torch && strncmp(p->torch, "sha256:", 7) == 0) {
		buf_addstr(&out,
			   "add_compile_options(\"$<$<COMPILE_LANGUAGE:C,CXX>:" TORCH_MAP ">\")\n");
		buf_addstr(&out,
			   "add_compile_options(\"$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=" TORCH_MAP
			   ">\")\n");
	}

	return arena_strdup(a, buf_cstr(&out));
}
