/* What can be known before a world is made or anything is downloaded is refused then: by
 * words and tables, by the machine, by the places of sources. Nothing but loopback is asked. */
#include "cmd_fixture.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/sys/fs.h"
#include "step/fetch/fetch.h"

#ifdef __x86_64__
#define PROFILE "cpu-avx2"
#else
#define PROFILE "cpu-armv9"
#endif

/* Tables whose sources are at a port of loopback where
 * nobody listens, of small worlds; another `disk`. */
static const char *tables(const char *disk)
{
	const char *dir = test_path("tables");

	assert_int_equal(
		shell(arena_printf(
			&ran.arena,
			"mkdir -p '%s' && cp -r '" PROFILES_DIR "' '" PATCHES_DIR
			"' '%s' && sed -i "
			"-e 's#https://[a-z.]*/#http://127.0.0.1:1/#' -e 's/^disk: .*/disk: %s/' "
			"'%s'/profiles/releases/*.yaml && sed -i 's/ amd64 [0-9]* / amd64 1000 /' "
			"'%s'/profiles/worlds/*.lock",
			dir, dir, disk, dir, dir)),
		0);
	setenv("PTBUILD_ARCHIVE_DEBIAN", "http://127.0.0.1:1/debian", 1);
	setenv("PTBUILD_ARCHIVE_DEBIAN_SNAPSHOT", "http://127.0.0.1:1/snapshot", 1);
	setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple", 1);
	return arena_printf(&ran.arena, "--profiles '%s/profiles'", dir);
}

static void assert_no_world(void)
{
	assert_int_equal(shell(arena_printf(&ran.arena,
					    "ls '%s'/ptbuild/objects/source '%s'/ptbuild/worlds "
					    "'%s'/ptbuild/partial 2>/dev/null | grep -v : | grep .",
					    test_path("xdg"), test_path("xdg"), test_path("xdg"))),
			 1);
}

static void what_tables_know_is_told_first(void **state)
{
	(void)state;
	const char *own = tables("1G");
	const char *const words[][2] = {
		{"--without foo", "unknown feature 'foo'"},
		{"--set USE_CUDAA=ON", "unknown option 'USE_CUDAA'"},
	};
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		expect(arena_printf(&ran.arena, "build --profile " PROFILE " %s %s", words[i][0],
				    own),
		       3, words[i][1]);
		assert_no_world();
	}

	expect(arena_printf(&ran.arena, "build --profile darwin-mps %s", own), 7,
	       "and this machine is ");
	assert_no_world();
}

/* The torch of a root that has none: its locks say so. */
static void a_world_without_torch(void **state)
{
	(void)state;
	const char *own = tables("1G");
	static const char *const commands[] = {"plan", "build"};
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		expect(arena_printf(&ran.arena,
				    "%s --profile " PROFILE
				    " --package torchvision --torch root %s",
				    commands[i], own),
		       7, "has no torch");
		assert_contains(err_text(), "--torch WHEEL");
		assert_contains(err_text(), "--release 2.6.0-debian");
		assert_no_world();
	}

	/* a torch for GPUs no world of a distribution has */
	expect(arena_printf(&ran.arena,
			    "plan --profile sm90-avx2 --package torchvision --torch root %s", own),
	       7, "has no torch");
	assert_not_contains(err_text(), "--release");
	/* the hint itself */
	assert_int_equal(ptbuild(arena_printf(
				 &ran.arena,
				 "plan --profile " PROFILE
				 " --release 2.6.0-debian --package torchvision --torch root %s",
				 own)),
			 0);
	/* Debian's has none. */
	expect(arena_printf(&ran.arena,
			    "plan --profile sm90-avx2 --cuda 12.4 --release 2.6.0-debian --package "
			    "torchvision --torch "
			    "root %s",
			    own),
	       7, "has no CUDA");
	assert_contains(err_text(), "--torch WHEEL");
}

/* A store without the wheel needs no world to say so, and asks nobody. */
static void what_repack_has_not_got(void **state)
{
	(void)state;
	expect(arena_printf(&ran.arena,
			    "repack --profile " PROFILE " --release 2.9.1 --metadata-rev 2 %s",
			    tables("1G")),
	       7, "differs in its metadata revision only");
	assert_contains(err_text(), "this builds it: ptbuild build --profile " PROFILE);
	assert_no_world();
	expect(arena_printf(&ran.arena, "test --profile " PROFILE " --release 2.9.1 %s",
			    tables("1G")),
	       7, "the store has no wheel of 'pytorch-");
	assert_contains(err_text(), "a variant must have been built");
	assert_no_world();
}

static void sources_that_cannot_be_reached(void **state)
{
	(void)state;
	const char *own = tables("1G");
	double start = log_seconds();
	expect(arena_printf(&ran.arena, "--profile " PROFILE " --release 2.9.1 %s", own), 4,
	       "'pytorch-v2.9.1.tar.gz' cannot be downloaded: 'http://127.0.0.1:1': ");
	assert_true(log_seconds() - start < HANG_S);
	assert_contains(err_text(), "--mirror URL|DIR");
	assert_contains(err_text(), "--release 2.6.0-debian");
	assert_contains(err_text(), "'ptbuild capture'");
	assert_no_world();
	/* Of Debian's own release: the torch of a root,
	 * and an official wheel of another release. */
	expect(arena_printf(&ran.arena, "--profile sm90-avx2 --cuda 12.4 --release 2.6.0-debian %s",
			    own),
	       4, "'pytorch_2.6.0+dfsg.orig.tar.xz'");
	assert_contains(err_text(), "--mirror URL|DIR");
	assert_contains(err_text(), "--lower-store DIR");
	assert_contains(err_text(), "'ptbuild capture --root DIR'");
	assert_contains(err_text(), "'ptbuild slim --release 2.10.0 --gpu sm90 --python 3.13'");
	/* The archive that is named is the one asked, for sources as for a world. */
	expect(arena_printf(&ran.arena,
			    "--profile " PROFILE
			    " --release 2.6.0-debian --archive debian=http://127.0.0.1:2/d %s",
			    own),
	       4, "cannot be downloaded: 'http://127.0.0.1:2': ");
	/* A mirror has it: then the world is in the way. */
	test_write(test_path("mirror/pytorch-v2.9.1.tar.gz"), "not opened");
	expect(arena_printf(&ran.arena, "--profile " PROFILE " --release 2.9.1 --mirror '%s' %s",
			    test_path("mirror"), own),
	       4, ".deb' of the world 'debian");
	assert_not_contains(err_text(), "pytorch-v2.9.1.tar.gz");
	assert_no_world();
	expect(arena_printf(&ran.arena, "plan --online --profile " PROFILE " --release 2.9.1 %s",
			    own),
	       4, "'pytorch-v2.9.1.tar.gz' cannot be downloaded");
	assert_int_equal(ptbuild(arena_printf(
				 &ran.arena, "plan --profile " PROFILE " --release 2.9.1 %s", own)),
			 0);
	/* doctor says both */
	ptbuild(arena_printf(&ran.arena, "doctor --profile " PROFILE " --release 2.9.1 %s", own));
	assert_int_equal(occurrences(out(), "failure  network "), 2);
	/* also of no profile: the sources are the same for all */
	ptbuild(arena_printf(&ran.arena, "doctor --release 2.9.1 %s", own));
	assert_int_equal(occurrences(out(), "failure  network "), 2);
	assert_contains(out(), "'pytorch-v2.9.1.tar.gz' cannot be downloaded");
}

/* Places that take a connection and say nothing are all waited for at once. */
static void silence_is_waited_for_once(void **state)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(in);
	const char *own = tables("1G");
	const char *doctor =
		arena_printf(&ran.arena, "doctor --profile " PROFILE " --release 2.9.1 %s", own);
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&in, len) == 0 && listen(fd, 64) == 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	double start = log_seconds();
	ptbuild(doctor);
	const double refused = log_seconds() - start;
	const char *url =
		arena_printf(&ran.arena, "http://127.0.0.1:%u/debian", ntohs(in.sin_port));
	setenv("PTBUILD_ARCHIVE_DEBIAN", url, 1);
	setenv("PTBUILD_ARCHIVE_DEBIAN_SNAPSHOT", url, 1);
	setenv("PIP_INDEX_URL", url, 1);
	assert_int_equal(shell(arena_printf(
				 &ran.arena,
				 "sed -i 's#127.0.0.1:1/#127.0.0.1:%u/#' '%s'/profiles/releases/*",
				 ntohs(in.sin_port), test_path("tables"))),
			 0);
	start = log_seconds();
	ptbuild(doctor);
	assert_int_equal(occurrences(out(), "failure  network "), 2);
	assert_contains(out(), "no answer in time");
	assert_true(log_seconds() - start - refused < 2 * FETCH_PROBE_MS / 1000.0 - 1);
	close(fd);
}

static void a_disk_that_is_too_small(void **state)
{
	(void)state;
	expect(arena_printf(&ran.arena, "build --profile " PROFILE " --release 2.9.1 %s",
			    tables("900000G")),
	       8, "too little space left in");
	assert_contains(err_text(), "--cache DIR");
	assert_no_world();
}

/* Builds stand on a world, whatever this machine has. */
static void doctor_without_a_profile_looks_at_the_world(void **state)
{
	(void)state;
	AUTO_JSON json_t *doc = NULL;
	ptbuild("doctor --offline --json --release 2.9.1");
	doc = json_out();
	assert_contains(json_string_value(json_object_get(doc, "root")), "to download");
	assert_not_contains(out(), "\"gcc\"");
	ptbuild("doctor --offline --json --release 2.9.1 --root /");
	assert_contains(out(), "\"gcc\"");
}

static void patches_of_no_release_are_told(void **state)
{
	(void)state;
	const char *own = tables("1G");
	assert_int_equal(ptbuild(arena_printf(&ran.arena, "list %s", own)), 0);
	assert_not_contains(err_text(), "of no release");
	assert_int_equal(shell(arena_printf(&ran.arena, "mkdir -p '%s'",
					    test_path("tables/patches/pytorch/2.9.1-won"))),
			 0);
	assert_int_equal(ptbuild(arena_printf(&ran.arena, "list %s", own)), 0);
	assert_contains(err_text(), "patches/pytorch/2.9.1-won' are of no release");
}

static void the_nearest_release_with_a_world_is_named(void **state)
{
	(void)state;
#ifdef __x86_64__
	const char *profiles = test_path("profiles");
	assert_int_equal(
		shell(arena_printf(&ran.arena, "cp -r '%s' '%s' && rm '%s'/worlds/cuda12_6.*",
				   PROFILES_DIR, profiles, profiles)),
		0);
	expect(arena_printf(&ran.arena, "build --profile sm50-avx2 --profiles '%s'", profiles), 7,
	       "no world of release ");
	assert_contains(err_text(), " has one: --release 2.");
#endif
	expect("plan --profile " PROFILE " --release 2.11", 3, "did you mean '2.11.0'?");
	expect("plan --matrix build-pytorch/main --release latest", 2, "ptbuild list --releases");
	expect("plan --profile sm90-avx2 --cuda 13", 3, "did you mean '13.");
	expect("plan --profile " PROFILE " --python 3.13.1", 3, "did you mean '3.13'?");
}

/* By the tables, in every command that would download
 * it; the pinned torch of aarch64 is not for CUDA 12.8. */
static void test_companion_refuses_torch_before_download(void **state)
{
	(void)state;
#ifdef __x86_64__
	static const char *const commands[] = {"plan", "doctor", "build", "fetch"};
	static const char *const cases[][3] = {
		{"--profile cpu-avx2 --torch official", "but the build is for the CPU",
		 "--cuda 12.8"},
		{"--profile sm90-avx2 --torch official==2.8.0", "goes with torch 2.9.1, not 2.8.0",
		 "--release 2.8.0"},
	};
	for (size_t i = 0; i < ARRAY_LEN(commands) * ARRAY_LEN(cases); i++) {
		const char *const *one = cases[i % ARRAY_LEN(cases)];
		expect(arena_printf(&ran.arena, "%s --package torchaudio --release 2.9.1 %s",
				    commands[i / ARRAY_LEN(cases)], one[0]),
		       7, one[1]);
		assert_contains(err_text(), one[2]);
		assert_no_world();
	}
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(what_tables_know_is_told_first),
		T(a_world_without_torch),
		T(what_repack_has_not_got),
		T(sources_that_cannot_be_reached),
		T(silence_is_waited_for_once),
		T(a_disk_that_is_too_small),
		T(doctor_without_a_profile_looks_at_the_world),
		T(patches_of_no_release_are_told),
		T(the_nearest_release_with_a_world_is_named),
		T(test_companion_refuses_torch_before_download),
	};

	return cmocka_run_group_tests_name("cmd/needs", tests, NULL, NULL);
}
