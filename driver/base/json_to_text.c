#include "base/show.h"

#include <ctype.h>
#include <time.h>

#include "base/strlist.h"
#include "base/text.h"

struct thing {
	const json_t *is;
	const char *key; /* in its object; NULL */
	const struct thing *in;
	show_escape *escape; /* NULL: for people */
};

struct page {
	const struct term *term;
	struct buf *out;
};

/* ---- members ---- */

static const json_t *member(const struct thing *t, const char *path, size_t len)
{
	for (; *path == '/' && t; path++, len--)
		t = t->in;
	for (; t; t = t->in) {
		const json_t *at = t->is;
		for (size_t i = 0; at && i < len;) {
			const char *dot = memchr(path + i, '.', len - i);
			size_t n = dot ? (size_t)(dot - path) - i : len - i;
			char key[64]; /* jansson 2.13, which releases may have, needs no length */
			snprintf(key, sizeof(key), "%.*s", (int)n, path + i);
			at = json_is_array(at) && n == 1 && *key >= '0' && *key <= '9'
				     ? json_array_get(at, (size_t)(*key - '0'))
				     : json_object_get(at, key);
			i += n + 1;
		}

		if (at)
			return at;
	}

	return NULL;
}

static size_t size_of(const json_t *v)
{
	return json_is_object(v) ? json_object_size(v) : json_array_size(v);
}

static bool is_empty(const json_t *v)
{
	if (!v || json_is_null(v))
		return true;
	if (json_is_string(v))
		return !*json_string_value(v);
	return (json_is_array(v) || json_is_object(v)) && size_of(v) == 0;
}

static bool is_set(const json_t *v)
{
	return !is_empty(v) && !json_is_false(v) &&
	       !(json_is_number(v) && json_number_value(v) == 0);
}

static void put_size(const json_t *v, bool binary, struct buf *out)
{
	static const char *const units[2][5] = {{"B", "kB", "MB", "GB", "TB"},
						{"B", "KiB", "MiB", "GiB", "TiB"}};
	const double step = binary ? 1024 : 1000;
	double n = json_number_value(v);
	size_t i = 0;

	/* packages show sizes in MB, even those of several GB */
	for (; n >= step && i + 1 < (binary ? 5 : 3); i++)
		n /= step;
	buf_printf(out, i ? "%.1f %s" : "%.0f %s", n, units[binary][i]);
}

static void put_time(double seconds, struct buf *out)
{
	char text[64];
	size_time(text, sizeof(text), seconds);
	buf_addstr(out, text);
}

static void put_age(long seconds, struct buf *out)
{
	if (seconds < 7200)
		buf_printf(out, "%ld min", seconds > 0 ? seconds / 60 : 0);
	else
		buf_printf(out, seconds < 172800 ? "%ld h" : "%ld days",
			   seconds / (seconds < 172800 ? 3600 : 86400));
}

static void put_value(const json_t *v, const char *sep, struct buf *out);

static void put_list(const json_t *list, const char *sep, struct buf *out)
{
	size_t i;
	const json_t *v;

	json_array_foreach(list, i, v)
	{
		buf_addstr(out, i ? sep : "");
		put_value(v, sep, out);
	}
}

static void put_value(const json_t *v, const char *sep, struct buf *out)
{
	if (json_is_string(v))
		buf_addstr(out, json_string_value(v));
	else if (json_is_integer(v))
		buf_printf(out, "%lld", (long long)json_integer_value(v));
	else if (json_is_real(v))
		buf_printf(out, "%g", json_real_value(v));
	else if (json_is_array(v))
		put_list(v, sep, out);
	else
		buf_addstr(out, json_is_true(v) ? "yes" : "no");
}

static void put_form(const json_t *v, const char *form, struct buf *out)
{
	const double n = json_is_number(v) ? json_number_value(v) : (double)size_of(v);
	const int digits = *form == '.' ? (int)strtol(form + 1, NULL, 10) : 0;

	if (*form == '.' && json_is_string(v))
		buf_printf(out, "%.*s", digits, json_string_value(v));
	else if (*form == '.')
		buf_printf(out, "%.*f", digits, n);
	else if (strcmp(form, "MB") == 0 || strcmp(form, "MiB") == 0)
		put_size(v, form[1] == 'i', out);
	else if (strcmp(form, "time") == 0)
		put_time(n, out);
	else if (strcmp(form, "ago") == 0)
		put_age((long)time(NULL) - (long)n, out);
	else if (*form == '<' && json_is_string(v))
		buf_printf(out, "%-*s", (int)strtol(form + 1, NULL, 10), json_string_value(v));
	else if (strcmp(form, "#") == 0)
		buf_printf(out, "%.0f", n);
	else if (strcmp(form, "s") == 0)
		buf_addstr(out, n == 1 ? "" : "s");
	else if (strcmp(form, "y") == 0)
		buf_addstr(out, n == 1 ? "y" : "ies");
	else
		put_value(v, ", ", out);
}

/* ---- texts ---- */

void show_html(const char *s, struct buf *out)
{
	AUTO_BUF struct buf shown = {0};

	utf8_show(&shown, s, strlen(s), false);
	for (s = buf_cstr(&shown); *s; s++)
		if (strchr("<>&\"'", *s))
			buf_printf(out, "&#%d;", *s);
		else
			buf_addc(out, *s);
}

/* Whether a blank is followed by a unit, which ends there. */
static bool is_unit(const char *blank)
{
	static const char *const units[] = {"B",  "kB",  "KiB", "MB",  "MiB", "GB", "GiB",
					    "TB", "TiB", "s",   "min", "h",   "%",  "days"};

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		const size_t n = strlen(units[i]);
		if (strncmp(blank + 1, units[i], n) == 0 && !isalnum((unsigned char)blank[1 + n]))
			return true;
	}

	return false;
}

void show_page(const char *s, struct buf *out)
{
	AUTO_BUF struct buf kept = {0};

	for (size_t i = 0; s[i]; i++)
		if (s[i] == ' ' && i && isdigit((unsigned char)s[i - 1]) && is_unit(s + i))
			buf_addstr(&kept, "\u00a0");
		else
			buf_addc(&kept, s[i]);
	show_html(buf_cstr(&kept), out);
}

static void put_plain(const char *s, struct buf *out)
{
	buf_addstr(out, s);
}

static void put_url(const char *path, struct buf *out)
{
	buf_addurl(out, path, "/+=");
}

/* Prints the member that the braces up to `end` name. Returns false if it is missing. */
static bool put_member(const struct thing *t, const char *text, const char *end, struct buf *out)
{
	const char *stop = text + strcspn(text, "|:}");
	const json_t *v;
	char form[8] = "";

	if (*text == '?' || *text == '!')
		return is_set(member(t, text + 1, (size_t)(end - text) - 1)) == (*text == '?');
	if (*text == '^') {
		(t->escape ? t->escape : put_plain)(text[1] == '^' ? t->in->key : t->key, out);
		return true;
	}

	v = member(t, text, (size_t)(stop - text));
	if (*stop == ':')
		memcpy(form, stop + 1,
		       (size_t)(end - stop) - 1 < sizeof(form) ? (size_t)(end - stop) - 1 : 0);
	if (is_empty(v) && !(json_is_array(v) && strchr("#sy", *form) && *form)) {
		buf_add(out, stop + 1, *stop == '|' ? (size_t)(end - stop) - 1 : 0);
		return *stop == '|';
	}

	AUTO_BUF struct buf value = {0};
	const bool url = strcmp(form, "url") == 0;
	if (*form && !url)
		put_form(v, form, &value);
	else
		put_value(v, " ", &value);
	(url ? put_url : t->escape ? t->escape : put_plain)(buf_cstr(&value), out);
	return true;
}

/* The bracket that closes the one before `text`. */
static const char *closing(const char *text, const char *end)
{
	for (int depth = 1; text < end; text++)
		if (*text == '\\')
			text++;
		else if ((depth += (*text == '[') - (*text == ']')) == 0)
			break;
	return text;
}

/* False: a member is missing, and what was added is of no use. */
static bool put_text(const struct thing *t, const char *text, const char *end, struct buf *out)
{
	for (; text < end; text++) {
		const char *stop = *text == '['   ? closing(text + 1, end)
				   : *text == '{' ? strchr(text, '}')
						  : NULL;
		AUTO_BUF struct buf part = {0};
		if (*text == '{' && !put_member(t, text + 1, stop, out))
			return false;
		if (*text == '[' && put_text(t, text + 1, stop, &part))
			buf_add(out, buf_cstr(&part), part.len);
		if (!stop)
			buf_addc(out, *text == '\\' ? *++text : *text);
		else
			text = stop;
	}

	return true;
}

static bool make_text(const struct thing *t, const char *text, struct buf *out)
{
	return put_text(t, text, text + strlen(text), out);
}

/* ---- rows ---- */

/* A text behind its label. */
struct labelled {
	const char *label, *text;
	size_t column; /* where texts begin */
};

/* Lines of a text, each wrapped. */
static void put_lines(const struct page *p, const struct show *r, const struct labelled *l)
{
	const char *label = l->label, *text = l->text;
	const size_t column = l->column;
	const size_t width = term_columns(label, strlen(label)),
		     at = width < column ? column : width + 1;
	const size_t from = r->indent + (r->label ? at : 0);
	const size_t hang = r->label || *text == '\n' ? 0 : 2;

	if (*text == '\n') {
		if (p->out->len)
			buf_addc(p->out, '\n');
		text++;
	}

	for (bool first = true; first || *text; first = false) {
		const size_t n = strcspn(text, "\n");
		if (!n && !first) {
			text++;
			continue;
		}

		term_blanks(p->out, r->indent);
		if (r->label) {
			buf_addstr(p->out, first ? label : "");
			term_blanks(p->out, at - (first ? width : 0));
		}

		if (r->bold) {
			AUTO_BUF struct buf line = {0};
			buf_add(&line, text, n);
			term_style(p->out, p->term, TERM_BOLD, buf_cstr(&line));
			buf_addc(p->out, '\n');
		} else {
			term_wrap(p->out, text, from + hang, from, p->term->width);
		}

		text += n + (text[n] == '\n');
	}
}

static void put_rows(const struct page *p, const struct thing *t, const struct show *rows,
		     size_t column);

/* Prints a line and the lines below it. *ret_label: label for the next line that has none. */
static void put_line(const struct page *p, const struct thing *t, const struct show *r,
		     size_t column, const char **label)
{
	AUTO_BUF struct buf text = {0};
	AUTO_BUF struct buf name = {0};
	bool there = !r->text || make_text(t, r->text, &text);

	if (r->text && there) {
		there = !r->label || make_text(t, *label, &name);
		if (t->escape)
			buf_addstr(p->out, buf_cstr(&text));
		else
			put_lines(p, r,
				  &(struct labelled){buf_cstr(&name), buf_cstr(&text), column});
		if (r->label && !strchr(r->label, '{'))
			*label = "";
	}

	if (there && r->rows)
		put_rows(p, t, r->rows, r->text ? 0 : column);
}

static size_t count_columns(const struct show *r)
{
	size_t n = 0;

	while (n < SHOW_COLUMNS && r->columns[n])
		n++;
	return n;
}

static const char *cell(const struct thing *t, const char *column, struct arena *a)
{
	AUTO_BUF struct buf text = {0};
	const char *name = column + (*column == '>'), *equals = strchr(name, '=');
	const char *template = equals ? equals + 1 : arena_printf(a, "{%s}", name);

	return make_text(t, template, &text) && text.len ? arena_strdup(a, buf_cstr(&text)) : "-";
}

/* Calls for each thing in what is at the row's path. */
static void each(const struct page *p, const struct thing *t, const struct show *r,
		 void (*put)(const struct page *p, const struct thing *t, const struct show *r,
			     void *user),
		 void *user)
{
	const json_t *all = *r->each ? member(t, r->each, strlen(r->each)) : t->is, *v;
	const char *key;
	size_t i;

	json_array_foreach(all, i, v) put(p, &(struct thing){v, "", t, t->escape}, r, user);
	json_object_foreach((json_t *)(uintptr_t)all, key, v)
		put(p, &(struct thing){v, key, t, t->escape}, r, user);
}

struct table {
	struct arena arena;
	const char **cells;
	size_t columns, rows;
};

static void add_cells(const struct page *p, const struct thing *t, const struct show *r, void *user)
{
	struct table *x = user;

	(void)p;
	for (size_t k = 0; k < x->columns; k++)
		x->cells[x->rows * x->columns + k] = cell(t, r->columns[k], &x->arena);
	x->rows++;
}

static void put_table(const struct page *p, const struct thing *t, const struct show *r)
{
	struct table x = {.columns = count_columns(r), .rows = 1};
	const json_t *all = member(t, r->each, strlen(r->each));

	x.cells = arena_array(&x.arena, (size_of(all) + 1) * x.columns, sizeof(*x.cells));
	for (size_t k = 0; r->columns[k]; k++)
		x.cells[k] = arena_strndup(&x.arena, r->columns[k], strcspn(r->columns[k], "=:|"));
	each(p, t, r, add_cells, &x);
	term_table(p->out, p->term, x.cells, x.rows, x.columns);
	arena_release(&x.arena);
}

struct joined {
	struct buf text;
	size_t column;
	const char *label;
};

static void add_joined(const struct page *p, const struct thing *t, const struct show *r,
		       void *user)
{
	struct joined *j = user;
	AUTO_BUF struct buf text = {0};

	(void)p;
	if (make_text(t, r->text, &text))
		buf_printf(&j->text, "%s%s", j->text.len ? r->join : "", buf_cstr(&text));
}

static void add_line(const struct page *p, const struct thing *t, const struct show *r, void *user)
{
	struct joined *j = user;
	put_line(p, t, r, j->column, &j->label);
}

/* Where texts behind labels begin, also of rows that are only grouped in others. */
static size_t text_column(const struct show *rows)
{
	size_t column = 0;

	for (const struct show *r = rows; r->text || r->each || r->rows; r++) {
		size_t n = r->label && !strchr(r->label, '{') ? strlen(r->label) + 2 : 0;
		n = r->text || r->each ? n : text_column(r->rows);
		column = n > column ? n : column;
	}

	return column;
}

static void put_rows(const struct page *p, const struct thing *t, const struct show *rows,
		     size_t column)
{
	const size_t own = text_column(rows);

	column = own > column ? own : column;
	for (const struct show *r = rows; r->text || r->each || r->rows; r++) {
		struct joined j = {.column = column, .label = r->label};
		if (!r->each)
			put_line(p, t, r, column, &j.label);
		else if (r->columns[0])
			put_table(p, t, r);
		else
			each(p, t, r, r->join ? add_joined : add_line, &j);
		if (j.text.len)
			put_lines(p, r,
				  &(struct labelled){r->label ? r->label : "", buf_cstr(&j.text),
						     column});
		buf_release(&j.text);
	}
}

void show_text(const json_t *doc, const struct show *rows, const struct term *t, struct buf *out)
{
	put_rows(&(struct page){t, out}, &(struct thing){.is = doc, .key = ""}, rows, 0);
}

void show_markup(const json_t *doc, const struct show *rows, show_escape *escape, struct buf *out)
{
	put_rows(&(struct page){.out = out},
		 &(struct thing){.is = doc, .key = "", .escape = escape}, rows, 0);
}

char *show_string(const json_t *doc, const struct show *rows, struct arena *a)
{
	AUTO_BUF struct buf out = {0};
	show_text(doc, rows, &(struct term){0}, &out);
	return arena_strdup(a, buf_cstr(&out));
}

bool show_strip(json_t *v)
{
	const bool some = json_object_size(v) > 0;
	const char *key;
	json_t *its;
	void *next;

	for (size_t i = json_array_size(v); i-- > 0;)
		if (!show_strip(json_array_get(v, i)))
			json_array_remove(v, i);
	json_object_foreach_safe(v, next, key, its)
	{
		if (*key == '-')
			json_object_del(v, key);
		else
			show_strip(its);
	}

	return !some || json_object_size(v) > 0;
}
