#include "core/variant/variant.h"

#include "base/sys/fs.h"

#define MPS_NAME "darwin-mps"
#define NATIVE "native" /* made exact before it comes here (core/detect.h) */

/* Letters and digits of a product's name, lower case: "geforcertx4090". */
static char *plain(const char *name, struct arena *a)
{
	char *text = arena_alloc(a, strlen(name) + 1), *to = text;

	for (const char *c = name; *c; c++)
		if (isalnum((unsigned char)*c))
			*to++ = (char)tolower((unsigned char)*c);
	return text;
}

/* "h100", "rtx4090", "geforce-rtx-4090": the hint
 * names the target of the product, whose name ends so. */
static bool hint_product(const struct tables *t, const char *word, const char *rest,
			 struct arena *a, struct err *e)
{
	const char *asked = plain(word, a);
	size_t n = strlen(asked);
	/* not "90" of "RTX 3090" */
	bool a_name = n >= 4 || (n >= 2 && asked[strspn(asked, "0123456789")]);

	for (unsigned i = 0; a_name && i < t->gpus_count; i++)
		for (unsigned k = 0; k < t->gpus[i].devices_count; k++) {
			const char *name = plain(t->gpus[i].devices[k], a);
			size_t len = strlen(name);
			if (len < n || strcmp(name + len - n, asked) != 0)
				continue;
			err_hint(
				e, "%s is sm%s: write sm%s%s", t->gpus[i].devices[k], t->gpus[i].sm,
				t->gpus[i].sm,
				rest ? rest
				     : "-avx2, or another instruction set ('ptbuild list --isas')");
			return true;
		}
	return false;
}

/* Numbers of GPUs before the first row: 20 to 37 are Fermi and Kepler, in two digits. */
static bool is_older(const struct tables *t, const char *word)
{
	enum { FIRST_OF_TWO_DIGITS = 20 };
	const char *digits = strncmp(word, "sm", 2) == 0 ? word + 2 : word;
	const unsigned long number = strtoul(digits, NULL, 10);

	if (!t->gpus_count || strlen(digits) != 2 || strspn(digits, "0123456789") != 2)
		return false;
	return number >= FIRST_OF_TWO_DIGITS && number < strtoul(t->gpus[0].sm, NULL, 10);
}

static int unknown_gpu(const struct tables *t, const char *word, struct arena *a, struct err *e)
{
	struct strlist known = {0};
	struct strlist newest = {0}; /* of two that are equally near, the newer GPU is meant */

	strlist_ref(&known, a, "cpu");
	for (unsigned i = 0; i < t->gpus_count; i++) {
		strlist_addf(&known, a, "sm%s", t->gpus[i].sm);
		strlist_addf(&newest, a, "sm%s", t->gpus[t->gpus_count - 1 - i].sm);
	}

	strlist_ref(&newest, a, "cpu");
	err_set(e, ERR_CONFIG, "unknown GPU target '%s'", word);
	const char *dot = strchr(word, '.'),
		   *bare = dot ? arena_printf(a, "%.*s%s", (int)(dot - word), word, dot + 1) : word;
	if (tables_gpu(t, bare))
		return err_hint(e, "did you mean 'sm%s'?", bare);
	if (hint_product(t, word, "", a, e))
		return -1;
	if (is_older(t, word))
		return err_hint(e, "no release is for GPUs older than sm%s", t->gpus[0].sm);
	return suggest_known(e, suggest_nearest(word, newest.items, newest.count), &known);
}

static int check_suffix(const struct gpu_row *row, const char *suffix, struct arena *a,
			struct err *e)
{
	struct strlist known = {0};

	for (unsigned i = 0; i < row->suffixes_count; i++) {
		if (strcmp(row->suffixes[i].suffix, suffix) == 0)
			return 0;
		strlist_addf(&known, a, "sm%s%s", row->sm, row->suffixes[i].suffix);
	}

	err_set(e, ERR_CONFIG, "unknown GPU target 'sm%s%s': sm%s has no suffix '%s'", row->sm,
		suffix, row->sm, suffix);
	if (known.count)
		return err_hint(e, "use sm%s or %s", row->sm, strlist_join(&known, a, " "));
	return err_hint(e, "use sm%s", row->sm);
}

/* A list of GPU targets that is read. */
struct target_list {
	const struct tables *t;
	struct arena *a;
	struct gpu_target *items;
	unsigned count;
};

static int parse_target(struct target_list *l, const char *word, struct err *e)
{
	const struct tables *t = l->t;
	struct arena *a = l->a;
	size_t digits = strncmp(word, "sm", 2) == 0 ? strspn(word + 2, "0123456789") : 0;
	const struct gpu_row *row =
		digits ? tables_gpu(t, arena_strndup(a, word + 2, digits)) : NULL;
	const char *suffix = word + 2 + digits;

	/* what is for one chip, or for a family, is not for the GPUs of an alias */
	if (!row || (*suffix && strncmp(row->sm, word + 2, digits) != 0))
		return unknown_gpu(t, word, a, e);
	if (*suffix && check_suffix(row, suffix, a, e) < 0)
		return -1;
	l->items[l->count++] =
		(struct gpu_target){.row = row, .suffix = arena_strdup(a, *suffix ? suffix : "")};
	return 0;
}

static int by_target(const void *a, const void *b)
{
	const struct gpu_target *x = a;
	const struct gpu_target *y = b;
	long order = strtol(x->row->sm, NULL, 10) - strtol(y->row->sm, NULL, 10);

	return order ? (order < 0 ? -1 : 1) : strcmp(x->suffix, y->suffix);
}

/* Adds a target, or the "ptx" that belongs to the one before it. */
static int add_word(struct target_list *l, const char *word, struct err *e)
{
	struct gpu_target *last = l->count ? &l->items[l->count - 1] : NULL;

	if (strcmp(word, "ptx") == 0) {
		if (!last || last->ptx) {
			err_set(e, ERR_CONFIG, "'ptx' does not follow a GPU target");
			return err_hint(e, "write it after its target: sm90+ptx");
		}

		last->ptx = true;
		return 0;
	}

	if (strcmp(word, "cpu") == 0 || strcmp(word, "mps") == 0) {
		err_set(e, ERR_CONFIG, "'%s' cannot be in a list of GPU targets", word);
		return err_hint(e, "a profile is for the CPU alone, or for a list like sm80+sm90");
	}

	return parse_target(l, word, e);
}

/* Sorted, each target once; a target named with and without "ptx" has it. */
static unsigned settle_targets(struct gpu_target *targets, unsigned count)
{
	unsigned n = 0;

	qsort(targets, count, sizeof(*targets), by_target);
	for (unsigned i = 0; i < count; i++) {
		if (n && by_target(&targets[n - 1], &targets[i]) == 0)
			targets[n - 1].ptx |= targets[i].ptx;
		else
			targets[n++] = targets[i];
	}

	return n;
}

static int parse_targets(struct target_list *l, const char *text, struct err *e)
{
	l->items = arena_array(l->a, strlen(text) / 2 + 1, sizeof(*l->items));

	for (const char *c = text;; c++) {
		size_t n = strcspn(c, "+");
		if (!n) {
			err_set(e, ERR_CONFIG, "empty GPU target in '%s'", text);
			return err_hint(e, "a list has one '+' between its targets: sm80+sm90");
		}

		if (add_word(l, arena_strndup(l->a, c, n), e) < 0)
			return -1;
		c += n;
		if (!*c)
			break;
	}

	l->count = settle_targets(l->items, l->count);
	return 0;
}

int profile_set_gpu(const struct tables *t, const char *text, struct arena *a, struct profile *p,
		    struct err *e)
{
	struct target_list l = {.t = t, .a = a};

	if (strcmp(text, "cpu") != 0 && strcmp(text, "mps") != 0) {
		if (parse_targets(&l, text, e) < 0)
			return -1;
		p->gpu = GPU_CUDA;
		p->targets = l.items;
		p->targets_count = l.count;
		return 0;
	}

	p->gpu = *text == 'c' ? GPU_CPU : GPU_MPS;
	p->targets = NULL;
	p->targets_count = 0;
	if (p->gpu == GPU_MPS)
		p->isa = NULL;
	return 0;
}

int profile_set_isa(const struct tables *t, const char *text, struct arena *a, struct profile *p,
		    struct err *e)
{
	const struct isa_row *row = tables_isa(t, text);
	struct strlist known = {0};

	if (row) {
		p->isa = row;
		return 0;
	}

	for (unsigned i = 0; i < t->isas_count; i++)
		strlist_ref(&known, a, t->isas[i].name);
	err_set(e, ERR_CONFIG, "unknown instruction set '%s'", text);
	if (strcmp(text, NATIVE) == 0)
		return err_hint(e, "use it only with --profile, for example --profile cpu-native: "
				   "a variant's name means the same on every machine");
	return suggest_known(e, suggest_nearest(text, known.items, known.count), &known);
}

char *profile_gpu_name(const struct profile *p, struct arena *a)
{
	struct strlist l = {0};

	if (p->gpu != GPU_CUDA)
		return arena_strdup(a, p->gpu == GPU_CPU ? "cpu" : "mps");
	for (unsigned i = 0; i < p->targets_count; i++)
		strlist_addf(&l, a, "sm%s%s%s", p->targets[i].row->sm, p->targets[i].suffix,
			     p->targets[i].ptx ? "+ptx" : "");
	return strlist_join(&l, a, "+");
}

char *profile_composed_name(const struct profile *p, struct arena *a)
{
	return p->isa ? arena_printf(a, "%s-%s", profile_gpu_name(p, a), p->isa->name)
		      : arena_strdup(a, MPS_NAME);
}

bool profile_is_planned_only(const struct profile *p)
{
	return p->gpu == GPU_MPS;
}

void profile_settle_platform(struct profile *p)
{
	p->platform = p->isa ? p->isa->platform : "aarch64-darwin";
}

/* A name without '-': say which half is missing, if it is one. */
static int refuse_half(const struct tables *t, const char *name, struct arena *a, struct err *e)
{
	struct strlist known = {0};

	if (tables_isa(t, name)) {
		err_set(e, ERR_CONFIG, "no GPU target in profile '%s'", name);
		return err_hint(e, "write cpu-%s, or sm90-%s for a GPU of compute capability 9.0",
				name, name);
	}

	if (strncmp(name, "sm", 2) == 0 || strcmp(name, "cpu") == 0) {
		err_set(e, ERR_CONFIG, "no instruction set in profile '%s'", name);
		for (unsigned i = 0; i < t->isas_count; i++)
			strlist_addf(&known, a, "%s-%s", name, t->isas[i].name);
		return err_hint(e, "one of: %s", strlist_join(&known, a, " "));
	}

	err_set(e, ERR_CONFIG, "unknown profile '%s'", name);
	if (strcmp(name, NATIVE) == 0)
		return err_hint(e, "use it only as --profile native: a variant's name means the "
				   "same on every machine");
	if (strcmp(name, "mps") == 0 || strcmp(name, "darwin") == 0)
		return err_hint(e, "did you mean '" MPS_NAME "'?");
	if (hint_product(t, name, NULL, a, e))
		return -1;
	return err_hint(e, "a profile is GPU-ISA, like sm90-avx512 or cpu-avx2, or " MPS_NAME
			   ", or a YAML file");
}

/* "sm80,sm90-avx512" is one profile with '+', "cpu-avx2,cpu-avx512"
 * is two: both are suggested only if they parse. */
static int refuse_comma(const struct tables *t, const char *name, struct arena *a, struct err *e)
{
	struct profile p;
	struct strlist parts = {0}, calls = {0};

	strlist_split(&parts, a, name, ",");
	const char *joined = strlist_join(&parts, a, "+");
	bool all = parts.count > 1;
	err_set(e, ERR_CONFIG, "unknown profile '%s'", name);
	if (parts.count > 1 && profile_parse(t, joined, a, &p, ERR_IGNORED) == 0)
		return err_hint(e, "for one wheel write '%s'", joined);
	for (size_t i = 0; i < parts.count; i++) {
		all = all && profile_parse(t, parts.items[i], a, &p, ERR_IGNORED) == 0;
		strlist_addf(&calls, a, "--profile %s", parts.items[i]);
	}

	if (!all)
		return err_hint(e, "a profile has no ',': a list of GPU targets is written like "
				   "sm80+sm90-avx512");
	return err_hint(e, "run it once for each: %s; or write them into a file for --matrix FILE",
			strlist_join(&calls, a, ", then "));
}

int profile_parse(const struct tables *t, const char *name, struct arena *a, struct profile *ret,
		  struct err *e)
{
	struct profile p = {.file = "", .platform = ""};
	const char *dash = strchr(name, '-');

	if (strcmp(name, MPS_NAME) == 0) {
		p.gpu = GPU_MPS;
	} else if (strchr(name, ',')) {
		return refuse_comma(t, name, a, e);
	} else if (!dash) {
		return refuse_half(t, name, a, e);
	} else if (strncmp(name, "darwin-", 7) == 0 || strncmp(name, "mps-", 4) == 0) {
		err_set(e, ERR_CONFIG, "unknown profile '%s'", name);
		return err_hint(e,
				"did you mean '" MPS_NAME "'? it has no instruction set to choose");
	} else if (profile_set_gpu(t, arena_strndup(a, name, (size_t)(dash - name)), a, &p, e) <
			   0 ||
		   profile_set_isa(t, dash + 1, a, &p, e) < 0) {
		return err_wrap(e, "profile '%s'", name);
	}

	profile_settle_platform(&p);
	p.name = profile_composed_name(&p, a);
	*ret = p;
	return 0;
}

/* Returns the file of a stem in <profiles>/examples or in this directory; NULL if neither
 * exists. */
static const char *example_path(const struct tables *t, const char *name, struct arena *a)
{
	if (!path_is_safe_relative(name) || strchr(name, '/'))
		return NULL;
	const char *path = arena_printf(a, "%s/examples/%s.yaml", t->dir, name);
	if (!fs_exists(TRUSTED, path))
		/* so that the name of its variant can be typed again */
		path = arena_printf(a, "%s.yaml", name);
	return fs_exists(TRUSTED, path) ? path : NULL;
}

int profile_by_name(const struct tables *t, const char *name, struct inherit *inherit,
		    struct arena *a, struct profile *ret, struct err *e)
{
	if (strchr(name, '/') || path_has_suffix(name, ".yaml"))
		return profile_file_load(t, name, inherit, a, ret, e);
	if (profile_parse(t, name, a, ret, e) == 0)
		return 0;
	const char *example = example_path(t, name, a);
	if (!example)
		return -1;
	err_clear(e);
	return profile_file_load(t, example, inherit, a, ret, e);
}

int profile_load(const struct tables *t, const char *name_or_path, struct arena *a,
		 struct profile *ret, struct err *e)
{
	struct inherit none = {0};
	return profile_by_name(t, name_or_path, &none, a, ret, e);
}

/* Adds the parts of a local version label: letters and digits, with single dots between (PEP 440
 * reads '_' and '-' as dots). */
static void add_label(struct strlist *l, struct arena *a, const char *text)
{
	strlist_split(l, a, text, "_-+.");
}

char *profile_label_toolkit(const char *version, struct arena *a)
{
	struct strlist digits = {0};
	strlist_split(&digits, a, version, ".");
	return arena_printf(a, "cu%s", strlist_join(&digits, a, ""));
}

char *profile_label(const struct profile *p, const char *cuda, struct arena *a)
{
	struct strlist l = {0};

	if (cuda)
		strlist_ref(&l, a, profile_label_toolkit(cuda, a));
	if (p->gpu != GPU_CUDA)
		strlist_ref(&l, a, p->gpu == GPU_CPU ? "cpu" : "mps");
	for (unsigned i = 0; i < p->targets_count; i++)
		strlist_addf(&l, a, "sm%s%s%s", p->targets[i].row->sm, p->targets[i].suffix,
			     p->targets[i].ptx ? ".ptx" : "");
	if (p->isa)
		add_label(&l, a, p->isa->name);
	if (*p->file)
		add_label(&l, a, p->name);
	return strlist_join(&l, a, ".");
}
