#include "core/ci/ci_install.h"

#include "base/sys/digest.h"

#define PIP "/opt/ptbuild/bin/pip install --disable-pip-version-check --no-index --no-deps "
/* A place has no characters that a shell or pip reads. No name of a wheel follows '?' or '#', and a
 * password may precede '@'. */
#define PLAIN "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.,+/:%~=-"

static bool is_url(const char *place)
{
	return strncmp(place, "https://", 8) == 0 || strncmp(place, "http://", 7) == 0;
}

/* Below the directory that holds it. */
static bool is_inside(const char *path)
{
	const bool up = strncmp(path, "../", 3) == 0 || strstr(path, "/../");
	return *path != '/' && *path != '-' && !up && !strstr(path, "://");
}

/* By the end of a wheel's name, as "-manylinux_2_31_x86_64.whl"; NULL: no wheel of ptbuild. */
static const char *platform_of(const char *name)
{
	static const struct {
		const char *end, *platform;
	} machines[] = {{"_x86_64.whl", "x86_64-linux"}, {"_aarch64.whl", "aarch64-linux"}};

	for (size_t i = 0; i < ARRAY_LEN(machines); i++)
		if (strncmp(name, "ptbuild-", 8) == 0 && path_has_suffix(name, machines[i].end))
			return machines[i].platform;
	return NULL;
}

int ci_wheel_read(const char *text, struct arena *a, struct ci_wheel *ret, struct err *e)
{
	const char *equals = strrchr(text, '=');
	struct ci_wheel w = {.place = text, .sha256 = equals ? equals + 1 : ""};

	if (!equals) {
		err_set(e, ERR_USAGE, "--ptbuild %s: the digest of the wheel is missing", text);
		return err_hint(e, "write --ptbuild URL=SHA256, or PATH=SHA256 for a file of the "
				   "repository");
	}

	w.place = arena_strndup(a, text, (size_t)(equals - text));
	if (!digest_valid_hex(w.sha256)) {
		err_set(e, ERR_USAGE, "--ptbuild %s: not a sha256: '%s'", w.place, w.sha256);
		return err_hint(e, "64 lower-case hex digits, as sha256sum prints them");
	}

	if (strspn(w.place, PLAIN) != strlen(w.place)) {
		err_set(e, ERR_USAGE, "--ptbuild '%s' cannot be written into a CI file", w.place);
		return err_hint(e,
				"only letters, digits and _.,+/:%%~=- can; a password or a query "
				"would be readable there");
	}

	w.here = !is_url(w.place);
	if (w.here && !is_inside(w.place)) {
		err_set(e, ERR_USAGE, "--ptbuild '%s': not a path in the repository", w.place);
		return err_hint(e, "name a file below this directory, or a URL of http or https");
	}

	w.platform = platform_of(path_base(w.place));
	if (!w.platform) {
		err_set(e, ERR_USAGE, "--ptbuild '%s': not the name of a wheel of ptbuild",
			w.place);
		return err_hint(e, "a release calls it "
				   "ptbuild-VERSION-py3-none-manylinux_2_31_MACHINE.whl, with "
				   "x86_64 or aarch64");
	}

	*ret = w;
	return 0;
}

const struct ci_wheel *ci_wheel_of(const struct ci_plan *p, const char *platform)
{
	for (size_t i = 0; i < p->wheels_count; i++)
		if (strcmp(p->wheels[i].platform, platform) == 0)
			return &p->wheels[i];
	return NULL;
}

bool ci_install_source(const struct ci_plan *p)
{
	return !p->image && !p->wheels_count;
}

bool ci_install_checkout(const struct ci_plan *p)
{
	for (size_t i = 0; i < p->wheels_count; i++)
		if (p->wheels[i].here)
			return true;
	return ci_install_source(p);
}

static void add_source(struct strlist *to, struct arena *a)
{
	static const char need_source[] = "test -x ci/install-packages || { echo \"no source of "
					  "ptbuild at the top of this repository: move this "
					  "file to ptbuild's, or write it with 'ptbuild matrix "
					  "--image IMAGE'\" >&2; exit 1; }";
	static const char *const lines[] = {
		"# The repository that has this file has ptbuild's source at its top.",
		need_source,
		"ci/install-packages",
		"cmake --preset release -DPTBUILD_TESTS=OFF",
		"cmake --build --preset release",
		"cmake --install build --prefix /usr/local"};

	strlist_refs(to, a, lines, ARRAY_LEN(lines));
}

/* pip compares the digest of what it downloads, and of no file. */
static const char *install_one(const struct ci_wheel *w, struct arena *a)
{
	if (!w->here)
		return arena_printf(a, PIP "'%s#sha256=%s'", w->place, w->sha256);
	return arena_printf(a, "echo '%s  %s' | sha256sum --check --strict; " PIP "'./%s'",
			    w->sha256, w->place, w->place);
}

static void add_wheels(const struct ci_plan *p, struct strlist *to, struct arena *a)
{
	const struct ci_tables *t = p->tables;
	struct strlist packages = {0}, cases = {0};

	strlist_refs(&packages, a, t->wheel_packages, t->wheel_packages_count);
	strlist_ref(to, a, "# A release of ptbuild, by the digest of its wheel.");
	strlist_ref(to, a, "apt-get -q update");
	strlist_addf(to, a,
		     "DEBIAN_FRONTEND=noninteractive apt-get -q install -y "
		     "--no-install-recommends %s",
		     strlist_join(&packages, a, " "));
	strlist_ref(to, a, "python3 -m venv /opt/ptbuild");
	for (size_t i = 0; i < p->wheels_count; i++) {
		const struct ci_wheel *w = &p->wheels[i];
		strlist_addf(&cases, a, "%.*s) %s ;;", (int)strcspn(w->platform, "-"), w->platform,
			     install_one(w, a));
	}

	strlist_addf(to, a, "case \"$(uname -m)\" in\n%s\nesac", strlist_join(&cases, a, "\n"));
	strlist_ref(to, a, "ln -s /opt/ptbuild/bin/ptbuild /usr/local/bin/ptbuild");
}

struct strlist ci_install(const struct ci_plan *p, struct arena *a)
{
	struct strlist out = {0};

	if (p->wheels_count)
		add_wheels(p, &out, a);
	else if (!p->image)
		add_source(&out, a);
	return out;
}
