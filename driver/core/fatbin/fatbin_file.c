#include "core/fatbin/fatbin_file.h"

#include <string.h>

#include "base/path.h"
#include "core/fatbin/fatbin_boxes.h"

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
	f.blank = elf_cut_blank(&cut);
	f.changed = cut.count > 0;
	f.marks = elf_cut_marks(&cut, a, &f.marks_count);
	if (f.changed && fd >= 0) {
		if (elf_cut_write(&cut, fd, to, e) < 0 || elf_map_open(to, &after, e) < 0)
			return -1;
		after.name = name;
		if (fatbin_cut_prove(&before, &after, w, &f.cut, e) < 0)
			return err_wrap(e, "what was cut is not right, and is not used");
	}
	*ret = f;
	return 0;
}

static int stop(const struct fatbin_entry *entry, void *user, struct err *e)
{
	(void)entry;
	(void)user;
	(void)e;
	return 1;
}

int fatbin_file_has(const char *path, const char *name, bool *ret_code, bool *ret_used, struct err *e)
{
	AUTO_ELF_MAP struct elf_map m = {0};
	AUTO_MAPPING struct fs_mapping file = {0};
	AUTO_ARENA struct arena a = {0};
	Elf64_Shdr *sections;
	size_t count;
	*ret_code = *ret_used = false;
	if (fs_map(path, &file, e) < 0)
		return -1;
	/* Text that links libraries, other machines' files. */
	if (file.size < EI_NIDENT || memcmp(file.data, ELFMAG, SELFMAG) != 0 || file.data[EI_CLASS] != ELFCLASS64 ||
	    file.data[EI_DATA] != ELFDATA2LSB)
		return 0;
	if (elf_map_memory(file.data, file.size, name, &m, e) < 0 || elf_sections(&m, &a, &sections, &count, e) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		*ret_code = *ret_code || fatbin_section(elf_section_name(&m, sections, count, i)) != FATBIN_NONE;
	if (!count) {
		int found = fatbin_scan(file.data, file.size, name, stop, NULL, e);
		if (found < 0)
			return -1;
		*ret_code = found > 0;
	}
	*ret_used = *ret_code || strncmp(path_base(name), "libtorch_", strlen("libtorch_")) == 0;
	return 0;
}
