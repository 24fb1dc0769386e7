/* Roots of another platform. The emulator here is a small static program that says how it was
 * started, so that the namespaces, the layer and the kernel's row are tried with no qemu. */
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "base/sys/json.h"
#include "base/sys/machine.h"
#include "compile.h"
#include "core/root/sandbox.h"

#define ARM "aarch64-linux"

static struct arena arena;
static struct root host, foreign;
static struct emulation emulation;

/* The head of an ELF program of 64 bits for a machine; what follows is never read. */
static void write_program(const char *path, unsigned char machine)
{
	unsigned char head[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
	FILE *f = fopen(path, "wb");

	head[16] = 2; /* executable */
	head[18] = machine;
	head[20] = 1;
	assert_non_null(f);
	assert_int_equal(fwrite(head, 1, sizeof(head), f), sizeof(head));
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, 0755), 0);
}

static int setup_foreign(void **state)
{
	struct err e = {0};

	(void)state;
	test_dir();
	assert_int_equal(chmod(test_path("."), 0755), 0);
	assert_ok(root_open(NULL, &arena, &host, &e), &e);
	must("mkdir -p root/usr/bin root/usr/lib root/tmp emulator layer/usr/lib && ln -s usr/bin "
	     "root/bin && "
	     "ln -s usr/lib root/lib && echo base > root/usr/lib/both && echo base > "
	     "root/usr/lib/one && echo layer > layer/usr/lib/both && echo layer > "
	     "layer/usr/lib/other && chmod -R a+rX .");
	write_program(test_path("root/usr/bin/sh"), 0xb7);
	write_program(test_path("root/usr/bin/hello"), 0xb7);
	assert_ok(root_open(test_path("root"), &arena, &foreign, &e), &e);
	emulation = (struct emulation){.platform = ARM,
				       .program = arena_strdup(&arena, test_path("emulator/run")),
				       .layer = arena_strdup(&arena, test_path("layer")),
				       .cpu = "small",
				       .name = "run 1"};
	return 0;
}

static int teardown(void **state)
{
	arena_release(&arena);
	return test_teardown(state);
}

static void test_kernel_versions(void **state)
{
	(void)state;
	assert_true(emulation_kernel("6.7"));
	assert_true(emulation_kernel("6.18.44-fc-v669"));
	assert_true(emulation_kernel("7.0.0"));
	assert_false(emulation_kernel("6.6.99"));
	assert_false(emulation_kernel("6.1.0-40-amd64"));
	assert_false(emulation_kernel("5.15.0"));
	assert_false(emulation_kernel("unknown"));
	assert_false(emulation_kernel(""));
}

static void test_row_names_the_emulator_and_its_machine(void **state)
{
	struct err e = {0};

	(void)state;
	const char *row = emulation_row(ARM, "/proc/self/fd/100", &arena);
	assert_contains(row, ":ptbuild-aarch64-linux:M::\\x7fELF\\x02\\x01\\x01");
	assert_contains(row, ":/proc/self/fd/100:FPOC");
	assert_null(emulation_row("riscv64-linux", "x", &arena));
	assert_err(emulation_check("riscv64-linux", &e), &e, ERR_POLICY,
		   "programs for riscv64-linux cannot be run");
}

static void test_root_knows_its_platform(void **state)
{
	struct err e = {0};
	struct root r;

	(void)state;
	assert_string_equal(foreign.platform, ARM);
	assert_string_equal(host.platform, machine_platform(&arena));
	write_program(test_path("root/usr/bin/sh"), 0x3e);
	assert_ok(root_open(test_path("root"), &arena, &r, &e), &e);
	assert_string_equal(r.platform, "x86_64-linux");
	/* neither a script nor a file of a few bytes says a platform */
	must("printf '#!/bin/sh\\n' > root/usr/bin/sh");
	assert_ok(root_open(test_path("root"), &arena, &r, &e), &e);
	assert_string_equal(r.platform, machine_platform(&arena));
}

static void test_foreign_root_without_emulation_is_refused(void **state)
{
	AUTO_BUF struct buf out = {0};
	const char *const argv[] = {"hello", NULL};
	struct err e = {0};
	struct sandbox s;

	(void)state;
	if (strcmp(machine_platform(&arena), ARM) == 0)
		return;
	assert_ok(sandbox_init(&s, SANDBOX_BWRAP, &foreign, &arena, &e), &e);
	assert_err(sandbox_capture(&s, argv, test_run(), &out, &e), &e, ERR_POLICY,
		   "are for aarch64-linux, and this machine is ");
}

static void test_sandbox_keeps_emulation_in_json(void **state)
{
	struct err e = {0};
	struct sandbox s, again;

	(void)state;
	foreign.emulation = &emulation;
	assert_ok(sandbox_init(&s, SANDBOX_BWRAP, &foreign, &arena, &e), &e);
	assert_string_equal(kvlist_get(&s.env, "QEMU_CPU"), "small");
	sandbox_emulate_as(&s, "large");
	assert_string_equal(kvlist_get(&s.env, "QEMU_CPU"), "large");
	sandbox_emulate_as(&s, "");
	assert_string_equal(kvlist_get(&s.env, "QEMU_CPU"), "large");
	AUTO_JSON json_t *j = sandbox_to_json(&s);
	assert_ok(sandbox_from_json(j, "test", &arena, &again, &e), &e);
	assert_string_equal(again.emulation->program, emulation.program);
	assert_string_equal(again.emulation->layer, emulation.layer);
	assert_string_equal(again.emulated, foreign.dir);
	json_object_set_new(json_object_get(j, "emulation"), "program", json_string("run"));
	assert_err(sandbox_from_json(j, "test", &arena, &again, &e), &e, ERR_INTEGRITY,
		   "does not describe a sandbox");
}

/* Its arguments, and what of three files of /usr/lib it sees. */
#define EMULATOR                                                                                   \
	"#include <stdio.h>\n#include <stdlib.h>\nint main(int n, char **v) {\n"                   \
	"static const char *const files[] = {\"both\", \"one\", \"other\"};\n"                     \
	"char path[64], line[64];\nprintf(\"%s as %s\\n\", v[n - 1], getenv(\"QEMU_CPU\"));\n"     \
	"for (int i = 0; i < 3; i++) {\nsnprintf(path, sizeof(path), \"/usr/lib/%s\", "            \
	"files[i]);\n"                                                                             \
	"FILE *f = fopen(path, \"r\");\n"                                                          \
	"printf(\"%s\", f && fgets(line, sizeof(line), f) ? line : \"none\\n\"); }\nreturn 0; }\n"

static void compile_emulator(void)
{
	test_write(test_path("run.c"), EMULATOR);
	must("cc -static -o emulator/run run.c && chmod 0755 emulator/run");
}

static void run_hello(const char *text)
{
	AUTO_BUF struct buf out = {0};
	const char *const argv[] = {"hello", "there", NULL};
	struct err e = {0};
	struct sandbox s;

	foreign.emulation = &emulation;
	assert_ok(sandbox_init(&s, SANDBOX_BWRAP, &foreign, &arena, &e), &e);
	kvlist_set(&s.env, &arena, "PATH", ROOT_PATH);
	assert_ok(sandbox_capture(&s, argv, test_run(), &out, &e), &e);
	assert_string_equal(buf_cstr(&out), text);
}

static bool can_emulate(void)
{
	struct utsname u;

	if (uname(&u) == 0 && emulation_kernel(u.release) &&
	    strcmp(machine_platform(&arena), "x86_64-linux") == 0)
		return true;
	print_message("    needs Linux 6.7 or newer on x86-64: programs of another platform\n");
	return false;
}

static void test_emulator_runs_programs_of_the_root(void **state)
{
	(void)state;
	if (!can_emulate())
		return;
	compile_emulator();
	run_hello("there as small\nlayer\nbase\nlayer\n");
	/* nothing of it is left on the machine, and the root is as it was */
	must("test ! -e /proc/sys/fs/binfmt_misc/ptbuild-aarch64-linux && "
	     "test \"$(cat root/usr/lib/both)\" = base && test ! -e root/usr/lib/other");
}

static void test_emulation_without_a_layer_shows_the_root_alone(void **state)
{
	(void)state;
	if (!can_emulate())
		return;
	compile_emulator();
	emulation.layer = NULL;
	run_hello("there as small\nbase\nbase\nnone\n");
}

static void test_missing_emulator_is_named(void **state)
{
	AUTO_BUF struct buf out = {0};
	const char *const argv[] = {"hello", NULL};
	struct err e = {0};
	struct sandbox s;

	(void)state;
	if (!can_emulate())
		return;
	foreign.emulation = &emulation;
	assert_ok(sandbox_init(&s, SANDBOX_BWRAP, &foreign, &arena, &e), &e);
	assert_err(sandbox_capture(&s, argv, test_run(), &out, &e), &e, ERR_POLICY,
		   "cannot run programs for aarch64-linux by run 1: cannot open the emulator");
	assert_contains(e.hint, "or build on a machine of that platform");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup_foreign, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_kernel_versions),
		T(test_row_names_the_emulator_and_its_machine),
		T(test_root_knows_its_platform),
		T(test_foreign_root_without_emulation_is_refused),
		T(test_sandbox_keeps_emulation_in_json),
		T(test_emulator_runs_programs_of_the_root),
		T(test_emulation_without_a_layer_shows_the_root_alone),
		T(test_missing_emulator_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
