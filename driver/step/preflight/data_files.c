/* The data files that were installed with the program, against the list made then
 * (driver/base/data_list.cmake). */
#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "step/preflight/preflight.h"

#define LIST "sha256sums"
#define LIST_MAX_BYTES (4u << 20)
#define SHOWN 3

/* Returns what is wrong with a file; NULL if nothing is. */
static const char *problem_of(const char *path, const char *digest)
{
	char is[DIGEST_HEX_LEN + 1];

	if (!fs_exists(TRUSTED, path))
		return "is missing";
	if (digest_file(path, is, ERR_IGNORED) < 0)
		return "cannot be read";
	return strcmp(is, digest) == 0 ? NULL : "was changed";
}

/* "DIGEST  NAME" */
static bool read_line(const char *line, struct arena *a, const char **digest, const char **name)
{
	if (strlen(line) < DIGEST_HEX_LEN + 3 || line[DIGEST_HEX_LEN] != ' ')
		return false;
	*digest = arena_strndup(a, line, DIGEST_HEX_LEN);
	*name = line + DIGEST_HEX_LEN + 2;
	return digest_valid_hex(*digest);
}

int preflight_data_files(const char *dir, struct arena *a, size_t *ret_count, struct err *e)
{
	static const char fix[] = "install ptbuild again";
	AUTO_BUF struct buf text = {0};
	struct strlist lines = {0}, broken = {0};
	struct err why = {0};
	size_t more = 0;

	if (fs_read(dir, LIST, LIST_MAX_BYTES, &text, &why) < 0) {
		err_set(e, ERR_INTEGRITY, "'%s' lacks the list of its files: %s", dir, why.msg);
		return err_hint(e, fix);
	}

	strlist_split(&lines, a, buf_cstr(&text), "\n");
	for (size_t i = 0; i < lines.count; i++) {
		const char *digest, *name;
		if (!read_line(lines.items[i], a, &digest, &name)) {
			err_set(e, ERR_INTEGRITY, "'%s/%s' is not a list of digests", dir, LIST);
			return err_hint(e, fix);
		}

		const char *problem = problem_of(path_join(a, dir, name), digest);
		if (problem && broken.count < SHOWN)
			strlist_addf(&broken, a, "'%s' %s", name, problem);
		else if (problem)
			more++;
	}

	*ret_count = lines.count;
	if (!broken.count)
		return 0;
	if (more)
		strlist_addf(&broken, a, "%zu more", more);
	err_set(e, ERR_INTEGRITY, "ptbuild's own files in '%s' are not as installed: %s", dir,
		strlist_join(&broken, a, ", "));
	return err_hint(e, fix);
}
