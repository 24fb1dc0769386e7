#include "base/sys/build_user.h"
#include "base/sys/json.h"
#include "core/root/landlock_init.h"
#include "core/root/sandbox_parts.h"

static const char *const names[SANDBOX_PROTECTIONS] = {
	[PROTECTION_USER] = "user",           [PROTECTION_SECCOMP] = "seccomp",
	[PROTECTION_KEYRING] = "keyring",     [PROTECTION_PROC] = "proc",
	[PROTECTION_SETUID] = "setuid",       [PROTECTION_LIMITS] = "limits",
	[PROTECTION_LANDLOCK] = "landlock",   [PROTECTION_PACKAGES] = "packages",
	[PROTECTION_PROCESSES] = "processes",
};

bool sandbox_protection(const struct run *run, enum sandbox_protection protection)
{
	return !(run->without_protections & (1U << protection));
}

int sandbox_protections_parse(const struct strlist *asked, unsigned *ret, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct strlist all = {0};

	strlist_refs(&all, &a, names, SANDBOX_PROTECTIONS);
	*ret = 0;
	for (size_t i = 0; i < asked->count; i++) {
		size_t k = 0;
		while (k < SANDBOX_PROTECTIONS && strcmp(asked->items[i], names[k]) != 0)
			k++;
		if (k == SANDBOX_PROTECTIONS) {
			err_set(e, ERR_USAGE, "unknown protection '%s'", asked->items[i]);
			return err_hint(e, "--without-protection accepts: %s",
					strlist_join(&all, &a, " "));
		}

		*ret |= 1U << k;
	}

	return 0;
}

const char *sandbox_text(enum sandbox_kind kind, unsigned without, struct arena *a)
{
	struct strlist list = {0};

	for (size_t k = 0; k < SANDBOX_PROTECTIONS; k++)
		if (without & (1U << k))
			strlist_ref(&list, a, names[k]);
	return list.count ? arena_printf(a, "%s without %s", sandbox_kind_name(kind),
					 strlist_join(&list, a, ", "))
			  : sandbox_kind_name(kind);
}

static const char *user_text(bool *ret, struct arena *a)
{
	static const char *const texts[] = {
		[BUILD_USER_SELF] = "builds run as the user who started ptbuild, which is not root",
		[BUILD_USER_MAPPED] = "root here is an ordinary user of the machine",
		[BUILD_USER_OWN] = "builds run as user %d, not as root",
		[BUILD_USER_MISSING] = "builds would run as root: the namespace has no user %d",
	};
	enum build_user_state state = build_user_state();

	*ret = state != BUILD_USER_MISSING;
	const char *at = strstr(texts[state], "%d");
	return at ? arena_printf(a, "%.*s%d%s", (int)(at - texts[state]), texts[state], BUILD_USER,
				 at + 2)
		  : texts[state];
}

static const char *way_text(bool *ret, struct arena *a)
{
	static const char *const texts[] = {
		[SANDBOX_WAY_USER] = "a user namespace of its own",
		[SANDBOX_WAY_PRIVILEGED] =
			"a user namespace of its own, created with root privileges: users may not "
			"create one",
		[SANDBOX_WAY_NO_USER] =
			("no user namespace, which this kernel refuses; the others are created "
			 "with root privileges"),
	};
	struct stat st;
	const char *bwrap = proc_find_host(a, "bwrap");
	bool setuid = bwrap && geteuid() != 0 && stat(bwrap, &st) == 0 && (st.st_mode & S_ISUID);
	uid_t user = build_user_state() == BUILD_USER_OWN ? BUILD_USER : geteuid();
	enum sandbox_way way = sandbox_way(user, setuid);

	*ret = way != SANDBOX_WAY_NO_USER;
	return texts[way];
}

static const char *limits_text(const struct run *run, struct arena *a)
{
	const struct run_limits l = sandbox_limits(run);
	const unsigned long long mib = 1 << 20;
	const char *disk =
		l.disk ? arena_printf(a, "%llu MiB of disk, ", (unsigned long long)l.disk / mib)
		       : "";

	return arena_printf(a,
			    "%llu processes, %llu MiB of memory, %s%llu MiB of output, %llu s of "
			    "silence, %llu s in all",
			    (unsigned long long)l.processes, (unsigned long long)l.memory / mib,
			    disk, (unsigned long long)l.log / mib, (unsigned long long)l.silence,
			    (unsigned long long)l.time);
}

static const char *landlock_text(bool *ret, struct arena *a)
{
	int version = landlock_version();

	*ret = version > 0;
	return version ? arena_printf(a,
				      "only the build's own directories are writable (Landlock %d)",
				      version)
		       : "this kernel has no Landlock, or an old one: files are kept by mounts "
			 "alone";
}

size_t sandbox_protections_look(enum sandbox_kind kind, const struct run *run, struct arena *a,
				const struct sandbox_protection_state **ret)
{
	struct sandbox_protection_state *w = arena_array(a, SANDBOX_PROTECTIONS + 2, sizeof(*w));
	size_t n = 0;

	*ret = w;
	if (kind == SANDBOX_NONE)
		return 0;
	w[n] = (struct sandbox_protection_state){"name-spaces", true, ""};
	w[n].text = way_text(&w[n].stands, a);
	n++;
	const struct sandbox_protection_state all[SANDBOX_PROTECTIONS] = {
		[PROTECTION_USER] = {NULL, true, ""},
		[PROTECTION_SECCOMP] = {NULL, seccomp_works(),
					seccomp_works() ? "a filter of system calls"
							: "this kernel has no filters"},
		[PROTECTION_KEYRING] = {NULL, true, "a session keyring of its own"},
		[PROTECTION_PROC] = {NULL, true, "/proc and /dev are read-only"},
		[PROTECTION_SETUID] = {NULL, true, "setuid bits are dropped"},
		[PROTECTION_LIMITS] = {NULL, true, limits_text(run, a)},
		[PROTECTION_LANDLOCK] = {NULL, true, ""},
		[PROTECTION_PACKAGES] =
			{NULL, true,
			 "libraries that go into a wheel belong to packages of the root"},
		[PROTECTION_PROCESSES] = {NULL, true, "/proc lists only the build's own processes"},
	};
	for (size_t k = 0; k < SANDBOX_PROTECTIONS; k++, n++) {
		w[n] = all[k];
		w[n].name = names[k];
		if (k == PROTECTION_USER)
			w[n].text = user_text(&w[n].stands, a);
		if (k == PROTECTION_LANDLOCK)
			w[n].text = landlock_text(&w[n].stands, a);
		if (!sandbox_protection(run, (enum sandbox_protection)k)) {
			w[n].stands = false;
			w[n].text = "turned off with --without-protection";
		}
	}

	return n;
}

json_t *sandbox_protections_json(enum sandbox_kind kind, const struct run *run)
{
	AUTO_ARENA struct arena a = {0};
	const struct sandbox_protection_state *w;
	json_t *out = json_object();
	size_t count = sandbox_protections_look(kind, run, &a, &w);

	for (size_t i = 0; i < count; i++)
		json_object_set_new(out, w[i].name,
				    json_pack("{s:b, s:o}", "stands", w[i].stands, "text",
					      json_or_null(w[i].text)));
	return out;
}
