#include "core/tables/gpu_runs.h"

#include <ctype.h>

#include "core/tables/tables.h"

struct gpu_code gpu_code_parse(const char *text)
{
	struct gpu_code code = {0};
	char *end;
	const unsigned long number = strtoul(text, &end, 10);

	code.number = (unsigned)number;
	if (*end == '.')
		code.number = (unsigned)(number * 10 + strtoul(end + 1, &end, 10));
	if (*end == 'a' || *end == 'f')
		code.suffix = *end++;
	code.ptx = *end == '+';
	return code;
}

static bool same_major(struct gpu_code code, unsigned gpu)
{
	return code.number / 10 == gpu / 10;
}

enum gpu_runs gpu_binary_runs(struct gpu_code code, unsigned gpu, bool code_is_chip,
			      bool gpu_is_chip)
{
	if (code.number == gpu)
		return GPU_RUNS_YES;
	if (code.suffix == 'a' || code_is_chip)
		return GPU_RUNS_NO;
	if (code.number > gpu || !same_major(code, gpu))
		return GPU_RUNS_NO;
	return gpu_is_chip ? GPU_RUNS_PERHAPS : GPU_RUNS_YES;
}

bool gpu_ptx_runs(struct gpu_code code, unsigned gpu)
{
	if (code.number >= gpu)
		return code.number == gpu;
	return code.suffix == '\0' || (code.suffix == 'f' && same_major(code, gpu));
}

static const struct gpu_row *chip(const struct tables *t, unsigned number)
{
	for (unsigned i = 0; i < t->gpus_count; i++)
		if (t->gpus[i].tegra && gpu_code_parse(t->gpus[i].sm).number == number)
			return &t->gpus[i];
	return NULL;
}

const struct gpu_row *gpu_renamed(const struct tables *t, unsigned gpu, const char *cuda)
{
	const struct gpu_row *row =
		t && cuda && isdigit((unsigned char)*cuda) ? chip(t, gpu) : NULL;

	if (!row || !*row->note || !*row->cuda_max)
		return NULL;
	return version_cmp(cuda, row->cuda_max) > 0 ? row : NULL;
}

enum gpu_runs gpu_target_runs(const struct tables *t, const char *target, const char *gpu,
			      const char *cuda)
{
	const struct gpu_code code = gpu_code_parse(target);
	const unsigned number = gpu_code_parse(gpu).number;
	const struct gpu_row *on = chip(t, number);

	if (gpu_renamed(t, number, cuda))
		return GPU_RUNS_NO;
	if (code.ptx && gpu_ptx_runs(code, number))
		return GPU_RUNS_YES;
	const enum gpu_runs runs =
		gpu_binary_runs(code, number, chip(t, code.number) != NULL, on != NULL);
	if (runs != GPU_RUNS_PERHAPS || !*on->shares_from || !*cuda)
		return runs;
	return version_cmp(cuda, on->shares_from) >= 0 ? GPU_RUNS_YES : runs;
}
