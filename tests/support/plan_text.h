/* A plan as people see it. */
#pragma once
#include "base/sys/json.h"
#include "core/plan/plan.h"

static inline char *plan_text(const struct plan *p, enum plan_detail detail, struct arena *a)
{
	AUTO_JSON json_t *doc = plan_json(p);
	plan_words(doc, p, detail);
	return show_string(doc, plan_rows, a);
}
