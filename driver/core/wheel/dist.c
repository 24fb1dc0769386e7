#include "core/wheel/dist.h"

#include "base/sys/fs.h"

enum { FILE_MAX = 64 << 20 };

void dist_of_headers(const struct wheel_headers *h, const struct wheel_name *n, struct arena *a,
		     struct dist *ret)
{
	struct strlist lines = {0};
	const char *name = wheel_headers_get(h, "Name"), *version = wheel_headers_get(h, "Version");
	struct dist d = {.name = wheel_normalize(name ? name
						 : n  ? n->dist
						      : "",
						 a),
			 .version = version ? version : ""};

	d.version = *d.version || !n ? d.version : n->version;
	d.title = arena_printf(a, "%s %s", name ? name : d.name, d.version);
	wheel_headers_all(h, "Requires-Dist", a, &lines);
	d.requires = arena_array(a, lines.count, sizeof(*d.requires));
	for (size_t i = 0; i < lines.count; i++)
		if (requirement_parse(lines.items[i], a, &d.requires[d.requires_count],
				      ERR_IGNORED) == 0)
			d.requires_count++;
	if (n)
		wheel_scope_of(n, wheel_headers_get(h, "Requires-Python"), a, &d.scope);
	*ret = d;
}

/* As the RECORD of an environment has it; NULL: it depends on the Python (headers). */
static const char *placed(const char *name, struct arena *a)
{
	static const char *const places[][2] = {{".data/scripts/", "../../../bin/"},
						{".data/data/", "../../../"}};
	const char *site = wheel_installed(name), *at;

	for (size_t i = 0; i < ARRAY_LEN(places) && !site; i++)
		if ((at = strstr(name, places[i][0])))
			site = arena_printf(a, "%s%s", places[i][1], at + strlen(places[i][0]));
	return site;
}

static void sort_rows(struct dist *d)
{
	array_sort(d->rows, d->rows_count, sizeof(*d->rows), text_cmp);
}

void dist_set_rows(struct dist *d, const struct wheel_record_row *rows, size_t count,
		   const char *entry_points, struct arena *a)
{
	struct entry_point *points;
	size_t points_count;

	entry_points_parse(entry_points, a, &points, &points_count);
	d->rows = arena_array(a, count + points_count + 1, sizeof(*d->rows));
	d->rows_count = count;
	for (size_t i = 0; i < count; i++) {
		const char *place = placed(rows[i].path, a);
		d->rows[i] = rows[i];
		d->rows[i].path = place ? place : rows[i].path;
	}

	/* An installer writes it out of these words. */
	for (size_t i = 0; i < points_count; i++)
		if (points[i].script && points[i].name)
			d->rows[d->rows_count++] = (struct wheel_record_row){
				.path = arena_printf(a, "../../../bin/%s", points[i].name),
				.digest = arena_printf(a, "=%s", points[i].target),
				.size = -1};
	sort_rows(d);
}

/* "" where it has none, or none that can be read: verify_info says so. */
static const char *read_entry_points(const struct zip_reader *z, const char *info, struct arena *a)
{
	const struct zip_entry *en = zip_find(z, path_join(a, info, "entry_points.txt"));
	AUTO_BUF struct buf text = {0};

	if (!en || zip_read(z, en, FILE_MAX, &text, ERR_IGNORED) < 0)
		return "";
	return arena_strdup(a, buf_cstr(&text));
}

int dist_of_wheel(const char *path, struct arena *a, struct dist *ret, struct err *e)
{
	AUTO_ZIP struct zip_reader *z = NULL;
	struct wheel_name n;
	struct wheel_headers h;
	struct dist d;
	struct wheel_record_row *rows;
	size_t count;
	const char *info;
	const bool named = wheel_name_parse(path, a, &n, ERR_IGNORED) == 0;

	if (zip_open(path, a, &z, e) < 0 || wheel_zip_dist_info(z, a, &info, e) < 0 ||
	    wheel_zip_headers(z, info, "METADATA", a, &h, e) < 0)
		return -1;
	dist_of_headers(&h, named ? &n : NULL, a, &d);
	if (wheel_zip_record(z, info, a, &rows, &count, ERR_IGNORED) < 0)
		count = 0;
	dist_set_rows(&d, rows, count, read_entry_points(z, info, a), a);
	*ret = d;
	return 0;
}

int dist_installed(const char *info, struct arena *a, struct dist *ret, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	AUTO_BUF struct buf record = {0};
	struct wheel_headers h;
	struct dist d;

	if (fs_read(TRUSTED, path_join(a, info, "METADATA"), FILE_MAX, &text, e) < 0 ||
	    wheel_headers_parse(&(struct file_bytes){buf_cstr(&text), text.len, "METADATA"}, a, &h,
				e) < 0)
		return -1;
	dist_of_headers(&h, NULL, a, &d);
	if (fs_read(TRUSTED, path_join(a, info, "RECORD"), FILE_MAX, &record, ERR_IGNORED) < 0 ||
	    wheel_record_parse(buf_cstr(&record), record.len, "RECORD", a, &d.rows, &d.rows_count,
			       ERR_IGNORED) < 0)
		d.rows_count = 0;
	sort_rows(&d);
	*ret = d;
	return 0;
}

/* Where a distribution's own tags say nothing, those of what it is installed with. */
static enum holds holds(const struct requirement *r, const struct wheel_scope *s, struct arena *a)
{
	return requirement_holds(r, s, "", a);
}

enum holds dist_requires(const struct dist *d, const char *name, const struct wheel_scope *s,
			 struct arena *a)
{
	enum holds most = HOLDS_NEVER;

	for (size_t i = 0; i < d->requires_count; i++) {
		if (strcmp(d->requires[i].name, name) != 0)
			continue;
		const enum holds one = holds(&d->requires[i], s, a);
		most = one > most ? one : most;
	}

	return most;
}

const struct requirement *dist_refuses(const struct dist *d, const struct dist *other,
				       const struct wheel_scope *s, struct arena *a)
{
	for (size_t i = 0; i < d->requires_count; i++) {
		const struct requirement *r = &d->requires[i];
		if (strcmp(r->name, other->name) == 0 &&
		    !specifier_takes(r->specifier, other->version, a) &&
		    holds(r, s, a) == HOLDS_ALWAYS)
			return r;
	}

	return NULL;
}

/* ---- accelerators ---- */

/* "12" of the digits of "cu124", "cu12", "cu118"; "9" of "cu92". */
static char *cuda_major(const char *digits, size_t n, struct arena *a)
{
	return arena_printf(a, "cu%.*s", n > 2 || *digits == '1' ? 2 : 1, digits);
}

const char *label_accelerator(const char *label, struct arena *a)
{
	for (const char *at = label; *at; at++) {
		if (at > label && isalpha((unsigned char)at[-1]))
			continue;
		const char *digits = at + strcspn(at, "0123456789.");
		const size_t letters = (size_t)(digits - at), n = strspn(digits, "0123456789");
		if (letters == 2 && strncmp(at, "cu", 2) == 0 && n)
			return cuda_major(digits, n, a);
		if (letters == 4 && strncmp(at, "rocm", 4) == 0 && n)
			return arena_printf(a, "rocm%.*s", (int)n, digits);
		if (letters == 3 && (strncmp(at, "cpu", 3) == 0 || strncmp(at, "xpu", 3) == 0) &&
		    !n)
			return arena_strndup(a, at, 3);
	}

	return NULL;
}

static bool is_bundle(const struct requirement *r)
{
	return strcmp(r->name, "cuda_toolkit") == 0 || strcmp(r->name, "nvidia_cuda_runtime") == 0;
}

/* The one line of CUDA that a specifier takes: "cu13" of "<14,>=13"; NULL. */
static const char *only_line(const char *specifier, struct arena *a)
{
	enum { FIRST = 9, END = 30 };
	const char *found = NULL;

	for (unsigned i = FIRST; i < END; i++) {
		if (!specifier_takes_series(specifier, arena_printf(a, "%u", i), a))
			continue;
		if (found)
			return NULL;
		found = arena_printf(a, "cu%u", i);
	}

	return found;
}

/* "cu12" of "nvidia_cublas_cu12==12.4", "cu13" of "cuda_toolkit==13.2.2",
 * "cuda_toolkit~=13.0" and "nvidia_cuda_runtime==13.0". */
const char *requirement_accelerator(const struct requirement *r, struct arena *a)
{
	const char *suffix = strrchr(r->name, '_'), *pin = specifier_pin(r->specifier, a);

	if (strncmp(r->name, "nvidia_", 7) == 0 && strncmp(suffix, "_cu1", 4) == 0 &&
	    strlen(suffix) == 5)
		return suffix + 1;
	const char *plus = pin ? strchr(pin, '+') : NULL;
	if (plus && strcmp(r->name, "torch") == 0)
		return label_accelerator(plus + 1, a);
	return is_bundle(r) ? only_line(r->specifier, a) : NULL;
}

bool requirement_serves(const struct requirement *r, const char *accelerator, struct arena *a)
{
	const char *needs = requirement_accelerator(r, a);

	if (!needs && is_bundle(r))
		return strncmp(accelerator, "cu", 2) == 0 &&
		       specifier_takes_series(r->specifier, accelerator + 2, a);
	return !needs || strcmp(accelerator, needs) == 0;
}

const char *dist_accelerator(const struct dist *d, const struct wheel_scope *s, struct arena *a)
{
	const char *plus = strchr(d->version, '+'),
		   *found = plus ? label_accelerator(plus + 1, a) : NULL;

	for (size_t i = 0; i < d->requires_count && !found; i++) {
		found = requirement_accelerator(&d->requires[i], a);
		if (found && holds(&d->requires[i], s, a) == HOLDS_NEVER)
			found = NULL;
	}

	return found;
}

const char *dist_mixed(const struct dist *x, const struct dist *y, const struct wheel_scope *s,
		       struct arena *a)
{
	const struct dist *torch = strcmp(x->name, "torch") == 0 ? x : y,
			  *other = torch == x ? y : x;

	if (strcmp(torch->name, "torch") != 0 || dist_requires(other, "torch", s, a) == HOLDS_NEVER)
		return NULL;
	const char *have = dist_accelerator(torch, s, a), *want = dist_accelerator(other, s, a);
	if (!have || !want || strcmp(have, want) == 0)
		return NULL;
	return arena_printf(a, "%s is built for %s, and %s for %s", other->title, want,
			    torch->title, have);
}

/* ---- paths ---- */

/* Several wheels may have the same file, as nvidia/__init__.py. */
static bool is_shared(const struct wheel_record_row *x, const struct wheel_record_row *y)
{
	return *x->digest && *y->digest && strcmp(x->digest, y->digest) != 0;
}

const char *dist_shares(const struct dist *x, const struct dist *y, size_t *ret_count)
{
	const char *first = NULL;

	*ret_count = 0;
	for (size_t i = 0, k = 0; i < x->rows_count && k < y->rows_count;) {
		const int c = strcmp(x->rows[i].path, y->rows[k].path);
		if (c == 0 && is_shared(&x->rows[i], &y->rows[k])) {
			first = first ? first : x->rows[i].path;
			++*ret_count;
		}

		i += c <= 0;
		k += c >= 0;
	}

	return first;
}
