#include <string.h>

#include "step/verify/verify_parts.h"

static void check_distribution(struct verifying *v, const struct variant *want)
{
	const char *distribution = tables_distribution(want->package);
	if (strcmp(v->report.name.dist, distribution) != 0)
		verify_add(v, FINDING_ERROR, "against", "", "is a wheel of %s, not of %s", v->report.name.dist,
			   distribution);
}

/* "cp313" for "3.13"; the file name may have several: "cp313.cp314". */
static void check_python(struct verifying *v, const struct variant *want)
{
	struct strlist digits = {0}, tags = {0};
	strlist_split(&digits, v->a, want->python, ".");
	strlist_split(&tags, v->a, v->report.name.python, ".");
	if (!strlist_contains(&tags, arena_printf(v->a, "cp%s", strlist_join(&digits, v->a, ""))))
		verify_add(v, FINDING_ERROR, "against", "", "is for the Python '%s', not for %s", v->report.name.python,
			   want->python);
}

/* A toolkit that no table has is one, too: its word is compared, not its row. */
static const char *toolkit_word(struct verifying *v, const char *label)
{
	size_t n = strncmp(label, "cu", 2) == 0 ? strspn(label + 2, "0123456789") : 0;
	return n && (!label[2 + n] || label[2 + n] == '.') ? arena_strndup(v->a, label, 2 + n) : NULL;
}

/* A variant with GPU targets that names no toolkit takes any, but it takes one. */
static void check_toolkit(struct verifying *v, const struct variant *want, const char *label)
{
	const char *said = toolkit_word(v, label);
	const char *wanted = want->cuda ? profile_label_toolkit(want->cuda, v->a) : NULL;
	bool any = !wanted && want->profile.targets_count > 0;
	if (said ? any || (wanted && strcmp(said, wanted) == 0) : !wanted && !any)
		return;
	verify_add(v, FINDING_ERROR, "against", "", "has the label '%s', which says %s, not %s", label,
		   said ? said : "no CUDA",
		   wanted ? wanted
		   : any  ? "any CUDA"
			  : "cpu");
}

/* A label that promises something must promise what the variant says. */
static void check_label(struct verifying *v, const struct variant *want)
{
	const char *plus = strchr(v->report.name.version, '+');
	struct promise said;
	if (!plus || !v->q->tables)
		return;
	promise_of_label(v->q->tables, plus + 1, v->a, &said);
	if (said.binding && said.isa != want->profile.isa)
		verify_add(v, FINDING_ERROR, "against", "", "has the label '%s', which says %s, not %s", plus + 1,
			   said.isa->name, want->profile.isa ? want->profile.isa->name : want->profile.name);
	if (said.binding || toolkit_word(v, plus + 1))
		check_toolkit(v, want, plus + 1);
}

void verify_against(struct verifying *v)
{
	const struct variant *want = v->q->against;
	check_distribution(v, want);
	check_python(v, want);
	check_label(v, want);
}
