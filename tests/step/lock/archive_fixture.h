/* A small Debian archive in a directory, signed with a key made for it. */
#pragma once
#include "support.h"

#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/sys/digest.h"
#include "base/sys/fs.h"
#include "base/sys/proc.h"

struct test_archive {
	struct arena arena;
	const char *dir;     /* its address */
	const char *keyring; /* its key */
	const char *home;    /* gpg's */
	struct buf packages; /* of main */
};

static inline void archive_run(const char *first, ...)
{
	const char *argv[24] = {first};
	struct err e = {0};
	AUTO_BUF struct buf out = {0};
	va_list ap;
	va_start(ap, first);
	for (size_t n = 1; n < ARRAY_LEN(argv) - 1 && (argv[n] = va_arg(ap, const char *)); n++)
		;
	va_end(ap);
	assert_ok(proc_capture(argv, test_run(), &out, &e), &e);
}

static inline void archive_start(struct test_archive *t)
{
	const char *top = arena_strdup(&t->arena, test_dir());
	t->dir = path_join(&t->arena, top, "debian");
	t->home = path_join(&t->arena, top, "home");
	t->keyring = path_join(&t->arena, top, "ring.gpg");
	assert_int_equal(mkdir(t->home, 0700), 0);
	archive_run("gpg", "--homedir", t->home, "--batch", "--quiet", "--passphrase", "",
		    "--quick-gen-key", "test", "ed25519", "sign", "never", NULL);
	archive_run("gpg", "--homedir", t->home, "--batch", "--quiet", "--export", "--output",
		    t->keyring, NULL);
}

static inline void archive_stop(struct test_archive *t)
{
	archive_run("gpgconf", "--homedir", t->home, "--kill", "all", NULL);
	buf_release(&t->packages);
	arena_release(&t->arena);
	test_teardown(NULL);
}

/* archive_add: a package with further fields; its digest is that of "NAME VERSION". */
static inline void archive_add(struct test_archive *t, const char *name, const char *version,
			       const char *fields)
{
	char sha[DIGEST_HEX_LEN + 1];
	const char *bytes = arena_printf(&t->arena, "%s %s", name, version);
	digest_data(bytes, strlen(bytes), sha);
	buf_printf(&t->packages,
		   "Package: %s\nVersion: %s\nArchitecture: amd64\nFilename: "
		   "pool/%s_%s_amd64.deb\nSize: %zu\n"
		   "SHA256: %s\n%s\n",
		   name, version, name, version, strlen(bytes), sha, fields);
}

/* archive_sign: writes and signs the index of "trixie"; `fields` go into Release. */
static inline void archive_sign(struct test_archive *t, const char *date, const char *fields)
{
	char sha[DIGEST_HEX_LEN + 1];
	struct arena *a = &t->arena;
	const char *dists = path_join(a, t->dir, "dists/trixie");
	const char *release = path_join(a, dists, "Release");
	test_write(path_join(a, dists, "main/binary-amd64/Packages"), buf_cstr(&t->packages));
	digest_data(t->packages.data, t->packages.len, sha);
	test_write(release, arena_printf(a,
					 "Origin: Debian\nSuite: stable\nCodename: trixie\nDate: "
					 "%s\n%sSHA256:\n %s %zu "
					 "main/binary-amd64/Packages\n",
					 date, fields, sha, t->packages.len));
	archive_run("gpg", "--homedir", t->home, "--batch", "--quiet", "--yes", "--clearsign",
		    "--output", path_join(a, dists, "InRelease"), release, NULL);
}
