#include <fnmatch.h>

#include "core/plan/plan_parts.h"

/* What the tables know of the package: a requirement
 * that replaces its own, checks that it fails. */
static void add_known(const struct tables *t, const char *package, struct plan *p, struct arena *a)
{
	const char *version = strchr(package, '=');

	for (unsigned i = 0; i < t->captured_count; i++) {
		const struct captured_row *k = &t->captured[i];
		if (!version || strlen(k->package) != (size_t)(version - package) ||
		    strncmp(package, k->package, (size_t)(version - package)) != 0 ||
		    fnmatch(k->version, version + 1, 0) != 0)
			continue;
		if (*k->requirement)
			strlist_ref(&p->requires, a, k->requirement);
		if (!*k->check)
			continue;
		kvlist_set(&p->defects, a, k->check, k->why);
		strlist_addf(&p->notes, a, "known to fail: check '%s': %s", k->check, k->why);
	}
}

int plan_captured(const struct tables *t, const struct plan_captured_request *q, struct arena *a,
		  const struct plan **ret, const struct toolchain **ret_tools, struct err *e)
{
	struct plan *p = arena_alloc(a, sizeof(*p));
	struct package_row *row = arena_alloc(a, sizeof(*row));
	struct release_row *release = arena_alloc(a, sizeof(*release));
	struct source_row *source = arena_alloc(a, sizeof(*source));
	struct tool *ccache = arena_alloc(a, sizeof(*ccache));
	struct toolchain *tools = arena_alloc(a, sizeof(*tools));
	struct strlist digits = {0};
	const char *version = q->version, *label = "", *plus = strchr(q->version, '+');

	if (plus) {
		version = arena_strndup(a, q->version, (size_t)(plus - q->version));
		label = plus + 1;
	}

	strlist_split(&digits, a, q->python, ".");
	*source = (struct source_row){.name = arena_printf(a, "installed files of %s", q->package),
				      .sha256 = q->digest,
				      .into = ""};
	*row = (struct package_row){.backend = "captured",
				    .series = "",
				    .requirements = "",
				    .cudnn = "",
				    .sources = source,
				    .sources_count = 1};
	*release = (struct release_row){
		.name = q->package, .base = q->version, .source_date_epoch = q->epoch};
	*p = (struct plan){
		.variant = arena_printf(a, "pytorch-python%s-root", strlist_join(&digits, a, "")),
		.package = PACKAGE_TORCH,
		.distribution = "torch",
		.release = q->package,
		.version = version,
		.local_label = label,
		.platform = q->platform,
		.python = q->python,
		.release_row = release,
		.package_row = row,
		.metadata_rev = q->metadata_rev ? q->metadata_rev : 1,
		.torch = "",
		.torch_version = "",
		.captured = true,
		.cuda_libraries = "",
		.sandbox = sandbox_text(q->sandbox, q->without_protections, a),
		.platform_tag = "manylinux"};
	row->version = p->version;
	strlist_addf(&p->notes, a, "not compiled by ptbuild: captured from %s of %s", q->package,
		     q->root->id);
	add_known(t, q->package, p, a);
	/* The record has no compiler to name. Where it comes
	 * from and which checks it fails counts in the keys. */
	struct strlist known = {0};
	strlist_ref(&known, a, p->notes.items[0]);
	for (size_t i = 0; i < p->defects.count; i++)
		strlist_ref(&known, a, p->defects.items[i].key);
	*ccache = (struct tool){.name = "ccache", .version = "", .id = ""};
	*tools = (struct toolchain){.tools = ccache,
				    .count = 1,
				    .text = strlist_join(&known, a, "\n"),
				    .fingerprint = q->root->fingerprint};
	struct plan_request request = {.toolchain = tools,
				       .sandbox = q->sandbox,
				       .without_protections = q->without_protections};
	struct plan_context c = {
		.tables = t, .request = &request, .arena = a, .release = release, .package = row};
	const char *glibc;
	if (plan_keys(&c, p, e) < 0 || root_glibc(q->root, a, &glibc, e) < 0)
		return -1;
	runs_on_of_plan(t, p, glibc, a, &p->runs_on);
	*ret = p;
	*ret_tools = tools;
	return 0;
}
