#include "step/pipeline/make.h"

#include <string.h>

#include "base/path.h"
#include "step/pack/sbom.h"

static struct sbom_file *inputs(const struct making *m, size_t *ret_count)
{
	const struct package_row *row = m->plan->package_row;
	struct sbom_file *files = arena_array(m->arena, row->sources_count + m->plan->patches_count, sizeof(*files));
	size_t n = 0;
	for (unsigned i = 0; i < row->sources_count; i++)
		files[n++] = (struct sbom_file){"source", row->sources[i].name, row->sources[i].sha256};
	for (size_t i = 0; i < m->plan->patches_count; i++)
		files[n++] = (struct sbom_file){"patch", m->plan->patches[i].name, m->plan->patches[i].sha256};
	*ret_count = n;
	return files;
}

static struct sbom_library *libraries(const struct making *m, const char *dir)
{
	const struct relocate_result *r = &m->relocated;
	struct sbom_library *out = arena_array(m->arena, r->count, sizeof(*out));
	for (size_t i = 0; i < r->count; i++) {
		const struct relocate_library *l = &r->libraries[i];
		out[i] = (struct sbom_library){path_join(m->arena, dir, l->name), l->needed, l->source, l->package,
					       l->sha256};
	}
	return out;
}

int making_papers(struct making *m, const char *tree, const char *libs_dir, struct err *e)
{
	static const char digest_mark[] = "sha256:";
	const char *identity = m->torch ? m->torch->identity : "";
	struct sbom_request q = {.tree = tree,
				 .root = m->q->root,
				 .distribution = m->plan->distribution,
				 .version = plan_full_version(m->plan, m->arena),
				 .platform = m->plan->platform,
				 .generator = "ptbuild " PTBUILD_VERSION,
				 .torch = m->torch ? m->torch->version : "",
				 .torch_sha256 = strncmp(identity, digest_mark, strlen(digest_mark)) == 0
							 ? identity + strlen(digest_mark)
							 : "",
				 .epoch = m->plan->release_row->source_date_epoch,
				 .libraries = libraries(m, libs_dir),
				 .libraries_count = m->relocated.count};
	q.files = inputs(m, &q.files_count);
	return sbom_write(&q, m->run, m->arena, &m->licenses, e);
}
