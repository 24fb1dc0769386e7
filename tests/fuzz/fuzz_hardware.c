/* Any bytes as what a machine says of itself; the first says which
 * text it is. Whatever comes of it, a decision is made that holds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sys/fs.h"
#include "base/sys/json.h"
#include "core/machine/detect.h"
#include "core/machine/hardware.h"
#include "fuzz.h"

static struct {
	struct arena a;
	const struct tables *t;
	const struct hardware_facts *f;
} shipped;

static void load(void)
{
	struct err e = {0};

	if (!shipped.t)
		fail_unless(tables_load(PROFILES_DIR, &shipped.a, &shipped.t, &e) == 0 &&
			    hardware_facts_load(PROFILES_DIR, &shipped.a, &shipped.f, &e) == 0);
}

/* An instruction set that is said to run lacks nothing, and the profile is made of what runs. */
static void decide(const struct hardware *h, struct arena *a)
{
	struct detected d;
	struct err e = {0};
	const char *filled;

	fail_unless(detect_choose(shipped.t, shipped.f, h, "int8", NULL, a, &d, &e) == 0);
	fail_unless(d.profile ? d.command != NULL &&
					detect_fill_native(&d, "native", a, &filled, &e) == 0 &&
					strcmp(filled, d.profile) == 0
			      : d.reasons.count > 0);
	for (size_t i = 0; i < d.isa_count; i++)
		for (unsigned k = 0; !d.isas[i].missing && k < d.isas[i].row->cpuinfo_count; k++)
			fail_unless(hardware_missing(shipped.f, h, d.isas[i].row->cpuinfo[k], a) ==
				    NULL);
}

static struct hardware empty(const char *platform)
{
	return (struct hardware){.platform = platform,
				 .cpu = {.name = "", .vendor = ""},
				 .driver = "",
				 .driver_cuda = "",
				 .gpu_source = "",
				 .gpu_trouble = "",
				 .glibc = ""};
}

/* A description that loads is written as one that loads, and both mean the same. */
static void description(const char *text, struct arena *a)
{
	struct hardware h, again;
	struct err e = {0};
	char *path = arena_printf(a, "%s/fuzz-hardware-XXXXXX",
				  fs_is_dir(TRUSTED, "/dev/shm") ? "/dev/shm" : "/tmp");
	int fd = mkstemp(path);

	fail_unless(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) &&
		    close(fd) == 0);
	if (hardware_load(path, a, &h, &e) == 0) {
		AUTO_JSON json_t *j = hardware_json(&h);
		fail_unless(json_write(j, TRUSTED, path, &e) == 0 &&
			    hardware_load(path, a, &again, &e) == 0);
		AUTO_JSON json_t *k = hardware_json(&again);
		fail_unless(json_equal(j, k));
		decide(&h, a);
	} else {
		fail_unless((e.kind == ERR_CONFIG && strncmp(e.msg, path, strlen(path)) == 0) ||
			    e.kind == ERR_INTEGRITY);
	}

	fail_unless(unlink(path) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_ARENA struct arena a = {0};

	if (size == 0)
		return 0;
	load();
	const char *text = arena_strndup(&a, (const char *)data + 1,
					 strnlen((const char *)data + 1, size - 1));
	struct hardware x86 = empty("x86_64-linux"), arm = empty("aarch64-linux");
	switch (data[0]) {
	case 'c':
		hardware_parse_cpuinfo(text, &a, &x86.cpu);
		hardware_parse_cpuinfo(text, &a, &arm.cpu);
		break;
	case 'a':
		hardware_take_answers(text, &a, &x86);
		break;
	case 's':
		hardware_take_smi(text, &a, &x86);
		break;
	case 'd':
		x86.driver = hardware_parse_driver(text, &a);
		break;
	default:
		description(text, &a);
		return 0;
	}

	decide(&x86, &a);
	decide(&arm, &a);
	return 0;
}
