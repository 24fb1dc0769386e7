/* A wheel for Arm has the same plan, and so the same keys, on an x86-64 machine that emulates
 * and on an Arm machine. uname is wrapped: it says which machine this is. The Python is named,
 * as a machine of the plan's platform prefers its own. */
#include "support.h"

#include <dirent.h>
#include <sys/utsname.h>

#include "base/sys/json.h"
#include "capture.h"
#include "core/tables/tables.h"

#define ARM "aarch64-linux"
#define PYTHON "--python 3.13 --json"

static const char *machine; /* NULL: the true one */

int __real_uname(struct utsname *u);
int __wrap_uname(struct utsname *u);

int __wrap_uname(struct utsname *u)
{
	const int rc = __real_uname(u);

	if (machine) {
		snprintf(u->sysname, sizeof(u->sysname), "Linux");
		snprintf(u->machine, sizeof(u->machine), "%s", machine);
	}

	return rc;
}

/* The plan as a machine of this kind has it, without what is about the machine itself; NULL: it
 * refuses the plan. */
static json_t *plan_on(const char *kind, const char *words)
{
	AUTO_FREE char *text = NULL;
	struct err e = {0};

	machine = kind;
	const int rc = capture_run(words, &text, &e);
	machine = NULL;
	json_t *j = rc == 0 ? json_loads(text, 0, NULL) : NULL;
	json_object_del(j, "this_machine");
	json_object_del(j, "cost");
	return j;
}

/* Returns whether there is a plan. */
static bool same_on_both(const char *words)
{
	AUTO_JSON json_t *x86 = plan_on("x86_64", words), *arm = plan_on("aarch64", words);

	if ((x86 != NULL) != (arm != NULL))
		fail_msg("'%s' is refused on one of two machines", words);
	if (!x86)
		return false;
	assert_string_equal(json_text(x86, "platform"), ARM);
	assert_int_equal(strlen(json_text(x86, "output_key")), 64);
	assert_string_equal(json_text(x86, "compile_key"), json_text(arm, "compile_key"));
	assert_string_equal(json_text(x86, "output_key"), json_text(arm, "output_key"));
	if (!json_equal(x86, arm))
		fail_msg("'%s' differs on two machines", words);
	return true;
}

static void test_keys_of_arm_profiles_are_the_same_on_x86(void **state)
{
	AUTO_ARENA struct arena a = {0};
	const struct tables *t = NULL;
	struct err e = {0};
	size_t cpu = 0, gpu = 0;

	(void)state;
	assert_ok(tables_load(PROFILES_DIR, &a, &t, &e), &e);
	for (unsigned i = 0; i < t->isas_count; i++) {
		if (strcmp(t->isas[i].platform, ARM) != 0)
			continue;
		const char *name = t->isas[i].name;
		cpu += same_on_both(arena_printf(&a, "plan --profile cpu-%s " PYTHON, name));
		cpu += same_on_both(arena_printf(
			&a,
			"plan --package torchaudio --profile cpu-%s --release 2.6.0-debian " PYTHON,
			name));
		for (unsigned g = 0; g < t->gpus_count; g++)
			gpu += same_on_both(arena_printf(&a, "plan --profile sm%s-%s " PYTHON,
							 t->gpus[g].sm, name));
	}

	assert_true(cpu >= 6);
	assert_true(gpu >= 6);
}

/* What `detect` recommends to a machine that a file describes. */
static void test_keys_of_recorded_arm_machines_are_the_same_on_x86(void **state)
{
	static const char *const dir = TEST_DATA_DIR "/machines";
	AUTO_ARENA struct arena a = {0};
	DIR *d = opendir(dir);
	size_t count = 0;
	struct err e = {0};

	(void)state;
	assert_non_null(d);
	for (const struct dirent *f; (f = readdir(d));) {
		const char *path = arena_printf(&a, "%s/%s", dir, f->d_name);
		if (!path_has_suffix(path, ".yaml"))
			continue;
		AUTO_FREE char *text = test_read(path);
		if (!strstr(text, "platform: " ARM))
			continue;
		AUTO_FREE char *out = NULL;
		err_clear(&e);
		if (capture_run(arena_printf(&a, "detect --machine %s --json", path), &out, &e) < 0)
			continue; /* a processor that no profile fits */
		AUTO_JSON json_t *told = json_loads(out, 0, NULL);
		const char *command = json_text(told, "command");
		if (strncmp(command, "ptbuild ", 8) != 0)
			continue;
		command += strncmp(command, "ptbuild plan ", 13) == 0 ? 13 : 8;
		count += same_on_both(arena_printf(&a, "plan %s " PYTHON, command));
	}

	closedir(d);
	assert_true(count >= 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_keys_of_arm_profiles_are_the_same_on_x86,
					  test_teardown),
		cmocka_unit_test_teardown(test_keys_of_recorded_arm_machines_are_the_same_on_x86,
					  test_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
