#include "core/plan/torch_fits.h"

#include "base/os.h"
#include "core/fatbin/fatbin.h"
#include "core/plan/cuda_libraries.h"
#include "core/wheel/wheel.h"

enum { TEXT_MAX = 1 << 20 };

/* The value of `cuda` in torch/version.py ("cuda:
 * Optional[str] = '12.4'"): "" for None, NULL without one. */
static const char *torch_cuda_in(const char *version_py, struct arena *a)
{
	struct strlist lines = {0};

	strlist_split(&lines, a, version_py, "\r\n");
	for (size_t i = 0; i < lines.count; i++) {
		const char *line = lines.items[i];
		if (strncmp(line, "cuda", 4) != 0 || !line[4] || !strchr(": =", line[4]))
			continue;
		const char *value = strchr(line, '=');
		if (!value)
			continue;
		value += 1 + strspn(value + 1, " ");
		if (*value == '\'' || *value == '"')
			return arena_strndup(a, value + 1, strcspn(value + 1, "'\""));
		return strncmp(value, "None", 4) == 0 ? "" : NULL;
	}

	return NULL;
}

/* Adds a member's text; nothing if the archive does not have it. */
static int member(const struct zip_reader *z, const char *name, struct buf *out, struct err *e)
{
	const struct zip_entry *en = zip_find(z, name);
	return en ? zip_read(z, en, TEXT_MAX, out, e) : 0;
}

int torch_cuda(const char *wheel, struct arena *a, const char **ret, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	AUTO_ZIP struct zip_reader *z = NULL;

	if (zip_open(wheel, a, &z, e) < 0 || member(z, "torch/version.py", &text, e) < 0)
		return -1;
	*ret = torch_cuda_in(buf_cstr(&text), a);
	return 0;
}

static int check_tags(const struct torch_asked *q, struct arena *a, struct err *e)
{
	const struct plan *p = q->plan;
	struct wheel_name n;
	const char *file = path_base(q->wheel), *glibc = q->glibc;
	const char *machine = arena_strndup(a, p->platform, strcspn(p->platform, "-"));

	if (wheel_name_parse(file, a, &n, e) < 0)
		return -1;
	if (!path_has_suffix(n.platform, arena_printf(a, "_%s", machine))) {
		err_set(e, ERR_POLICY,
			"'%s' is for another platform: '%s', but the build is for %s", file,
			n.platform, p->platform);
		return err_hint(e, "give a torch for %s", p->platform);
	}

	if (!glibc || strncmp(glibc, "2.", 2) != 0 || !strstr(n.platform, "manylinux") ||
	    wheel_name_lands(
		    &n, &(struct wheel_machine){machine, (unsigned)strtoul(glibc + 2, NULL, 10)},
		    a))
		return 0;
	err_set(e, ERR_POLICY, "'%s' needs a newer glibc than the %s of the root", file, glibc);
	return err_hint(e, "name the release that the torch is of (--release), or a root with its "
			   "glibc (--root)");
}

static int check_abi(const struct torch_asked *q, struct arena *a, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	AUTO_ZIP struct zip_reader *z = NULL;

	if (zip_open(q->wheel, a, &z, e) < 0 ||
	    member(z, "torch/share/cmake/Torch/TorchConfig.cmake", &text, e) < 0)
		return -1;
	if (!strstr(buf_cstr(&text), "_GLIBCXX_USE_CXX11_ABI=0"))
		return 0;
	err_set(e, ERR_POLICY,
		"'%s' uses the old libstdc++ ABI (_GLIBCXX_USE_CXX11_ABI=0), which "
		"no root provides",
		path_base(q->wheel));
	return err_hint(
		e, "official wheels have the new one from 2.7 on, and what ptbuild builds always");
}

/* Its settings keep GPU code out of a build for the CPU, or its source has none. */
static bool is_for_the_cpu(const struct package_row *row)
{
	for (unsigned i = 0; i < row->settings_count; i++)
		if (row->settings[i].gpu && strcmp(row->settings[i].gpu, "cpu") == 0)
			return true;
	return row->gpu_code && !*row->gpu_code;
}

/* What a version of CUDA, or none, is for. */
static const char *device_text(const char *cuda, struct arena *a)
{
	return cuda && *cuda ? arena_printf(a, "CUDA %s", cuda) : "the CPU";
}

static int check_cuda(const struct torch_asked *q, struct arena *a, struct err *e)
{
	const struct plan *p = q->plan;
	const char *has = q->cuda, *wheel = q->wheel;
	bool same = false;

	if (!has && torch_cuda(wheel, a, &has, e) < 0)
		return -1;
	if (!has || *has == '-')
		return 0;
	if (!p->cuda && !*has)
		return 0;
	const char *range = p->cuda ? arena_printf(a, "==%s.*", p->cuda) : NULL;
	if (range && version_in(has, range, &same, ERR_IGNORED) == 0 && same)
		return 0;
	const bool extension = plan_is_extension(p);
	if (extension && !p->cuda && is_for_the_cpu(p->package_row))
		return 0;
	const char *own = device_text(has, a), *wanted = device_text(p->cuda, a);
	err_set(e, ERR_POLICY, "'%s' is for %s, but the build is for %s", path_base(wheel), own,
		wanted);
	if (extension && !p->cuda)
		return err_hint(e,
				"%s has GPU code%s%s: use a profile with GPU targets, such as "
				"sm90-avx2, and --cuda "
				"%.4s, or a torch for the CPU",
				p->package, p->package_row->gpu_code ? ", as " : "",
				p->package_row->gpu_code ? p->package_row->gpu_code : "", has);
	if (!extension && p->cuda)
		return err_hint(e, "give a torch for that toolkit with --torch, or build for the "
				   "torch's with --cuda");
	return *has ? err_hint(e,
			       "use a profile with GPU targets, such as sm90-avx2, and --cuda "
			       "%.4s, or a torch for the CPU",
			       has)
		    : err_hint(e, "use a profile without GPU, such as cpu-avx2, or give a torch "
				  "for CUDA");
}

static const char *package_of(const struct toolkit_row *k, const char *library)
{
	for (unsigned i = 0; i < k->libraries_count; i++)
		if (strings_match(k->libraries[i].names, k->libraries[i].names_count, library))
			return k->libraries[i].package;
	return NULL;
}

static int check_root(const struct torch_asked *q, struct arena *a, struct err *e)
{
	const struct plan *p = q->plan;
	const struct root *root = q->root;
	struct strlist needed = {0}, dirs = {0}, missing = {0};
	const struct toolkit *toolkit = p->torch_toolkit;
	/* of a plan with CUDA the root was asked for its toolkit */
	const bool asked = toolkit || !p->cuda;

	if (!q->unpacked || !asked || !p->torch_toolkit_row)
		return 0;
	if (cuda_needed(path_join(a, q->unpacked, "torch/lib"), a, &needed, e) < 0 ||
	    root_library_dirs(root, a, &dirs, e) < 0)
		return -1;
	if (toolkit)
		strlist_append(&dirs, a, &toolkit->library_dirs);
	for (size_t i = 0; i < needed.count; i++) {
		const char *name = needed.items[i],
			   *package = package_of(p->torch_toolkit_row, name);
		const char *found = NULL;
		for (size_t k = 0; k < dirs.count && package && !found; k++)
			if (root_find(root, path_join(a, dirs.items[k], name), a, &found, e) < 0)
				return -1;
		if (package && !found)
			strlist_addf(&missing, a, "%s (%s)", name, package);
	}

	if (!missing.count)
		return 0;
	err_set(e, ERR_SYSTEM, "the torch cannot be imported in the root '%s', which lacks %s",
		root->dir, strlist_join(&missing, a, ", "));
	return err_hint(e,
			"install what is missing there, or build without --root: worlds have it");
}

static int refuse_gpu(const struct fatbin_entries *all, const char *gpu, struct arena *a,
		      struct err *e)
{
	struct strlist have = {0};

	for (size_t i = 0; i < all->count; i++) {
		const struct fatbin_entry *en = &all->items[i];
		strlist_once(&have, a,
			     arena_printf(a, "%s%s", en->kind == FATBIN_PTX ? "PTX " : "sm",
					  en->target));
	}

	err_set(e, ERR_POLICY, "the torch has no code that runs on %s: it has %s", gpu,
		strlist_join(&have, a, ", "));
	return err_hint(e, "choose GPU targets that the torch has, or another torch");
}

/* The GPU code in a wheel's libtorch_cuda.so, which is too large for a buffer that grows. */
static int read_kinds(const char *wheel, struct arena *a, struct fatbin_entries *ret, struct err *e)
{
	AUTO_MAPPING struct fs_mapping m = {0};
	AUTO_ZIP struct zip_reader *z = NULL;

	if (zip_open(wheel, a, &z, e) < 0)
		return -1;
	const struct zip_entry *en = zip_find(z, "torch/lib/libtorch_cuda.so");
	if (!en)
		return 0;
	AUTO_FD int fd = os_memory_file();
	if (fd < 0)
		return err_errno(e, ERR_SYSTEM, "no memory for '%s'", en->name);
	if (zip_extract_fd(z, en, fd, NULL, e) < 0 ||
	    fs_map(arena_printf(a, "/dev/fd/%d", fd), &m, e) < 0)
		return -1;
	return fatbin_scan(&(struct file_bytes){m.data, m.size, "libtorch_cuda.so"}, a, ret, e);
}

static int check_gpus(const struct torch_asked *q, struct arena *a, struct err *e)
{
	const struct plan *p = q->plan;
	struct fatbin_entries all = {0};

	if (!p->gpu.count)
		return 0;
	if (read_kinds(q->wheel, a, &all, e) < 0)
		return -1;
	bool *keep = arena_array(a, all.count + 1, sizeof(*keep));
	for (size_t i = 0; i < p->gpu.count && all.count; i++) {
		char *end;
		const unsigned long major = strtoul(p->gpu.items[i], &end, 10);
		const unsigned long minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
		const struct fatbin_gpu gpu = {(unsigned)(major * 10 + minor), false};
		const struct fatbin_wanted wanted = {.gpus = &gpu, .count = 1};
		bool runs = false;
		fatbin_choose(&(struct fatbin_choice){all.items, all.count, &wanted, keep, &runs});
		if (!runs)
			return refuse_gpu(&all, p->gpu.items[i], a, e);
	}

	return 0;
}

/* In the order in which they are asked. */
static const struct {
	enum torch_need need;
	bool extensions; /* of these alone */
	int (*check)(const struct torch_asked *q, struct arena *a, struct err *e);
} rows[] = {
	{TORCH_TAGS, true, check_tags},  {TORCH_ABI, true, check_abi},
	{TORCH_CUDA, false, check_cuda}, {TORCH_GPUS, true, check_gpus},
	{TORCH_ROOT, false, check_root},
};

int torch_fits(const struct torch_asked *q, unsigned needs, struct arena *a, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (!(needs & rows[i].need) || (rows[i].extensions && !plan_is_extension(q->plan)))
			continue;
		if (rows[i].check(q, a, e) < 0)
			return -1;
	}

	return 0;
}
