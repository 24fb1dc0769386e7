#include "base/sys/proc.h"

enum { REASON_MAX = 1000, LINE_MAX_READ = 4000 };

void python_module(const char *python, const char *module, struct arena *a, struct strlist *argv)
{
	const char *const words[] = {python, "-I", "-m", module};
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		strlist_add(argv, a, words[i]);
}

static int no_pip(const char *hint, struct err *e)
{
	err_set(e, ERR_NETWORK, "no pip on this machine to ask the Python index with");
	return err_hint(e, "%s", hint);
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

	return no_pip(hint, e);
}

bool pip_missing(const struct buf *output, const char *hint, struct err *e)
{
	return strstr(buf_cstr(output), ": No module named pip") && no_pip(hint, e) < 0;
}

/* REASON of "NewConnectionError('<... object at 0x7f>:
 * REASON')" or "ReadTimeoutError(\"Pool(host='x'): REASON\")";
 * without an object in front the first quoted text. */
static char *connection_reason(const char *text, struct arena *a)
{
	const char *object = strstr(text, ">: "), *call = strstr(text, "): ");
	const char *at = object && (!call || object < call) ? object : call,
		   *open = strchr(text, '(');

	if (!at) {
		const char *quoted = open && open[1] ? open + 2 : text;
		return arena_strndup(a, quoted, strcspn(quoted, "\"'"));
	}

	const char *single = strstr(at, "')"), *twofold = strstr(at, "\")"),
		   *end = single ? single : twofold;
	end = single && twofold && twofold < single ? twofold : end;
	return arena_strndup(a, at + 3, end ? (size_t)(end - at - 3) : strlen(at + 3));
}

/* pip prints a failed connection as a Python object; only the reason inside is of use. */
static const char *readable(const char *line, struct arena *a)
{
	static const char broken[] = "after connection broken by ";

	line = strlen(line) > LINE_MAX_READ ? arena_strndup(a, line, LINE_MAX_READ) : line;
	const char *at = strstr(line, broken), *object = strstr(line, " object at 0x");
	if (at)
		return arena_printf(a, "the connection failed: %s",
				    connection_reason(at + strlen(broken), a));
	if (!object)
		return line;
	const char *from = object, *to = strchr(object, '>');
	while (from > line && *from != '<')
		from--;
	to = to ? to + 1 + strspn(to + 1, ": ") : object + strlen(object);
	return readable(arena_printf(a, "%.*s%s", (int)(from - line), line, to), a);
}

/* What a warning means for the user, in a sentence; "": no more than it says. */
static const char *cause_of(const char *warning)
{
	static const struct {
		const char *words, *cause;
	} known[] = {
		{"name resolution",
		 "name resolution failed, so there is no network or name server"},
		{"Name or service not known",
		 "name resolution failed, so there is no network or name server"},
		{"Network is unreachable", "there is no network"},
		{"Connection refused", "the index or the proxy refuses the connection"},
	};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (strstr(warning, known[i].words))
			return known[i].cause;
	return "";
}

char *pip_reason(struct arena *a, const struct buf *output)
{
	AUTO_BUF struct buf errors = {0};
	struct strlist lines = {0};
	const char *warning = "the index has no page of it, or it could not be read";
	const char *cause = "";

	strlist_split(&lines, a, buf_cstr(output), "\n\r");
	for (size_t i = 0; i < lines.count && errors.len < REASON_MAX; i++)
		if (strncmp(lines.items[i], "ERROR: ", 7) == 0) {
			buf_printf(&errors, "%s%s", errors.len ? "; " : "",
				   readable(lines.items[i] + 7, a));
		} else if (strncmp(lines.items[i], "WARNING: ", 9) == 0) {
			warning = readable(lines.items[i] + 9, a);
			cause = cause_of(lines.items[i]);
		}
	/* pip reports a page that it could not read like this. */
	if (strstr(buf_cstr(&errors), "(from versions: none)"))
		buf_printf(&errors, "; %.500s", warning);
	else
		cause = "";
	if (*cause)
		return arena_printf(a, "%s; pip: %s", cause, buf_cstr(&errors));
	if (!errors.len)
		buf_printf(&errors, "%.1000s",
			   lines.count ? readable(lines.items[lines.count - 1], a)
				       : "it gave no reason");
	return arena_strdup(a, buf_cstr(&errors));
}
