#include "core/machine/driver_fit.h"

#include "core/machine/hardware.h"
#include "core/tables/tables.h"

static long major_of(const char *version)
{
	return strtol(version, NULL, 10);
}

/* The row of the version; else the highest of its major below it, else the lowest above; NULL. */
static const struct toolkit_row *nearest_toolkit(const struct tables *t, const char *cuda)
{
	const struct toolkit_row *best = NULL;

	for (unsigned i = 0; i < t->toolkits_count; i++) {
		const struct toolkit_row *row = &t->toolkits[i];
		if (major_of(row->version) != major_of(cuda))
			continue;
		if (!best || version_cmp(row->version, cuda) <= 0)
			best = row;
	}

	return best;
}

const struct gpu_row *driver_tegra(const struct tables *t, const struct hardware *h,
				   const char *cuda)
{
	for (size_t i = 0; i < h->gpu_count; i++) {
		const struct gpu_row *row = tables_gpu_capability(t, h->gpus[i].capability);
		if (row && *row->sbsa && version_cmp(cuda, row->sbsa) < 0)
			return row;
	}

	return NULL;
}

enum driver_fit driver_fit(const struct tables *t, const struct hardware *h, const char *cuda)
{
	return driver_tegra(t, h, cuda) ? DRIVER_TOO_OLD : driver_fit_any(t, h, cuda);
}

enum driver_fit driver_fit_any(const struct tables *t, const struct hardware *h, const char *cuda)
{
	if (*h->driver_cuda && version_cmp(cuda, h->driver_cuda) <= 0)
		return DRIVER_OWN;
	const struct toolkit_row *row = nearest_toolkit(t, cuda);
	if (*h->driver && row) {
		const bool same = strcmp(row->version, cuda) == 0;
		if (same && version_cmp(h->driver, row->driver) >= 0)
			return DRIVER_OWN;
		return version_cmp(h->driver, row->driver_floor) >= 0 ? DRIVER_COMPATIBLE
								      : DRIVER_TOO_OLD;
	}

	if (*h->driver_cuda)
		return major_of(cuda) == major_of(h->driver_cuda) ? DRIVER_COMPATIBLE
								  : DRIVER_TOO_OLD;
	return DRIVER_UNKNOWN;
}

const struct gpu_row *driver_lacks(const struct tables *t, const struct hardware *h)
{
	for (size_t i = 0; i < h->gpu_count; i++) {
		const struct gpu_row *row = tables_gpu_capability(t, h->gpus[i].capability);
		if (!row || !*row->driver_min)
			continue;
		if (*h->driver && version_cmp(h->driver, row->driver_min) < 0)
			return row;
		if (!*h->driver && *h->driver_cuda &&
		    version_cmp(h->driver_cuda, row->cuda_min) < 0)
			return row;
	}

	return NULL;
}

const char *driver_text(const struct hardware *h, struct arena *a)
{
	return *h->driver ? h->driver : arena_printf(a, "for CUDA %s", h->driver_cuda);
}
