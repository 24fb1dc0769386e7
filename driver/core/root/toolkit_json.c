#include "base/sys/json.h"
#include "core/root/toolkit.h"

json_t *toolkit_json(const struct toolkit *k)
{
	json_t *parts = json_object();
	for (size_t i = 0; i < k->parts_count; i++) {
		const struct toolkit_part *p = &k->parts[i];
		json_object_set_new(parts, p->row->name, p->header ? json_string(p->version) : json_null());
	}
	json_t *o =
		json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:i, s:i}", "version", k->version, "release",
			  k->release, "build", k->build, "layout", toolkit_layout_name(k->layout), "where", k->where,
			  "nvcc", k->nvcc, "targets", json_from_strlist(&k->targets), "options",
			  json_from_strlist(&k->options), "gcc_max", (int)k->gcc_max, "clang_max", (int)k->clang_max);
	json_object_set_new(o, "cxx", json_or_null(k->cxx));
	json_object_set_new(o, "parts", parts);
	return o;
}
