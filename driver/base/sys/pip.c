#include "base/sys/proc.h"

enum { REASON_MAX = 1000 };

void python_module(const char *python, const char *module, struct arena *a, struct strlist *argv)
{
	const char *const words[] = {python, "-I", "-m", module};
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		strlist_add(argv, a, words[i]);
}

int pip_find(struct arena *a, struct strlist *argv, const char *hint, struct err *e)
{
	static const char *const names[] = {"pip3", "pip", "python3"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const char *path = proc_find(a, names[i]);
		if (!path)
			continue;
		if (strcmp(names[i], "python3") == 0)
			python_module(path, "pip", a, argv);
		else
			strlist_ref(argv, a, path);
		return 0;
	}
	err_set(e, ERR_NETWORK, "no pip on this machine to ask the Python index with");
	return err_hint(e, "%s", hint);
}

char *pip_reason(struct arena *a, const struct buf *output)
{
	AUTO_BUF struct buf errors = {0};
	struct strlist lines = {0};
	const char *warning = "the index has no page of it, or it could not be read";
	strlist_split(&lines, a, buf_cstr(output), "\n\r");
	for (size_t i = 0; i < lines.count && errors.len < REASON_MAX; i++)
		if (strncmp(lines.items[i], "ERROR: ", 7) == 0)
			buf_printf(&errors, "%s%s", errors.len ? "; " : "", lines.items[i] + 7);
		else if (strncmp(lines.items[i], "WARNING: ", 9) == 0)
			warning = lines.items[i] + 9;
	/* So pip tells a page that it could not read. */
	if (strstr(buf_cstr(&errors), "(from versions: none)"))
		buf_printf(&errors, "; %.500s", warning);
	if (!errors.len)
		buf_printf(&errors, "%.1000s", lines.count ? lines.items[lines.count - 1] : "it gave no reason");
	return arena_strdup(a, buf_cstr(&errors));
}
