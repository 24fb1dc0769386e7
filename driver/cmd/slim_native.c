#include "cmd/slim_native.h"

static int no_gpu(const struct hardware *h, const struct detected *d, struct err *e)
{
	if (*h->gpu_trouble) {
		err_set(e, ERR_POLICY, "the NVIDIA driver of this machine does not work: %s", h->gpu_trouble);
		return err_hint(e, "fix the driver, or name the GPU that the wheel is for, for example --gpu sm89");
	}
	if (*h->driver && !h->gpu_count) {
		err_set(e, ERR_POLICY, "no GPU responds to NVIDIA driver %s of this machine", h->driver);
		return err_hint(e, "give the container or virtual machine its GPU, or name one, for example --gpu "
				   "sm89");
	}
	if (h->gpu_count)
		err_set(e, ERR_POLICY, "no GPU target is known for this machine: %s",
			d->warnings.count ? d->warnings.items[0] : h->gpus[0].name);
	else
		err_set(e, ERR_POLICY, "this machine has no NVIDIA GPU, so '--gpu native' has no meaning");
	return err_hint(e, "name the GPU that the wheel is for, for example --gpu sm89 for an RTX 4090 or L4; "
			   "'ptbuild list --gpus' lists them");
}

int slim_native(struct cmd_context *c, const char **ret, const struct hardware **ret_machine, struct err *e)
{
	const struct hardware_facts *facts;
	const struct hardware *h;
	const struct tables *t;
	struct detected *d = arena_array(c->arena, 1, sizeof(*d));
	if (cmd_tables(c, &t, e) < 0 || cmd_machine(c, true, &facts, &h, e) < 0)
		return -1;
	detect_gpus_only(t, h, c->arena, d);
	if (!d->gpu)
		return no_gpu(h, d, e);
	log_info(c->run->log, "native is %s on this machine: %s", d->gpu, d->reasons.items[0]);
	for (size_t i = 0; i < d->warnings.count; i++)
		log_warn(c->run->log, "%s", d->warnings.items[i]);
	*ret = d->gpu;
	*ret_machine = h;
	return 0;
}
