#include <regex.h>
#include <strings.h>

#include "core/wheel/dist.h"
#include "step/verify/verify_parts.h"

enum { INFO_MAX = 16 << 20 };

static const char *info_path(struct verifying *v, const char *name)
{
	return path_join(v->a, v->dist_info, name);
}

static bool read_headers(struct verifying *v, const char *name, struct wheel_headers *ret)
{
	const char *path = info_path(v, name);
	const struct zip_entry *en = zip_find(v->zip, path);
	struct buf AUTO_BUF text = {0};
	struct err why = {0};

	if (!en) {
		verify_add(v, FINDING_ERROR, RULE_METADATA, path, "is missing");
		return false;
	}

	if (zip_read(v->zip, en, INFO_MAX, &text, &why) < 0 ||
	    wheel_headers_parse(&(struct file_bytes){buf_cstr(&text), text.len, path}, v->a, ret,
				&why) < 0) {
		verify_add_error(v, RULE_METADATA, path, &why);
		return false;
	}

	if (!utf8_valid(buf_cstr(&text)))
		verify_add(v, FINDING_ERROR, RULE_METADATA, path,
			   "is not UTF-8: installers refuse it");
	return true;
}

static void expect_once(struct verifying *v, const char *file, const struct wheel_headers *h,
			const char *field)
{
	struct strlist all = {0};

	wheel_headers_all(h, field, v->a, &all);
	if (all.count > 1)
		verify_add(v, FINDING_ERROR, RULE_METADATA, file,
			   "has %zu lines %s: tools differ in which one they take", all.count,
			   field);
}

static void expect(struct verifying *v, const char *file, const struct wheel_headers *h,
		   const char *field, const char *want)
{
	const char *got = wheel_headers_get(h, field);

	expect_once(v, file, h, field);
	if (!got)
		verify_add(v, FINDING_ERROR, RULE_METADATA, file, "has no %s", field);
	else if (want && strcmp(got, want) != 0)
		verify_add(v, FINDING_ERROR, RULE_METADATA, file, "has the %s '%s', not '%s'",
			   field, got, want);
}

/* 2.0 was withdrawn (PEP 426); of versions to come,
 * those of 2 can be read (core metadata specification). */
static void check_metadata_version(struct verifying *v, const char *file, const char *version)
{
	static const char *const known[] = {"1.0", "1.1", "1.2"};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (version && strcmp(version, known[i]) == 0)
			return;
	if (version && (strncmp(version, "2.", 2) != 0 || version[2] < '1' || version[2] > '9' ||
			version[2 + strspn(version + 2, "0123456789")]))
		verify_add(v, FINDING_WARNING, RULE_METADATA, file,
			   "has the Metadata-Version '%s', which no specification has: package "
			   "indexes refuse it",
			   version);
}

static void check_name(struct verifying *v, const char *file, const struct wheel_headers *h)
{
	const char *name = wheel_headers_get(h, "Name"), *version = wheel_headers_get(h, "Version");
	const struct wheel_name *n = &v->report.name;

	expect(v, file, h, "Metadata-Version", NULL);
	check_metadata_version(v, file, wheel_headers_get(h, "Metadata-Version"));
	expect(v, file, h, "Name", NULL);
	expect(v, file, h, "Version", v->q->expect_version);
	if (name && v->named &&
	    strcmp(wheel_normalize(name, v->a), wheel_normalize(n->dist, v->a)) != 0)
		verify_add(v, FINDING_ERROR, RULE_METADATA, file,
			   "has the Name '%s', but the file is named '%s'", name, n->dist);
	if (version && !wheel_version_key(version, v->a))
		verify_add(
			v, FINDING_ERROR, RULE_METADATA, file,
			"has the Version '%s', which is not valid by PEP 440: installers refuse it",
			version);
	if (version && v->named && !wheel_same_version(version, n->version, v->a))
		verify_add(v, FINDING_ERROR, RULE_METADATA, file,
			   "has the Version '%s', but the file is named '%s'", version, n->version);
}

static void check_requires(struct verifying *v, const char *file, const struct wheel_headers *h)
{
	struct err why = {0};

	v->requires_python = wheel_headers_get(h, "Requires-Python");
	expect_once(v, file, h, "Requires-Python");
	if (v->requires_python && specifier_check(v->requires_python, v->a, &why) < 0)
		verify_add(v, FINDING_WARNING, RULE_METADATA, file,
			   "has the Requires-Python '%s', which installers ignore: %s",
			   v->requires_python, why.msg);
	verify_requires(v, file, h);
}

/* Whether the tag "cp313-cp313-linux_x86_64" is one of the
 * file name's, which may be "cp313.cp314-...", or some. */
static bool name_has_tag(struct verifying *v, const char *tag)
{
	const char *parts[] = {v->report.name.python, v->report.name.abi, v->report.name.platform};
	struct strlist pieces = {0};
	char *lower = arena_strdup(v->a, tag);

	for (char *c = lower; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	strlist_split(&pieces, v->a, lower, "-");
	if (pieces.count != ARRAY_LEN(parts))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		struct strlist allowed = {0}, some = {0};
		strlist_split(&allowed, v->a, parts[i], ".");
		strlist_split(&some, v->a, pieces.items[i], ".");
		for (size_t k = 0; k < some.count; k++)
			if (!strlist_contains(&allowed, some.items[k]))
				return false;
	}

	return true;
}

static size_t count_pieces(const char *s)
{
	size_t n = 1;

	while ((s = strchr(s, '.')))
		n += *s++ == '.';
	return n;
}

static void check_tags(struct verifying *v, const char *file, const struct wheel_headers *h)
{
	const struct wheel_name *n = &v->report.name;
	struct strlist seen = {0};
	struct verify_some others = {0};
	size_t want = count_pieces(n->python) * count_pieces(n->abi) * count_pieces(n->platform);
	bool set = false;

	for (size_t i = 0; i < h->count; i++) {
		const char *tag = h->items[i].value;
		if (strcasecmp(h->items[i].key, "Tag") != 0)
			continue;
		if (!name_has_tag(v, tag))
			verify_count(&others, file, tag);
		else if (count_pieces(tag) > 1)
			set = true;
		else
			strlist_once(&seen, v->a, tag);
	}

	/* pip goes by the file name. */
	enum finding_level level = v->ours ? FINDING_ERROR : FINDING_WARNING;
	if (others.count)
		verify_add(v, level, RULE_METADATA, file,
			   "has the Tag '%s', which the file name does not have%s", others.entry,
			   verify_more(v, &others, "Tags"));
	else if (seen.count != want)
		verify_add(v, level, RULE_METADATA, file,
			   "has %zu of the %zu Tags of the file name%s", seen.count, want,
			   set ? ", and a set of them in one: each has a line of its own" : "");
}

static void check_wheel_file(struct verifying *v)
{
	struct wheel_headers h;

	if (!read_headers(v, "WHEEL", &h))
		return;
	const char *file = info_path(v, "WHEEL"), *version = wheel_headers_get(&h, "Wheel-Version");
	const char *generator = wheel_headers_get(&h, "Generator"),
		   *pure = wheel_headers_get(&h, "Root-Is-Purelib");
	/* What a wheel that was cut holds is another's. */
	v->ours = generator && strncmp(generator, "ptbuild ", strlen("ptbuild ")) == 0 &&
		  !zip_find(v->zip, info_path(v, WHEEL_CUT_BILL));
	if (!version || strncmp(version, "1.", 2) != 0)
		verify_add(v, FINDING_ERROR, RULE_METADATA, file,
			   "has the Wheel-Version '%s', not 1.x", version ? version : "");
	if (!generator)
		verify_add(v, FINDING_WARNING, RULE_METADATA, file, "has no Generator");
	if (!pure || (strcasecmp(pure, "true") != 0 && strcasecmp(pure, "false") != 0))
		verify_add(v, FINDING_ERROR, RULE_METADATA, file,
			   "has the Root-Is-Purelib '%s', neither true nor false",
			   pure ? pure : "");
	else if (strcasecmp(pure, "true") == 0 && v->report.elf_files)
		verify_add(v, FINDING_WARNING, RULE_METADATA, file,
			   "has Root-Is-Purelib, but there are ELF files inside");
	const char *build = wheel_headers_get(&h, "Build");
	if (v->named && strcmp(build ? build : "", v->report.name.build) != 0)
		verify_add(v, v->ours ? FINDING_ERROR : FINDING_WARNING, RULE_METADATA, file,
			   "has the Build '%s', the file name '%s'", build ? build : "",
			   v->report.name.build);
	if (v->named)
		check_tags(v, file, &h);
}

/* What is wrong with the line of a group, else NULL. */
static const char *entry_fault(const struct entry_point *p)
{
	if (!p->name)
		return "has no '='";
	if (p->script && strchr(p->name, '/'))
		return "names a file elsewhere";
	return p->script && !strchr(p->target, ':') ? "names no function" : NULL;
}

static void check_entry_points(struct verifying *v)
{
	const char *path = info_path(v, "entry_points.txt");
	const struct zip_entry *en = zip_find(v->zip, path);
	struct buf AUTO_BUF text = {0};
	struct entry_point *points;
	struct err why = {0};
	size_t count;

	if (!en)
		return;
	if (zip_read(v->zip, en, INFO_MAX, &text, &why) < 0) {
		verify_add_error(v, RULE_METADATA, path, &why);
		return;
	}

	v->entry_points = arena_strdup(v->a, buf_cstr(&text));
	entry_points_parse(v->entry_points, v->a, &points, &count);
	for (size_t i = 0; i < count; i++) {
		const char *fault = entry_fault(&points[i]);
		if (fault)
			verify_add(v, FINDING_ERROR, RULE_METADATA, path,
				   "has the entry point '%s', which %s: installers fail",
				   points[i].line, fault);
	}
}

/* The number of the line "rev=1 tool=ptbuild 0.1.0 input=<key>\n"; 0 if it is another. */
static unsigned parse_marker(const char *text, size_t len)
{
	regex_t re;

	if (regcomp(&re, "^rev=[1-9][0-9]{0,8} tool=[^\n]+ input=[^ \r\n]+\n$",
		    REG_EXTENDED | REG_NOSUB) != 0)
		abort();
	bool good = strlen(text) == len && regexec(&re, text, 0, NULL, 0) == 0;
	regfree(&re);
	return good ? (unsigned)strtoul(text + strlen("rev="), NULL, 10) : 0;
}

static void check_marker(struct verifying *v)
{
	const char *file = info_path(v, VERIFY_MARKER);
	const struct zip_entry *en = zip_find(v->zip, file);
	struct buf AUTO_BUF text = {0};
	struct err why = {0};

	if (!en) {
		verify_add(v, v->ours ? FINDING_ERROR : FINDING_NOTE, RULE_MARKER, file,
			   "is missing");
		return;
	}

	if (zip_read(v->zip, en, 4096, &text, &why) < 0) {
		verify_add_error(v, RULE_MARKER, file, &why);
		return;
	}

	v->report.metadata_rev = parse_marker(buf_cstr(&text), text.len);
	if (!v->report.metadata_rev)
		verify_add(v, FINDING_ERROR, RULE_MARKER, file,
			   "is not a line \"rev=<number> tool=<name> input=<key>\"");
}

void verify_info(struct verifying *v)
{
	struct wheel_headers h;
	const char *file = info_path(v, "METADATA");

	if (v->named && !wheel_is_dist_info(&v->report.name, v->dist_info, v->a))
		verify_add(v, FINDING_ERROR, RULE_METADATA, v->dist_info,
			   "is not named after the file, '%s'",
			   wheel_dist_info(&v->report.name, v->a));
	v->entry_points = "";
	check_entry_points(v);
	check_wheel_file(v);
	if (read_headers(v, "METADATA", &h)) {
		check_name(v, file, &h);
		check_requires(v, file, &h);
	}

	check_marker(v);
	/* Metadata at the end, with the marker and RECORD
	 * last, can be changed without touching the rest. */
	const struct verify_member *record = NULL, *last_payload = NULL, *first_info = NULL,
				   *prior = NULL;
	for (size_t i = 0; i < v->count; i++) {
		const struct verify_member *m = &v->members[i];
		const char *info = path_below(m->entry->name, v->dist_info);
		if (info && strcmp(info, "RECORD") == 0)
			record = m;
		if (info && (!first_info || m->entry->offset < first_info->entry->offset))
			first_info = m;
		if (!info && (!last_payload || m->entry->offset > last_payload->entry->offset))
			last_payload = m;
	}

	if (first_info && last_payload && last_payload->entry->offset > first_info->entry->offset)
		verify_add(v, v->ours ? FINDING_WARNING : FINDING_NOTE, RULE_ZIP,
			   last_payload->entry->name,
			   "is after the dist-info directory, which should be last");
	for (size_t i = 0; record && i < v->count; i++) {
		const struct verify_member *m = &v->members[i];
		if (m->entry->offset < record->entry->offset &&
		    (!prior || m->entry->offset >= prior->entry->offset))
			prior = m;
	}

	if (v->report.metadata_rev && record &&
	    (!prior || strcmp(prior->entry->name, info_path(v, VERIFY_MARKER)) != 0))
		verify_add(v, FINDING_WARNING, RULE_MARKER, info_path(v, VERIFY_MARKER),
			   "is not just before RECORD");
}

/* A toolkit that no table has is one, too: its word is compared, not its row. */
static const char *toolkit_word(struct verifying *v, const char *label)
{
	size_t n = strncmp(label, "cu", 2) == 0 ? strspn(label + 2, "0123456789") : 0;
	return n && (!label[2 + n] || label[2 + n] == '.') ? arena_strndup(v->a, label, 2 + n)
							   : NULL;
}

/* A variant with GPU targets and no toolkit allows any toolkit, but needs one. */
static void check_toolkit(struct verifying *v, const struct variant *want, const char *label)
{
	const char *said = toolkit_word(v, label);
	const char *wanted = want->cuda ? profile_label_toolkit(want->cuda, v->a) : NULL;
	bool any = !wanted && want->profile.targets_count > 0;

	if (said ? any || (wanted && strcmp(said, wanted) == 0) : !wanted && !any)
		return;
	verify_add(v, FINDING_ERROR, RULE_AGAINST, "", "has the label '%s', which says %s, not %s",
		   label, said ? said : "no CUDA",
		   wanted ? wanted
		   : any  ? "any CUDA"
			  : "cpu");
}

void verify_against(struct verifying *v)
{
	const struct variant *want = v->q->against;
	const char *distribution = tables_distribution(want->package);

	if (strcmp(v->report.name.dist, distribution) != 0)
		verify_add(v, FINDING_ERROR, RULE_AGAINST, "", "is a wheel of %s, not of %s",
			   v->report.name.dist, distribution);
	/* "cp313" for "3.13"; the file name may have several: "cp313.cp314". */
	struct strlist digits = {0}, tags = {0};
	strlist_split(&digits, v->a, want->python, ".");
	strlist_split(&tags, v->a, v->report.name.python, ".");
	if (!strlist_contains(&tags, arena_printf(v->a, "cp%s", strlist_join(&digits, v->a, ""))))
		verify_add(v, FINDING_ERROR, RULE_AGAINST, "", "is for the Python '%s', not for %s",
			   v->report.name.python, want->python);
	/* A label that promises something must promise what the variant says. */
	const char *plus = strchr(v->report.name.version, '+');
	struct promise said;
	if (!plus || !v->q->tables)
		return;
	promise_of_label(v->q->tables, plus + 1, v->a, &said);
	if (said.binding && said.isa != want->profile.isa)
		verify_add(v, FINDING_ERROR, RULE_AGAINST, "",
			   "has the label '%s', which says %s, not %s", plus + 1, said.isa->name,
			   want->profile.isa ? want->profile.isa->name : want->profile.name);
	if (said.binding || toolkit_word(v, plus + 1))
		check_toolkit(v, want, plus + 1);
}
