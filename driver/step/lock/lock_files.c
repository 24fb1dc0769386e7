#include "step/lock/lock_make.h"

#include "base/sys/digest.h"
#include "core/wheel/wheel.h"

#define PATH_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-/"
#define VERSION_CHARACTERS "abcdefghijklmnopqrstuvwxyz0123456789.-+"

/* NVIDIA's names: sbsa are Arm servers; its "linux-aarch64" are Tegra boards. */
static const struct {
	const char *platform, *redist;
} platforms[] = {{"x86_64-linux", "linux-x86_64"}, {"aarch64-linux", "linux-sbsa"}};

/* "manylinux_2_27_x86_64" is for "x86_64-linux", from glibc 2.27 on: *ret_glibc
 * is 27, of several tags the lowest, and 0 of a wheel for every platform. */
static bool tag_fits(const char *tags, const char *platform, struct arena *a, unsigned *ret_glibc)
{
	bool fits = false;
	const char *suffix = arena_printf(a, "_%.*s", (int)strcspn(platform, "-"), platform);
	struct strlist all = {0};

	*ret_glibc = 0;
	if (strcmp(tags, "any") == 0)
		return true;
	strlist_split(&all, a, tags, ".");
	for (size_t i = 0; i < all.count; i++) {
		unsigned glibc = manylinux_glibc(all.items[i]);
		if (!glibc || !path_has_suffix(all.items[i], suffix))
			continue;
		if (!fits || glibc < *ret_glibc)
			*ret_glibc = glibc;
		fits = true;
	}

	return fits;
}

int lock_wheel(const char *asked, const char *python, const char *abi, const char *platform,
	       const struct wheel_listed *files, size_t count, struct arena *a,
	       struct world_entry *ret, struct err *e)
{
	AUTO_ARENA struct arena scratch = {0};
	const struct wheel_listed *found = NULL;
	const char *version, *name = text_pin(asked, a, &version);

	if (!version || !*name || !*version) {
		err_set(e, ERR_CONFIG, "not a wheel with its version: '%s'", asked);
		return err_hint(e, "write it as NAME==VERSION");
	}

	/* A part is used with any base: of several wheels choose the one that runs with the oldest
	 * glibc. */
	unsigned glibc, lowest = 0;
	for (size_t i = 0; i < count; i++) {
		struct wheel_name n;
		if (wheel_name_parse(files[i].name, &scratch, &n, ERR_IGNORED) < 0)
			continue;
		if (strcmp(wheel_normalize(n.dist, &scratch), wheel_normalize(name, &scratch)) != 0)
			continue;
		if (strcmp(n.version, version) != 0)
			continue;
		if (!path_has_suffix(n.python, python) || strcmp(n.abi, abi) != 0)
			continue;
		if (!tag_fits(n.platform, platform, &scratch, &glibc) || (found && glibc > lowest))
			continue;
		if (found && glibc == lowest)
			return err_set(e, ERR_NETWORK,
				       "the index has two wheels of %s for %s: '%s' and '%s'",
				       asked, platform, found->name, files[i].name);
		found = &files[i];
		lowest = glibc;
	}

	if (!found) {
		err_set(e, ERR_NETWORK, "the index has no wheel of %s for %s", asked, platform);
		return err_hint(e, "look at the versions that it has: pip index versions %s", name);
	}

	if (!digest_valid_hex(found->sha256) || !found->size)
		return err_set(e, ERR_NETWORK, "the index does not say sha256 and size of '%s'",
			       found->name);
	*ret = (struct world_entry){.kind = WORLD_WHEEL,
				    .name = name,
				    .version = arena_strdup(a, version),
				    .arch = "",
				    .sha256 = arena_strdup(a, found->sha256),
				    .place = arena_strdup(a, found->name),
				    .size = found->size};
	return 0;
}

static int bad(const char *url, struct err *e, const char *what, const char *component)
{
	err_set(e, ERR_NETWORK, "'%s' is not a manifest of CUDA's components: %s '%s'", url, what,
		component);
	return err_hint(e, "NVIDIA's are named redistrib_<version>.json");
}

/* A list of NVIDIA's archives. */
struct redist {
	const json_t *manifest;
	const char *url, *platform; /* as the list calls it */
};

static int read_component(const struct redist *r, const char *name, struct arena *a,
			  struct world_entry *ret, struct err *e)
{
	const char *url = r->url;
	const json_t *component = json_object_get(r->manifest, name),
		     *archive = json_object_get(component, r->platform);
	const char *version = json_member(component, "version");
	const char *path = json_member(archive, "relative_path");
	const char *sha256 = json_member(archive, "sha256");
	/* A size is a string of digits there. */
	const char *text = json_member(archive, "size");
	bool digits = text && *text && strlen(text) < 13 && !text[strspn(text, "0123456789")];
	uint64_t size = digits ? strtoull(text, NULL, 10) : 0;

	if (!component)
		return bad(url, e, "it has no", name);
	if (!archive) {
		err_set(e, ERR_NETWORK, "'%s' has no '%s' for %s", url, name, r->platform);
		return err_hint(e, "leave it out of the part's 'archives'");
	}

	if (!version || !*version || version[strspn(version, VERSION_CHARACTERS)])
		return bad(url, e, "it has no version of", name);
	if (!path || !path_is_safe_relative(path) || path[strspn(path, PATH_CHARACTERS)])
		return bad(url, e, "it has no path of", name);
	if (!sha256 || !digest_valid_hex(sha256) || !size)
		return bad(url, e, "it has no sha256 and size of", name);
	*ret = (struct world_entry){.kind = WORLD_FILE,
				    .name = arena_strdup(a, name),
				    .version = arena_strdup(a, version),
				    .arch = "",
				    .sha256 = arena_strdup(a, sha256),
				    .place = arena_printf(a, "%s/%s", path_dir(a, url), path),
				    .size = size};
	return 0;
}

int lock_redist(const char *text, size_t len, const char *url, const char *const *components,
		size_t count, const char *platform, struct arena *a, struct world_entry **ret,
		struct err *e)
{
	json_error_t why;
	const char *key = NULL;
	AUTO_JSON json_t *manifest = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
	struct world_entry *entries = arena_array(a, count + 1, sizeof(*entries));

	for (size_t i = 0; i < ARRAY_LEN(platforms); i++)
		if (strcmp(platforms[i].platform, platform) == 0)
			key = platforms[i].redist;
	if (!key)
		return err_set(e, ERR_CONFIG, "NVIDIA has no archives for the platform '%s'",
			       platform);
	if (!json_is_object(manifest))
		return bad(url, e, "it cannot be read:", manifest ? "not an object" : why.text);
	const struct redist r = {manifest, url, key};
	for (size_t i = 0; i < count; i++)
		if (read_component(&r, components[i], a, &entries[i], e) < 0)
			return -1;
	*ret = entries;
	return 0;
}

void lock_replace(struct world_lock *l, enum world_kind kind, const struct world_entry *entries,
		  size_t count, struct arena *a)
{
	struct world_entry *all = arena_array(a, l->count + count + 1, sizeof(*all));
	size_t n = 0;

	for (size_t i = 0; i < l->count; i++)
		if (l->entries[i].kind != kind)
			all[n++] = l->entries[i];
	for (size_t i = 0; i < count; i++)
		all[n++] = entries[i];
	l->entries = all;
	l->count = n;
}
