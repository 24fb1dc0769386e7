#include "step/source/cuda_headers.h"

enum { MOST_FILES = 2000, MOST_LEVELS = 8 };

static const char *const units[] = {".cpp", ".cc", ".cxx"};
static const char *const headers[] = {".h", ".hpp", ".hxx", ".cuh"};
/* of CUDA, and of torch for CUDA; these include the former */
static const char *const cuda_names[] = {"cuda_runtime", "cuda.h",     "cuda_fp16.h", "cuda_bf16.h",
					 "cublas_v2.h",  "cusparse.h", "cufft.h",     "curand",
					 "ATen/cuda/",   "c10/cuda/"};
static const char *const others[] = {"test/",  "tests/",       "example/",   "examples/",
				     "docs/",  "third_party/", "benchmark/", "benchmarks/",
				     "build/", ".git/"};

static bool ends(const char *path, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (path_has_suffix(path, list[i]))
			return true;
	return false;
}

bool cuda_headers_want(const char *path)
{
	return ends(path, units, ARRAY_LEN(units)) || ends(path, headers, ARRAY_LEN(headers));
}

/* What follows '#' and blanks on a line; NULL: it is no directive. */
static const char *directive(const char *line)
{
	line += strspn(line, " \t");
	return *line == '#' ? line + 1 + strspn(line + 1, " \t") : NULL;
}

static bool is_word(const char *text, const char *word)
{
	const size_t n = strlen(word);
	return strncmp(text, word, n) == 0 && !isalnum((unsigned char)text[n]) && text[n] != '_';
}

static void add_include(struct cuda_file *f, const char *text, struct arena *a)
{
	const char *from = strpbrk(text, "<\"\n");

	if (!from || *from == '\n')
		return;
	const char *name = arena_strndup(a, from + 1, strcspn(from + 1, ">\"\n"));
	for (size_t i = 0; i < ARRAY_LEN(cuda_names); i++)
		f->direct = f->direct || strncmp(name, cuda_names[i], strlen(cuda_names[i])) == 0;
	strlist_once(&f->includes, a, path_base(name));
}

void cuda_headers_add(struct cuda_headers *h, const char *path, const char *text)
{
	struct cuda_file f = {.path = arena_strdup(h->a, path)};
	unsigned depth = 0, guard = 0;
	bool first = true;

	if (h->count == MOST_FILES) {
		h->incomplete = true;
		return;
	}

	for (const char *line = text; line && *line;
	     line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		const char *d = directive(line);
		if (!d)
			continue;
		if (is_word(d, "if") || is_word(d, "ifdef") || is_word(d, "ifndef")) {
			guard = first && is_word(d, "ifndef") ? 1 : guard;
			depth++;
		} else if (is_word(d, "endif")) {
			depth -= depth > 0;
		} else if (is_word(d, "include") && depth <= guard) {
			add_include(&f, d + strlen("include"), h->a);
		}

		first = false;
	}

	h->files = arena_room(h->a, h->files, h->count, &h->cap, 64, sizeof(*h->files));
	h->files[h->count++] = f;
}

static bool needs(const struct cuda_headers *h, const struct cuda_file *f, unsigned level)
{
	if (f->direct || level == MOST_LEVELS)
		return f->direct;
	for (size_t i = 0; i < h->count; i++)
		if (strlist_contains(&f->includes, path_base(h->files[i].path)) &&
		    needs(h, &h->files[i], level + 1))
			return true;
	return false;
}

static bool counts(const char *path)
{
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		const char *at = strstr(path, others[i]);
		if (at && (at == path || at[-1] == '/'))
			return false;
	}

	return ends(path, units, ARRAY_LEN(units));
}

const char *cuda_headers_need(const struct cuda_headers *h)
{
	const char *found = "";

	for (size_t i = 0; i < h->count && !h->incomplete; i++) {
		if (!counts(h->files[i].path))
			continue;
		if (!needs(h, &h->files[i], 0))
			return "";
		found = *found ? found : h->files[i].path;
	}

	return h->incomplete ? "" : found;
}
