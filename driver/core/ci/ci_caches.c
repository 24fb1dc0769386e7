#include "core/ci/ci_caches.h"

/* Names of caches take letters, digits, '.', '_' and '-' only. */
static const char *files_name(const struct ci_job *j, struct arena *a)
{
	struct strlist parts = {0};

	strlist_split(&parts, a, j->files.world, "+");
	return arena_printf(a, "ptbuild-files-%s-%s-%.16s", j->release,
			    strlist_join(&parts, a, "-"), j->files.key);
}

void ci_keep_files(struct ci_plan *p, const char *format, struct arena *a)
{
	const struct ci_format_row *f = ci_format(p->tables, format);
	const uint64_t most = f ? size_bytes(f->files) : 0;
	struct strlist known = {0};

	for (size_t i = 0; i < p->count; i++) {
		struct ci_job *j = &p->jobs[i];
		const bool kept = j->files.world && j->files.bytes <= most;
		j->files_cache = kept ? files_name(j, a) : "";
		j->keeps_files = kept && !strlist_contains(&known, j->files_cache);
		p->keeps_files = p->keeps_files || kept;
		if (j->keeps_files)
			strlist_ref(&known, a, j->files_cache);
	}
}

struct ci_kept ci_kept(const struct ci_plan *p, const char *format)
{
	struct ci_kept k = {0};

	for (size_t i = 0; i < p->count; i++) {
		const struct ci_job *j = &p->jobs[i];
		/* Shards have their cache on a server. */
		k.compiled += p->remote ? 0 : (size_t)j->makes_cpu + (size_t)j->makes_gpu;
		k.worlds += j->keeps_files;
		k.worlds_bytes += j->keeps_files ? j->files.bytes : 0;
	}

	k.compiled_bytes = k.compiled * size_bytes(ci_format(p->tables, format)->cache);
	return k;
}
