#include "base/sys/json.h"
#include "step/pipeline/pipeline.h"

void pipeline_failed(struct pipeline_failures *f, const struct selection *t, const struct err *why,
		     struct arena *a)
{
	f->items = arena_room(a, f->items, f->count, &f->cap, 8, sizeof(*f->items));
	f->items[f->count++] =
		(struct pipeline_failure){variant_name(&t->variant, a), t->release->name, *why};
}

const struct pipeline_item *pipeline_find(const struct pipeline_item *items, size_t count,
					  const struct selection *t, unsigned rev)
{
	AUTO_ARENA struct arena a = {0};
	const char *name = variant_name(&t->variant, &a);

	for (size_t i = 0; i < count; i++) {
		const struct plan *p = items[i].plan;
		if (items[i].asked && strcmp(items[i].asked, name) == 0 &&
		    strcmp(p->release, t->release->name) == 0 && p->metadata_rev == (rev ? rev : 1))
			return &items[i];
	}

	return NULL;
}

void pipeline_free(struct pipeline_results *results)
{
	for (size_t i = 0; i < results->count; i++) {
		json_decref(results->items[i].record);
		json_decref(results->items[i].shard);
		json_decref(results->items[i].check);
		results->items[i].record = results->items[i].shard = results->items[i].check = NULL;
	}
}
