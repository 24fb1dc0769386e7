#include "core/ci/ci.h"

#include "base/strlist.h"

/* The forms of a plan, in the order of the help. */
static const struct ci_output outputs[] = {
	{.name = "table", .kind = CI_DATA},
	{"json", CI_DATA, .document = ci_json},
	{"github", CI_SERVICE, .document = ci_github},
	{"gitlab", CI_SERVICE, .document = ci_gitlab},
	{"kubernetes", CI_VOLUME, .document = ci_kubernetes, .runs = ci_kubernetes_runs},
	{"slurm", CI_SCRIPT, .script = ci_slurm},
};

const struct ci_output *ci_output(const char *format)
{
	return text_search(format, outputs, ARRAY_LEN(outputs), sizeof(*outputs));
}

bool ci_is_service(const char *format)
{
	const struct ci_output *o = ci_output(format);
	return o && o->kind == CI_SERVICE;
}
