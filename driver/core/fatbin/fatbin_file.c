#include "core/fatbin/fatbin_file.h"

int fatbin_file_slim(const char *path, const char *name, int fd, const char *to, const struct fatbin_wanted *w,
		     struct arena *a, struct fatbin_file_cut *ret, struct err *e)
{
	AUTO_ELF_MAP struct elf_map before = {0};
	AUTO_ELF_MAP struct elf_map after = {0};
	struct fatbin_file_cut f = {.name = name};
	if (elf_map_open(path, &before, e) < 0)
		return err_wrap(e, "%s", name);
	before.name = name;
	/* What is told of it outlives the plan, whose patches may be many. */
	struct elf_cut cut = {.map = &before, .a = a};
	if (fatbin_cut_plan(&cut, w, &f.cut, e) < 0)
		return -1;
	f.before = before.size;
	f.after = cut.size;
	f.changed = cut.count > 0;
	if (f.changed) {
		if (elf_cut_write(&cut, fd, to, e) < 0 || elf_map_open(to, &after, e) < 0)
			return -1;
		after.name = name;
		if (fatbin_cut_prove(&before, &after, w, &f.cut, e) < 0)
			return err_wrap(e, "what was cut is not right, and is not used");
	}
	*ret = f;
	return 0;
}
