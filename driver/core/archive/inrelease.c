#include "core/archive/inrelease.h"

#include <string.h>
#include <time.h>

#include "base/path.h"
#include "base/strlist.h"
#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "base/sys/proc.h"
#include "core/archive/control.h"

enum { FILES_MAX = 20000, INRELEASE_MAX = 16 << 20 };

#define INDEX_MAX_BYTES (4ULL << 30)
#define DEBIAN_KEYRING "/usr/share/keyrings/debian-archive-keyring.gpg"
#define SIGNED_BEGIN "-----BEGIN PGP SIGNED MESSAGE-----"

/* One message, and it begins with the file: what else a file could hold is not what was signed. */
static int check_shape(const char *path, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	if (fs_read(TRUSTED, path, INRELEASE_MAX, &text, e) < 0)
		return -1;
	const char *s = buf_cstr(&text);
	if (strlen(s) != text.len || strncmp(s, SIGNED_BEGIN "\n", strlen(SIGNED_BEGIN) + 1) != 0 ||
	    strstr(s + 1, SIGNED_BEGIN))
		return err_set(e, ERR_INTEGRITY, "'%s' is not one signed message", path_base(path));
	return 0;
}

static int find_keyring(const char *keyring, struct arena *a, const char **ret, struct err *e)
{
	const char *own = proc_beside(a, "share/ptbuild/keyrings/debian-archive-keyring.gpg");
	const char *path = keyring ? keyring : own ? own : DEBIAN_KEYRING;
	if (!fs_exists(TRUSTED, path)) {
		err_set(e, ERR_SYSTEM, "no keyring '%s' to check the archive's signature with", path);
		return err_hint(e, "install debian-archive-keyring, or name the archive's keyring with --keyring FILE");
	}
	*ret = path;
	return 0;
}

/* gpgv's exit status counts keys that the keyring lacks as failures: a suite is signed by the keys of several
 * releases, one of which is enough. */
static bool gpgv_says_good(const char *status, struct arena *a)
{
	struct strlist lines = {0};
	bool good = false;
	strlist_split(&lines, a, status, "\n");
	for (size_t i = 0; i < lines.count; i++) {
		if (strncmp(lines.items[i], "[GNUPG:] BADSIG ", 16) == 0)
			return false;
		good |= strncmp(lines.items[i], "[GNUPG:] GOODSIG ", 17) == 0;
	}
	return good;
}

/* The words of the checking program, without its lines for programs. */
static const char *said(const struct buf *words, struct arena *a)
{
	struct strlist lines = {0}, kept = {0};
	strlist_split(&lines, a, buf_cstr(words), "\n");
	for (size_t i = 0; i < lines.count && kept.count < 6; i++)
		if (strncmp(lines.items[i], "[GNUPG:]", 8) != 0)
			strlist_ref(&kept, a, lines.items[i]);
	return kept.count ? strlist_join(&kept, a, "; ") : "no signature is good";
}

/* The program writes the signed text to `to`. */
static int run_checker(const char *path, const char *keyring, const char *to, const struct run *run, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	AUTO_BUF struct buf words = {0};
	struct proc_result result;
	const char *gpgv = proc_find_host(&a, "gpgv"), *sqv = proc_find_host(&a, "sqv");
	const char *const by_gpgv[] = {
		gpgv, "--status-fd", "1", "--weak-digest", "SHA1", "--keyring", keyring, "--output", to, path, NULL};
	const char *const by_sqv[] = {sqv, "--keyring", keyring, "--cleartext", "--output", to, path, NULL};
	if (!gpgv && !sqv) {
		err_set(e, ERR_SYSTEM, "neither gpgv nor sqv is on this machine to check the archive's signature");
		return err_hint(e, "install one of them: the package 'gpgv' or 'sqv'");
	}
	const struct proc_spec spec = {
		.argv = gpgv ? by_gpgv : by_sqv, .out = &words, .max_output = 1 << 20, .timeout_s = 60};
	if (proc_run(&spec, run, &result, e) < 0)
		return -1;
	if (gpgv ? gpgv_says_good(buf_cstr(&words), &a) : result.status == 0)
		return 0;
	err_set(e, ERR_INTEGRITY, "the signature of '%s' is not good by '%s': %s", path_base(path), keyring,
		said(&words, &a));
	return err_hint(e, "a newer keyring may have the key: install debian-archive-keyring, or name one with "
			   "--keyring FILE");
}

int inrelease_verify(const char *path, const char *keyring, const struct run *run, struct buf *out, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct err ignored = {0};
	const char *keys;
	char *dir;
	if (check_shape(path, e) < 0 || find_keyring(keyring, &a, &keys, e) < 0 ||
	    fs_temp_dir(NULL, "ptbuild-signed-", &a, &dir, e) < 0)
		return -1;
	const char *text = path_join(&a, dir, "text");
	int status = run_checker(path, keys, text, run, e);
	if (status == 0)
		status = fs_read(TRUSTED, text, INRELEASE_MAX, out, e);
	if (fs_remove(TRUSTED, dir, &ignored) < 0)
		log_warn(run->log, "%s", ignored.msg);
	return status;
}

/* "Sat, 21 Nov 2026 09:15:44 UTC": months in English whatever the locale. */
static const char *iso_date(const char *text, struct arena *a)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	int day, year, hour, minute, second, end = 0;
	char month[4];
	const char *comma = strchr(text, ',');
	if (sscanf(comma ? comma + 1 : text, " %2d %3[A-Za-z] %4d %2d:%2d:%2d UTC%n", &day, month, &year, &hour,
		   &minute, &second, &end) != 6 ||
	    !end || strlen(month) != 3)
		return NULL;
	const char *at = strstr(months, month);
	if (!at || (at - months) % 3 || day < 1 || day > 31 || year < 1990 || hour < 0 || hour > 23 || minute < 0 ||
	    minute > 59 || second < 0 || second > 60)
		return NULL;
	return arena_printf(a, "%04d-%02d-%02dT%02d:%02d:%02dZ", year, (int)(at - months) / 3 + 1, day, hour, minute,
			    second);
}

struct reading {
	struct control control;
	struct arena *arena;
	struct inrelease now;
};

static int deny(const struct reading *r, unsigned line, const char *what, const char *value, struct err *e)
{
	return err_set(e, ERR_INTEGRITY, "%s:%u: %s '%.200s'", r->control.file, line, what, value);
}

static int take_file(struct reading *r, const char *text, unsigned line, struct err *e)
{
	struct strlist words = {0};
	strlist_split(&words, r->arena, text, " \t\r");
	if (words.count == 0)
		return 0;
	if (words.count != 3 || !digest_valid_hex(words.items[0]) || !path_is_safe_relative(words.items[2]))
		return deny(r, line, "not 'SHA256 SIZE PATH':", text, e);
	size_t digits = strspn(words.items[1], "0123456789");
	if (words.items[1][digits] || digits > 12 || strtoull(words.items[1], NULL, 10) > INDEX_MAX_BYTES)
		return deny(r, line, "not the size of an index:", words.items[1], e);
	if (r->now.count >= FILES_MAX)
		return deny(r, line, "more than 20,000 files, at", words.items[2], e);
	if (r->now.count == r->now.cap)
		r->now.files = arena_grow(r->arena, r->now.files, &r->now.cap, 256, sizeof(*r->now.files));
	r->now.files[r->now.count++] = (struct inrelease_file){
		.path = words.items[2], .sha256 = words.items[0], .size = strtoull(words.items[1], NULL, 10)};
	return 0;
}

static int take_files(struct reading *r, const struct control_field *f, struct err *e)
{
	char *rest = arena_strndup(r->arena, f->value, f->value_len), *line;
	/* the field's own line holds nothing, and its blanks were cut: the first value is a line below */
	for (unsigned number = f->line + 1; (line = strsep(&rest, "\n")); number++)
		if (take_file(r, line, number, e) < 0)
			return -1;
	return 0;
}

static int take_date(struct reading *r, const struct control_field *f, const char **ret, struct err *e)
{
	const char *text = arena_strndup(r->arena, f->value, f->value_len);
	const char *date = iso_date(text, r->arena);
	if (!date)
		return deny(r, f->line, "not a date in UTC:", text, e);
	*ret = date;
	return 0;
}

static int take_field(struct reading *r, const struct control_field *f, struct err *e)
{
	if (control_is(f, "Suite"))
		r->now.suite = arena_strndup(r->arena, f->value, f->value_len);
	if (control_is(f, "Codename"))
		r->now.codename = arena_strndup(r->arena, f->value, f->value_len);
	if (control_is(f, "Acquire-By-Hash"))
		r->now.by_hash = f->value_len == 3 && strncmp(f->value, "yes", 3) == 0;
	if (control_is(f, "Date"))
		return take_date(r, f, &r->now.date, e);
	if (control_is(f, "Valid-Until"))
		return take_date(r, f, &r->now.valid_until, e);
	return control_is(f, "SHA256") ? take_files(r, f, e) : 0;
}

int inrelease_parse(const char *text, size_t len, const char *file, struct arena *a, struct inrelease *ret,
		    struct err *e)
{
	struct reading r = {.arena = a, .now = {.suite = "", .codename = ""}};
	struct control_field f;
	enum control_got got = CONTROL_FIELD;
	control_open(&r.control, file, text, len);
	while (got == CONTROL_FIELD) {
		if (control_next(&r.control, &got, &f, e) < 0)
			return -1;
		if (got == CONTROL_FIELD && take_field(&r, &f, e) < 0)
			return -1;
	}
	if (!r.now.date)
		return err_set(e, ERR_INTEGRITY, "'%s' has no field Date", file);
	if (!r.now.count)
		return err_set(e, ERR_INTEGRITY, "'%s' lists no file with its SHA256", file);
	*ret = r.now;
	return 0;
}

const struct inrelease_file *inrelease_find(const struct inrelease *r, const char *path)
{
	for (size_t i = 0; i < r->count; i++)
		if (strcmp(r->files[i].path, path) == 0)
			return &r->files[i];
	return NULL;
}
