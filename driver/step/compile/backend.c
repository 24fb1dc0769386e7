#include "step/compile/backend.h"

#include "base/sys/digest.h"
#include "base/text.h"

#define RPATH_64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
const char BACKEND_RPATH[] =
	SANDBOX_TOP "/rpath/" RPATH_64 RPATH_64 RPATH_64 RPATH_64 RPATH_64 RPATH_64 RPATH_64 RPATH_64;

#define PREFIX_MAP "-ffile-prefix-map=" SANDBOX_SRC "/="
/* Headers of a torch wheel put their own path into what is compiled against them. */
#define TORCH_MAP "-ffile-prefix-map=" SANDBOX_TORCH "/="

static const char *const setup_configure[] = {"python3", "setup.py", "build", "--cmake-only", NULL};
/* Stored: relocation unpacks the wheel at once, and Python's deflate takes 17 s for PyTorch. */
static const char *const setup_build[] = {"python3",   "setup.py",      "bdist_wheel", "--dist-dir",
					  SANDBOX_OUT, "--compression", "stored",      NULL};
/* The standard front end; everything it needs is already installed, so neither isolation nor an index. */
#define PIP_WHEEL                                                                                                      \
	"python3", "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--no-index", "--no-cache-dir",          \
		"--wheel-dir", SANDBOX_OUT, "--verbose"
static const char *const pip_build[] = {PIP_WHEEL, "--config-settings=build-dir=build", ".", NULL};
/* What may be of any back end: one that does not know a setting refuses it. Where there is no pyproject.toml pip would
 * else have setup.py remove all objects when it fails ("clean"). */
static const char *const extension_build[] = {PIP_WHEEL, "--use-pep517", ".", NULL};

static const struct backend backends[] = {
	/* PyTorch <= 2.11: setup.py turns USE_*, BUILD_*, CMAKE_* of the environment into -D options. */
	{.name = "setup-py-env", .configure = setup_configure, .build = setup_build, .cmake = true},
	/* 2.12 and 2.13: setup.py still drives, but CMake itself reads the environment
	 * (cmake/EnvVarForwarding.cmake). */
	{.name = "setup-py-cmake-env", .configure = setup_configure, .build = setup_build, .cmake = true},
	/* >= 2.14 */
	{.name = "scikit-build-core", .configure = NULL, .build = pip_build, .cmake = true},
	/* torchvision, and torchaudio >= 2.11: extensions of torch.utils.cpp_extension. */
	{.name = "setuptools", .configure = NULL, .build = setup_build, .cmake = false},
	/* torchaudio <= 2.10: setup.py runs CMake by itself. */
	{.name = "setuptools-cmake", .configure = NULL, .build = setup_build, .cmake = true},
	{.name = TABLES_EXTENSION_BACKEND, .configure = NULL, .build = extension_build, .cmake = false},
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
		"%s cannot be built in shards: its build ('%s') does not say beforehand what it compiles", package,
		b->name);
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

static void add_prefix_map(const struct plan *p, struct kvlist *env, struct arena *a, const char *map)
{
	append_flag(env, a, "CFLAGS", map);
	append_flag(env, a, "CXXFLAGS", map);
	if (p->toolkit) /* nvcc sees neither of these, but always reads this */
		append_flag(env, a, "NVCC_APPEND_FLAGS", arena_printf(a, "-Xcompiler=%s", map));
}

/* nvcc is a driver (a script in Debian): its bytes do not say which compiler is behind it, what it prints does. Of the
 * host's compilers the bytes say all, with CUDA and without, so that both share their objects. */
static const char *nvcc_identity(const struct plan *p, struct arena *a)
{
	char digest[DIGEST_HEX_LEN + 1];
	if (!p->toolkit)
		return "content";
	digest_data(p->toolkit->text, strlen(p->toolkit->text), digest);
	return arena_printf(a, "string:%s", digest);
}

char *backend_nvcc_launcher(const struct plan *p, const char *ccache, struct arena *a)
{
	static const char text[] = "#!/bin/sh\n"
				   "# nvcc by way of the compiler cache. Its key does not tell -dc from -c, but does "
				   "tell -rdc=true -c, which is the same.\n"
				   "# Without a list of headers (-MD) it would go by what the preprocessor gives for "
				   "the device, where the host's compiler\n"
				   "# sees another text: such a compilation is not cached.\n"
				   "compiler=$1 list=\n"
				   "shift\n"
				   "for a; do\n"
				   "\tshift\n"
				   "\tcase $a in\n"
				   "\t-dc | --device-c) set -- \"$@\" -rdc=true -c ;;\n"
				   "\t-MD | -MMD) list=1; set -- \"$@\" \"$a\" ;;\n"
				   "\t*) set -- \"$@\" \"$a\" ;;\n"
				   "\tesac\n"
				   "done\n"
				   "[ \"$list\" ] || exec \"$compiler\" \"$@\"\n"
				   "CCACHE_COMPILERCHECK='%s' exec '%s' \"$compiler\" \"$@\"\n";
	return arena_printf(a, text, nvcc_identity(p, a), ccache);
}

char *backend_heap(struct arena *a)
{
	/* Else it begins at an eighth of the memory, and at 128 MiB at the latest (GCC's manual, "ggc-min-heapsize"):
	 * with GCC 13 a tenth of the time of PyTorch's larger units. */
	static const char text[] =
		"#!/bin/sh\n"
		"# GCC with a larger heap: there is memory to spare. Not where its options go into what it makes, nor "
		"over a heap of the command's own.\n"
		"compiler=$1 plain= debug=\n"
		"shift\n"
		"case ${compiler##*/} in\n"
		"*clang*) plain=1 ;;\n"
		"*gcc* | *g++*) ;;\n"
		"*) plain=1 ;;\n"
		"esac\n"
		"for a; do\n"
		"\tcase $a in\n"
		"\t-g0) debug= ;;\n"
		"\t-gno-*) ;;\n"
		"\t-g*) debug=1 ;;\n"
		"\t-frecord-gcc-switches | -flto* | *ggc-min-heapsize*) plain=1 ;;\n"
		"\tesac\n"
		"done\n"
		"[ \"$plain$debug\" ] || set -- --param=ggc-min-heapsize=%llu \"$@\"\n"
		"exec \"$compiler\" \"$@\"\n";
	return arena_printf(a, text, (unsigned long long)(BACKEND_HEAP_BYTES >> 10));
}

void backend_modules(struct arena *a, struct kvlist *ret)
{
	static const char program[] =
		"\"\"\"The units of all modules at once: torch's BuildExtension gives ninja those of one, links it, "
		"and goes on to the next.\"\"\"\n"
		"import os\n"
		"import re\n"
		"import subprocess\n"
		"import sys\n"
		"\n"
		"\n"
		"class Enough(BaseException):\n"
		"    \"\"\"Raised in the place of running ninja.\"\"\"\n"
		"\n"
		"\n"
		"def together(build, extensions):\n"
		"    \"\"\"In a child, of which nothing but files remains: the status of a ninja that has the units of "
		"all modules.\"\"\"\n"
		"    real, rules, outputs, units, place = subprocess.run, {}, set(), [], None\n"
		"\n"
		"    def run(command, *args, **options):\n"
		"        if command[0] != \"ninja\" or \"cwd\" not in options:\n"
		"            return real(command, *args, **options)\n"
		"        raise Enough(command, options[\"cwd\"])\n"
		"\n"
		"    subprocess.run = run\n"
		"    for extension in (e for e in extensions if not e.optional):\n"
		"        try:\n"
		"            build(extension)\n"
		"            return 0  # without ninja\n"
		"        except Enough as e:\n"
		"            command, where = e.args\n"
		"        with open(f\"{where}/build.ninja\") as f:\n"
		"            text = f.read()\n"
		"        made = set(re.findall(\"^build (.*?): \", text, re.M))\n"
		"        # The same object of two modules differs by the flags: the later one is compiled when its "
		"turn comes.\n"
		"        if place not in (None, where) or outputs & made:\n"
		"            continue\n"
		"        place = where\n"
		"        outputs |= made\n"
		"        rules.update(re.findall(\"^(rule .*)\\n((?:  .*\\n)+)\", text, re.M))\n"
		"        flags = \"\".join(f\"  {line}\\n\" for line in re.findall(\"^[a-z_]+ = .*\", text, re.M))\n"
		"        units += (f\"{unit}\\n{flags}\" for unit in re.findall(\"^build .*\", text, re.M))\n"
		"    with open(f\"{place}/build.ninja\", \"w\") as f:\n"
		"        f.writelines(f\"{rule}\\n{body}\" for rule, body in rules.items())\n"
		"        f.writelines(units)\n"
		"    readable = real([\"ninja\", \"-n\"], cwd=place, stdout=subprocess.DEVNULL).returncode == 0\n"
		"    return real(command, cwd=place).returncode if readable else 0\n"
		"\n"
		"\n"
		"def ahead(build, extensions):\n"
		"    sys.stdout.flush()\n"
		"    sys.stderr.flush()\n"
		"    child = os.fork()\n"
		"    if child:\n"
		"        if os.waitpid(child, 0)[1]:\n"
		"            raise RuntimeError(\"ninja has failed\")\n"
		"        return\n"
		"    status = 0\n"
		"    try:\n"
		"        status = together(build, extensions)\n"
		"    except Exception as e:\n"
		"        print(f\"ptbuild: one module after the other: {e!r}\", flush=True)\n"
		"    finally:\n"
		"        os._exit(status)\n"
		"\n"
		"\n"
		"def modules(distribution):\n"
		"    base = distribution.cmdclass.get(\"build_ext\")\n"
		"    torch = sys.modules.get(\"torch.utils.cpp_extension\")\n"
		"    if not torch or not isinstance(base, type) or not issubclass(base, torch.BuildExtension):\n"
		"        return\n"
		"\n"
		"    class build_ext(base):\n"
		"        def build_extension(self, ext):\n"
		"            if self.use_ninja and not self.parallel and ext is self.extensions[0] and "
		"len(self.extensions) > 1:\n"
		"                ahead(super().build_extension, self.extensions)\n"
		"            super().build_extension(ext)\n"
		"\n"
		"    distribution.cmdclass[\"build_ext\"] = build_ext\n";
	struct kvlist files = {0};
	kvlist_set(&files, a, "ptbuild_modules.py", program);
	kvlist_set(&files, a, "ptbuild_modules-1.dist-info/METADATA",
		   "Metadata-Version: 2.1\nName: ptbuild-modules\nVersion: 1\n");
	kvlist_set(&files, a, "ptbuild_modules-1.dist-info/entry_points.txt",
		   "[setuptools.finalize_distribution_options]\nptbuild = ptbuild_modules:modules\n");
	*ret = files;
}

static void compiler_cache(const struct plan *p, const struct backend *b, const struct backend_options *o,
			   struct arena *a, struct kvlist *env)
{
	if (b->cmake) {
		kvlist_set(env, a, "CMAKE_C_COMPILER_LAUNCHER", o->ccache);
		kvlist_set(env, a, "CMAKE_CXX_COMPILER_LAUNCHER", o->ccache);
		kvlist_set(env, a, "CMAKE_CUDA_COMPILER_LAUNCHER", BACKEND_NVCC_LAUNCHER);
	} else {
		/* distutils takes CC apart when it links, so "ccache gcc" does not work there: the cache goes by the
		 * compilers' names. */
		kvlist_set(env, a, "PATH", arena_printf(a, "%s:%s", BACKEND_MASQUERADE, kvlist_get(env, "PATH")));
		if (p->toolkit) /* how torch.utils.cpp_extension runs nvcc */
			kvlist_set(env, a, "PYTORCH_NVCC",
				   arena_printf(a, "%s %s", BACKEND_NVCC_LAUNCHER, p->toolkit->nvcc));
	}
	kvlist_set(env, a, "CCACHE_DIR", SANDBOX_CCACHE);
	/* Builds write in that directory. A ccache.conf that one leaves there could name a command (prefix_command,
	 * compiler_check) that runs in the next one: with this no other file is read (ccache's manual,
	 * "Configuration"). */
	kvlist_set(env, a, "CCACHE_CONFIGPATH", "/dev/null");
	/* Depend mode takes the compiler's own list of headers: the preprocessor mode has returned wrong objects for
	 * CUDA. */
	kvlist_set(env, a, "CCACHE_DEPEND", "1");
	const char *precompiled = settings_value(&p->env, "USE_PRECOMPILED_HEADERS");
	if (precompiled && strcmp(precompiled, "ON") == 0) {
		/* What ccache asks for with precompiled headers (its manual, "Precompiled headers"). Their bytes differ
		 * from run to run, but the cache keeps them like any other result. It then does not look for __DATE__,
		 * so releases, whose time differs, must not share results. */
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

void backend_env(const struct plan *p, const struct backend *b, const struct backend_options *o, struct arena *a,
		 struct kvlist *ret)
{
	struct kvlist env = {0};
	for (size_t i = 0; i < p->env.count; i++)
		kvlist_set(&env, a, p->env.items[i].name, p->env.items[i].value);
	if (!b->cmake)
		add_prefix_map(p, &env, a, PREFIX_MAP);
	if (!b->cmake && o->torch)
		add_prefix_map(p, &env, a, TORCH_MAP);
	if (o->linker)
		append_flag(&env, a, "LDFLAGS", arena_printf(a, "-fuse-ld=%s", o->linker));
	append_flag(&env, a, "LDFLAGS", arena_printf(a, "-Wl,--disable-new-dtags,-rpath,%s", BACKEND_RPATH));
	if (o->ccache)
		compiler_cache(p, b, o, a, &env);
	/* CMake takes a copy for up to date when it is less than a second younger than its origin, also half a copy
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
		kvlist_set(&env, a, "PATH", arena_printf(a, "%s/bin:%s", o->venv, kvlist_get(&env, "PATH")));
	kvlist_sort(&env);
	*ret = env;
}

char *backend_cache_file(const struct plan *p, struct arena *a)
{
	AUTO_BUF struct buf out = {0};
	buf_addstr(&out, "# Cache entries that no environment variable reaches.\n");
	for (size_t i = 0; i < p->cache.count; i++) {
		buf_printf(&out, "set(%s \"", p->cache.items[i].name);
		/* A CMake string literal: the characters that mean something inside quotes are escaped. */
		const char *s = p->cache.items[i].value;
		for (; *s; s++) {
			if (*s == '"' || *s == '\\' || *s == '$')
				buf_addc(&out, '\\');
			buf_addc(&out, *s);
		}
		buf_addstr(&out, "\" CACHE STRING \"\")\n");
	}
	buf_addstr(&out, "add_compile_options(\"$<$<COMPILE_LANGUAGE:C,CXX>:" PREFIX_MAP ">\")\n");
	buf_addstr(&out, "add_compile_options(\"$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=" PREFIX_MAP ">\")\n");
	if (p->torch && strncmp(p->torch, "sha256:", 7) == 0) {
		buf_addstr(&out, "add_compile_options(\"$<$<COMPILE_LANGUAGE:C,CXX>:" TORCH_MAP ">\")\n");
		buf_addstr(&out, "add_compile_options(\"$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=" TORCH_MAP ">\")\n");
	}
	return arena_strdup(a, buf_cstr(&out));
}
