#include "step/lock/lock_make.h"

#include <curl/curl.h>

#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "base/sys/proc.h"

#define DEBIAN_KEYRING "/usr/share/keyrings/debian-archive-keyring.gpg"

enum { RELEASE_MAX = 16 << 20, SAID_MAX = 6 };

/* What apt-get works with: nothing of this machine but how it reaches the network. */
static const char apt_conf[] =
	"Dir::State \"%1$s\";\nDir::State::status \"%1$s/status\";\nDir::Cache \"%1$s\";\n"
	"Dir::Etc::sourcelist \"%1$s/sources.list\";\nDir::Etc::sourceparts \"-\";\n"
	"Dir::Etc::preferences \"-\";\nDir::Etc::preferencesparts \"-\";\n"
	"#clear APT::Architectures;\nAPT::Architecture \"%2$s\";\nAPT::Architectures:: \"%2$s\";\n"
	"#clear APT::Update;\n#clear APT::Default-Release;\n#clear APT::NeverAutoRemove;\n"
	"APT::Update::Error-Mode \"any\";\nAPT::Install-Recommends \"0\";\n"
	"APT::Install-Suggests \"0\";\nAPT::Solver \"internal\";\nAPT::Sandbox::User \"root\";\n"
	"Acquire::ForceHash \"SHA256\";\nAcquire::Languages \"none\";\n"
	"Acquire::Check-Date \"1\";\nAcquire::Check-Valid-Until "
	"\"1\";\nAcquire::AllowInsecureRepositories \"0\";\n"
	"Acquire::AllowWeakRepositories \"0\";\nAPT::Get::AllowUnauthenticated \"0\";\n";

struct making {
	const struct lock_request *q;
	const struct run *run;
	struct arena *a;
	const char *dir;     /* apt's own */
	const char *address; /* as apt has it: "http://h/debian", "file:/srv/debian" */
	const char *release, *date;
};

static int write_text(const struct making *m, const char *name, const char *text, struct err *e)
{
	return fs_write(m->dir, name, text, strlen(text), 0644, e);
}

/* What apt-get says of a failure: its errors and warnings, else its last words. */
static const char *said(const struct making *m, const struct buf *out, const struct buf *words)
{
	struct strlist lines = {0}, kept = {0};

	strlist_split(&lines, m->a, buf_cstr(words), "\n");
	strlist_split(&lines, m->a,
		      strstr(buf_cstr(out), "unmet dep") ? strstr(buf_cstr(out), "unmet dep") : "",
		      "\n");
	for (size_t i = 0; i < lines.count && kept.count < SAID_MAX; i++)
		if (!strlist_contains(&kept, lines.items[i]) &&
		    strncmp(lines.items[i], "N: ", 3) != 0 &&
		    !strstr(lines.items[i], " - DirectoryExists "))
			strlist_ref(&kept, m->a, lines.items[i] + strspn(lines.items[i], " "));
	return kept.count ? strlist_join(&kept, m->a, "; ") : "it says nothing";
}

static int run_apt(const struct making *m, struct strlist *words, struct buf *out,
		   struct buf *errors, int *ret_status, struct err *e)
{
	struct strlist argv = {0};
	struct proc_result result;

	if (!proc_find(m->a, "apt-get")) {
		err_set(e, ERR_SYSTEM,
			"no apt-get is on this machine to choose the packages of '%s'",
			m->q->part->part);
		return err_hint(e,
				"install the package 'apt', or name a snapshot that has those of "
				"the lock: --archive "
				"%s-snapshot=URL",
				m->q->archive);
	}

	strlist_split(&argv, m->a, "env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get -c", " ");
	strlist_ref(&argv, m->a, path_join(m->a, m->dir, "apt.conf"));
	strlist_append(&argv, m->a, words);
	const struct proc_spec spec = {.argv = strlist_argv(&argv, m->a),
				       .out = out,
				       .err = errors,
				       .cwd = m->dir,
				       .answer = true};
	if (proc_run(&spec, m->run, &result, e) < 0)
		return -1;
	if (result.status && proc_no_space("apt-get", m->dir, buf_cstr(errors), e))
		return -1;
	*ret_status = result.status;
	return 0;
}

/* apt puts an InRelease in its place only when a key of the keyring signed it. */
static int update(const struct making *m, const char **ret_release, struct err *e)
{
	AUTO_BUF struct buf out = {0}, AUTO_BUF errors = {0};
	struct strlist words = {0}, names = {0};
	const char *lists = path_join(m->a, m->dir, "lists");
	int status;

	strlist_split(&words, m->a, "update -q=2", " ");
	if (run_apt(m, &words, &out, &errors, &status, e) < 0 ||
	    fs_list(TRUSTED, lists, m->a, &names, e) < 0)
		return -1;
	for (size_t i = 0; status == 0 && i < names.count; i++)
		if (path_has_suffix(names.items[i], "_InRelease")) {
			*ret_release = path_join(m->a, lists, names.items[i]);
			return 0;
		}
	const char *text = said(m, &out, &errors);
	bool doubtful =
		strstr(text, "Hash Sum") || strstr(text, "signature") || strstr(text, "not signed");
	if (!doubtful &&
	    (strstr(text, "Failed to fetch") || strstr(text, "does not have a Release file"))) {
		err_set(e, ERR_NETWORK, "apt-get cannot read the index of '%s': %s",
			m->q->part->suite, text);
		return err_hint(e, "name another address with --archive %s=URL", m->q->archive);
	}

	if (strstr(text, "expired"))
		err_set(e, ERR_INTEGRITY, "the index of '%s' in the archive '%s' has expired: %s",
			m->q->part->suite, m->q->archive, text);
	else
		err_set(e, ERR_INTEGRITY,
			"the signature of 'InRelease' is not good by the keyring: %s", text);
	return err_hint(e,
			"a newer keyring may have the key: install debian-archive-keyring, or name "
			"one with --keyring "
			"FILE; or the address is of a mirror that stands still: --archive %s=URL "
			"names another",
			m->q->archive);
}

/* The value of a field of one line; "" without it. */
static const char *field(const char *text, const char *name, struct arena *a)
{
	const char *at = strstr(text, arena_printf(a, "\n%s: ", name));
	at = at ? at + strlen(name) + 3 : "";
	return arena_strndup(a, at, strcspn(at, "\r\n"));
}

static int read_release(struct making *m, const char *path, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	char sha256[DIGEST_HEX_LEN + 1];
	const struct world_lock *before = m->q->before;
	const char *wanted = m->q->part->suite;

	if (fs_read(TRUSTED, path, RELEASE_MAX, &text, e) < 0 || digest_file(path, sha256, e) < 0)
		return -1;
	const char *suite = field(buf_cstr(&text), "Suite", m->a),
		   *codename = field(buf_cstr(&text), "Codename", m->a);
	time_t at = curl_getdate(field(buf_cstr(&text), "Date", m->a), NULL);
	if (at < 0)
		return err_set(e, ERR_INTEGRITY, "the index of '%s' has no date", wanted);
	const char *date = size_utc(at, m->a);
	if (strcmp(suite, wanted) != 0 && strcmp(codename, wanted) != 0)
		return err_set(e, ERR_INTEGRITY,
			       "the archive '%s' answers for '%s' with the suite '%s' (%s)",
			       m->q->archive, wanted, suite, codename);
	if (before && before->suite && strcmp(before->suite, wanted) == 0 &&
	    strcmp(date, before->date) < 0) {
		err_set(e, ERR_INTEGRITY,
			"the index of '%s' in the archive '%s' is of %s, older than that of the "
			"lock (%s)",
			wanted, m->q->archive, date, before->date);
		return err_hint(e,
				"its address may be of a mirror that stands still: name another "
				"with --archive %s=URL",
				m->q->archive);
	}

	m->release = arena_strdup(m->a, sha256);
	m->date = arena_strdup(m->a, date);
	return 0;
}

static const char *unescaped(const char *s, struct arena *a)
{
	char *plain = curl_easy_unescape(NULL, s, 0, NULL);
	const char *out = arena_strdup(a, plain ? plain : "");

	curl_free(plain);
	return out;
}

/* Whether a quoted URI is below an address. */
static bool is_below(const char *quoted, const char *address)
{
	const size_t len = strlen(address);
	return *quoted == '\'' && strncmp(quoted + 1, address, len) == 0 && quoted[len + 1] == '/';
}

/* 'URI' NAME_VERSION_ARCH.deb SIZE SHA256:HEX; world_lock_write has the rules for what is in it. */
static int parse_line(const struct making *m, const char *line, struct world_entry *ret,
		      struct err *e)
{
	struct strlist words = {0}, parts = {0};
	size_t len = strlen(m->address);

	strlist_split(&words, m->a, line, " ");
	strlist_split(&parts, m->a, words.count == 4 ? words.items[1] : "", "_");
	const bool names_deb = parts.count == 3 && path_has_suffix(parts.items[2], ".deb");
	const bool is_from_archive = names_deb && is_below(words.items[0], m->address);
	if (!is_from_archive || strncmp(words.items[3], "SHA256:", 7) != 0)
		return err_set(e, ERR_INTEGRITY,
			       "apt-get says of a package neither place nor sha256: %.200s", line);
	const char *place = words.items[0] + len + 2;
	*ret = (struct world_entry){
		.kind = WORLD_DEB,
		.name = parts.items[0],
		.version = unescaped(parts.items[1], m->a),
		.arch = arena_strndup(m->a, parts.items[2], strlen(parts.items[2]) - 4),
		.sha256 = words.items[3] + 7,
		.place = unescaped(arena_strndup(m->a, place, strcspn(place, "'")), m->a),
		.size = strtoull(words.items[2], NULL, 10)};
	return 0;
}

/* The base decides: the toolkit's packages meet the base
 * as it is locked, not as the archive would make it today. */
static int check_base(const struct lock_request *q, const struct world_entry *p, bool *ret_in_base,
		      struct err *e)
{
	const struct world_entry *in_base =
		q->base_lock ? world_lock_find(q->base_lock, WORLD_DEB, p->name) : NULL;

	*ret_in_base = in_base != NULL;
	if (!in_base || strcmp(in_base->version, p->version) == 0)
		return 0;
	err_set(e, ERR_CONFIG, "the lock of '%s' has '%s' %s, the archive %s", q->base_lock->part,
		p->name, in_base->version, p->version);
	return err_hint(e, "make the base's lock first: ptbuild world lock %s", q->base_lock->part);
}

static int choose(const struct making *m, struct world_lock *out, struct err *e)
{
	AUTO_BUF struct buf text = {0}, AUTO_BUF errors = {0};
	struct strlist words = {0}, lines = {0};
	const struct world_lock *before = m->q->before;
	int status;
	/* The packages in the order of the table, by which apt chooses between
	 * those that provide the same; and those that the suite marks essential,
	 * but apt itself, which builds have no use for. */
	const struct world_part *p = m->q->part, *base = m->q->base;

	/* A cross part has these packages alone: their libraries for the target are the base's. */
	const bool alone = strcmp(p->kind, "cross") == 0;
	strlist_split(&words, m->a,
		      alone ? "download -q=1 --print-uris --" : "install -q=1 -y --print-uris --",
		      " ");
	strlist_refs(&words, m->a, p->packages, p->packages_count);
	if (base)
		strlist_refs(&words, m->a, base->packages, base->packages_count);
	if (base || strcmp(p->kind, "base") == 0)
		strlist_addf(&words, m->a,
			     "?or(?exact-name(%s),?and(?essential,?not(?exact-name(apt))))",
			     p->packages[0]);
	if (run_apt(m, &words, &text, &errors, &status, e) < 0)
		return -1;
	if (status != 0) {
		err_set(e, ERR_CONFIG, "%s: apt-get cannot have the packages together: %s",
			m->q->part->part, said(m, &text, &errors));
		return err_hint(e,
				"change the part's list of packages, its components or its suite");
	}

	strlist_split(&lines, m->a, buf_cstr(&text), "\n");
	out->entries = arena_array(m->a, lines.count + (before ? before->count : 0) + 1,
				   sizeof(*out->entries));
	for (size_t i = 0; i < lines.count; i++) {
		bool in_base;
		if (*lines.items[i] != '\'')
			continue;
		if (parse_line(m, lines.items[i], &out->entries[out->count], e) < 0 ||
		    check_base(m->q, &out->entries[out->count], &in_base, e) < 0)
			return -1;
		out->count += !in_base;
	}

	for (size_t i = 0; before && i < before->count; i++)
		if (before->entries[i].kind != WORLD_DEB)
			out->entries[out->count++] = before->entries[i];
	return 0;
}

static int make_in(struct making *m, struct world_lock *ret, struct err *e)
{
	const char *arch = world_debian_arch(m->q->platform), *release;
	const struct world_lock *before = m->q->before;
	struct world_lock out = *ret;
	const struct world_part *p = m->q->part;
	AUTO_BUF struct buf sources = {0};
	const char *own = proc_beside(m->a, "share/ptbuild/keyrings/debian-archive-keyring.gpg");
	const char *keyring = m->q->keyring ? m->q->keyring : own ? own : DEBIAN_KEYRING;
	const char *keys = path_join(m->a, m->dir, "keys.gpg"); /* a path without blanks */

	if (!fs_exists(TRUSTED, keyring)) {
		err_set(e, ERR_SYSTEM, "no keyring '%s' to check the archive's signature with",
			keyring);
		return err_hint(e, "install debian-archive-keyring, or name the archive's keyring "
				   "with --keyring FILE");
	}

	if (symlink(keyring, keys) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot make '%s'", keys);
	buf_printf(&sources, "deb [arch=%s target=Packages signed-by=%s] %s %s", arch, keys,
		   m->address, p->suite);
	for (unsigned i = 0; i < p->components_count; i++)
		buf_printf(&sources, " %s", p->components[i]);
	buf_addc(&sources, '\n');
	if (fs_mkdirs(m->dir, "lists/partial", e) < 0)
		return -1;
	if (fs_mkdirs(m->dir, "archives/partial", e) < 0)
		return -1;
	if (write_text(m, "status", "", e) < 0)
		return -1;
	if (write_text(m, "apt.conf", arena_printf(m->a, apt_conf, m->dir, arch), e) < 0)
		return -1;
	if (write_text(m, "sources.list", buf_cstr(&sources), e) < 0)
		return -1;
	if (update(m, &release, e) < 0 || read_release(m, release, e) < 0)
		return -1;
	if (choose(m, &out, e) < 0)
		return -1;
	out.release = m->release;
	out.date = m->date;
	AUTO_JSON json_t *diff = lock_compare(before, &out, m->a);
	*ret = before && !lock_differs(diff) ? *before : out;
	return 0;
}

int lock_make(const struct lock_request *q, struct arena *a, struct world_lock *ret, struct err *e)
{
	struct world_lock out = {.part = q->part->part,
				 .platform = q->platform,
				 .archive = q->archive,
				 .suite = q->part->suite};
	struct making m = {.q = q, .run = q->run, .a = a};
	char asked[65], *dir;
	int status = -1;

	world_part_asked(q->part, asked);
	out.asked = arena_strdup(a, asked);
	log_stage(q->run->log, "asking apt-get what %s needs", q->part->part);
	for (size_t i = 0; i < q->addresses->count && status < 0; i++) {
		const char *address = q->addresses->items[i];
		struct err ignored = {0};
		if (strncmp(address, "file://", 7) == 0)
			address += 7;
		m.address = *address == '/' ? arena_printf(a, "file:%s", address) : address;
		err_clear(e);
		if (fs_temp_dir(NULL, "ptbuild-apt-", a, &dir, e) < 0)
			return -1;
		m.dir = dir;
		status = make_in(&m, &out, e);
		if (fs_remove(TRUSTED, dir, &ignored) < 0)
			log_warn(q->run->log, "%s", ignored.msg);
		if (status < 0 && e->kind != ERR_NETWORK)
			break;
	}

	log_status_end(q->run->log);
	if (status < 0)
		return -1;
	*ret = out;
	return 0;
}

static bool same(const struct world_entry *x, const struct world_entry *y)
{
	return strcmp(x->version, y->version) == 0 && strcmp(x->arch, y->arch) == 0 &&
	       strcmp(x->sha256, y->sha256) == 0 && strcmp(x->place, y->place) == 0 &&
	       x->size == y->size;
}

json_t *lock_compare(const struct world_lock *before, const struct world_lock *after,
		     struct arena *a)
{
	static const struct world_lock none = {0};
	const bool other = before && strcmp(before->asked, after->asked) != 0;

	before = before ? before : &none;
	const struct world_entry *x = world_lock_sorted(before, a), *x_end = x + before->count;
	const struct world_entry *y = world_lock_sorted(after, a), *y_end = y + after->count;
	json_int_t added = 0, removed = 0, changed = 0;
	json_t *changes = json_array();
	while (x < x_end || y < y_end) {
		const int order = x == x_end ? 1 : y == y_end ? -1 : world_entry_cmp(x, y);
		const bool old = order <= 0, new = order >= 0;
		const struct world_entry *any = new ? y : x;
		if (!old || !new || !same(x, y)) {
			added += !old;
			removed += !new;
			changed += old && new;
			json_array_append_new(
				changes,
				json_pack("{s:s, s:o, s:o, s:o, s:I, s:b}", "kind",
					  world_kind_names[any->kind], "name",
					  json_or_null(any->name), "before",
					  json_or_null(old ? x->version : NULL), "after",
					  json_or_null(new ? y->version : NULL), "bytes",
					  (json_int_t)(new ? y->size : 0), "same_version",
					  old && new &&strcmp(x->version, y->version) == 0));
		}

		x += old;
		y += new;
	}

	return json_pack("{s:b, s:I, s:I, s:I, s:o}", "other_request", other, "added", added,
			 "removed", removed, "changed", changed, "changes", changes);
}

bool lock_differs(const json_t *diff)
{
	return json_array_size(json_object_get(diff, "changes")) ||
	       json_is_true(json_object_get(diff, "other_request"));
}
