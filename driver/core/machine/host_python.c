#include "core/machine/host_python.h"

#include "base/sys/fs.h"
#include "base/sys/proc.h"
#include "core/machine/hardware.h"

enum { CONFIG_MAX = 64 << 10 };

static const char question[] =
	"import sys\n"
	"print('%d.%d%s' % (*sys.version_info[:2], 't' * ('t' in sys.abiflags)))\n";

/* "3.11" of "3.11.7", "3.11.7.final.0" and "3.11"; NULL where the text does not begin so. */
static const char *feature_version(const char *text, struct arena *a)
{
	const size_t major = strspn(text, "0123456789");
	const size_t minor = text[major] == '.' ? strspn(text + major + 1, "0123456789") : 0;

	if (!major || !minor || major + minor > 6)
		return NULL;
	const size_t end = major + 1 + minor;
	if (text[end] && !strchr(". \t\r\n", text[end]))
		return NULL;
	return arena_strndup(a, text, end);
}

/* venv writes "version = 3.11.7", virtualenv and uv "version_info = 3.11.7". */
static const char *config_version(const char *text, struct arena *a)
{
	struct strlist lines = {0};
	const char *found = NULL;

	strlist_split(&lines, a, text, "\r\n");
	for (size_t i = 0; i < lines.count && !found; i++) {
		const char *line = lines.items[i] + strspn(lines.items[i], " \t");
		const size_t n = strcspn(line, " \t=");
		const char *key = arena_strndup(a, line, n),
			   *value = line + n + strspn(line + n, " \t");
		if (*value != '=' ||
		    (strcmp(key, "version") != 0 && strcmp(key, "version_info") != 0))
			continue;
		value++;
		found = feature_version(value + strspn(value, " \t"), a);
	}

	return found;
}

static const char *venv_version(const char *dir, struct arena *a)
{
	AUTO_BUF struct buf text = {0};

	if (fs_read(TRUSTED, path_join(a, dir, "pyvenv.cfg"), CONFIG_MAX, &text, ERR_IGNORED) < 0)
		return NULL;
	return config_version(buf_cstr(&text), a);
}

static const char *ask(const char *program, const struct run *run, struct arena *a)
{
	AUTO_BUF struct buf out = {0};
	const char *const argv[] = {program, "-I", "-c", question, NULL};

	if (proc_capture(argv, run, &out, ERR_IGNORED) < 0)
		return NULL;
	return hardware_python_of(arena_printf(a, "python%s", buf_cstr(&out)));
}

void host_python(const struct run *run, struct arena *a, struct host_python *ret)
{
	const char *venv = getenv("VIRTUAL_ENV");

	*ret = (struct host_python){0};
	if (venv && *venv == '/')
		ret->version = venv_version(venv, a);
	if (ret->version) {
		ret->venv = arena_strdup(a, venv);
		return;
	}

	const char *program = proc_find_host(a, "python3");
	AUTO_FREE char *target = program ? realpath(program, NULL) : NULL;
	if (!target)
		return;
	const char *named = hardware_python_of(path_base(target));
	ret->version = named ? arena_strdup(a, named) : ask(program, run, a);
}
