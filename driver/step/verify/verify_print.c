/* The report of a wheel, for people and for programs. */

#include "base/sys/json.h"
#include "step/verify/verify.h"

static const char *const levels[] = {
	[FINDING_NOTE] = "note", [FINDING_WARNING] = "warning", [FINDING_ERROR] = "error"};

static json_t *gpu_json(const struct verify_report *r)
{
	json_t *files = json_array();

	for (size_t i = 0; i < r->gpu_count; i++) {
		AUTO_ARENA struct arena a = {0};
		const struct verify_gpu_file *f = &r->gpu[i];
		json_t *code = json_object();
		for (size_t k = 0; k < f->count; k++)
			json_object_set_new(code, fatbin_name(&f->code[k], &a),
					    json_pack("{s:I, s:I}", "entries",
						      (json_int_t)f->code[k].entries, "bytes",
						      (json_int_t)f->code[k].bytes));
		json_array_append_new(files,
				      json_pack("{s:s, s:I, s:o}", "file", f->file, "fat_binaries",
						(json_int_t)f->fat_binaries, "code", code));
	}

	return files;
}

json_t *verify_json(const struct verify_report *r)
{
	json_t *findings = json_array();

	for (size_t i = 0; i < r->count; i++) {
		const struct finding *f = &r->findings[i];
		json_array_append_new(findings,
				      json_pack("{s:s, s:s, s:s, s:s}", "level", levels[f->level],
						"rule", f->rule, "file", f->file, "text", f->text));
	}

	json_t *code = json_pack("{s:I, s:I, s:I}", "files", (json_int_t)r->code_files, "functions",
				 (json_int_t)r->code_functions, "bytes", (json_int_t)r->code_bytes);
	return json_pack(
		"{s:i, s:b, s:s, s:I, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:s, s:s, s:o, s:o, "
		"s:o, s:o, s:o,"
		" s:I, s:I, s:o, s:o}",
		"schema", 1, "ok", r->errors == 0, "file", r->file, "bytes", (json_int_t)r->bytes,
		"sha256", r->sha256, "distribution", r->name.dist, "version", r->name.version,
		"python", r->name.python, "abi", r->name.abi, "platform", r->name.platform,
		"members", (json_int_t)r->members, "elf_files", (json_int_t)r->elf_files,
		"honest_platform", r->tag, "honest_platform_why", r->tag_why, "metadata_rev",
		r->metadata_rev ? json_integer(r->metadata_rev) : json_null(), "requires_torch",
		json_or_null(*r->requires_torch ? r->requires_torch : NULL), "code", code,
		"promise",
		(json_pack("{s:s, s:b, s:o, s:o, s:o}", "from", r->promise.from, "binding",
			   r->promise.binding, "isa",
			   json_or_null(r->promise.isa ? r->promise.isa->name : NULL), "cuda",
			   json_or_null(r->promise.cuda), "gpu",
			   r->promise.gpu_known ? json_from_strlist(&r->promise.gpu)
						: json_null())),
		"gpu_code", gpu_json(r), "errors", (json_int_t)r->errors, "warnings",
		(json_int_t)r->warnings, "findings", findings, "runs_on",
		r->runs_on.python ? runs_on_json(&r->runs_on) : json_null());
}

const struct show verify_lines[] = {
	{.text = "{/file}[:{file}]: {level}\\[{rule}\\]: {text}", .each = "findings"}, {0}};

static const struct show gpu_code[] = {
	{.text = "{entries} {^} ({bytes:MB})", .each = "code", .join = ", ", .indent = 2}, {0}};

static const struct show tail_rows[] = {
	{.text = "gpu code: {file}: {fat_binaries} fat binar{fat_binaries:y}:",
	 .each = "gpu_code",
	 .rows = gpu_code},
	{.text = "{file}: {members} file{members:s}, {elf_files} of them ELF[, fit for "
		 "{honest_platform} ({honest_platform_why})][{?code.files}, code of "
		 "{code.functions} function{code.functions:s} within {promise.isa|no declared "
		 "instruction set}][, metadata revision {metadata_rev}]: {errors} error{errors:s}, "
		 "{warnings} warning{warnings:s}[{?-notes}, {-notes} note{-notes:s}]"},
	{0}};

const struct show verify_rows[] = {
	{.text = "{level}: [{file}][{!file}{/file}]: {text} \\[{rule}\\]", .each = "findings"},
	{.rows = tail_rows},
	{0}};

const struct show verify_brief_rows[] = {
	{.text = "{level}: [{file}][{!file}{/file}]: {text} \\[{rule}\\][{?more}; and {more} more]",
	 .each = "-kinds"},
	{.rows = tail_rows},
	{.text = "{?-hidden}--notes shows every finding"},
	{0}};

/* The line of this kind, to which the finding is added; NULL: it is the first. */
static json_t *kind_of(const json_t *kinds, const json_t *finding)
{
	size_t i;
	json_t *kind;

	json_array_foreach(kinds, i, kind)
	{
		if (strcmp(json_text(kind, "level"), json_text(finding, "level")) == 0 &&
		    strcmp(json_text(kind, "rule"), json_text(finding, "rule")) == 0)
			return kind;
	}

	return NULL;
}

static size_t add_kinds(json_t *kinds, const json_t *findings, enum finding_level level)
{
	size_t i, count = 0;
	const json_t *finding;

	json_array_foreach(findings, i, finding)
	{
		if (strcmp(json_text(finding, "level"), levels[level]) != 0)
			continue;
		count++;
		json_t *kind = kind_of(kinds, finding);
		if (kind)
			json_object_set_new(kind, "more", json_integer(json_int(kind, "more") + 1));
		else
			json_array_append_new(kinds, json_copy((json_t *)(uintptr_t)finding));
	}

	return count;
}

void verify_brief(json_t *doc)
{
	const json_t *findings = json_object_get(doc, "findings");
	json_t *kinds = json_array(), *notes = json_array();

	(void)add_kinds(kinds, findings, FINDING_ERROR);
	(void)add_kinds(kinds, findings, FINDING_WARNING);
	const size_t count = add_kinds(notes, findings, FINDING_NOTE);
	json_decref(notes);
	json_object_set_new(doc, "-hidden",
			    json_boolean(json_array_size(findings) > json_array_size(kinds)));
	json_object_set_new(doc, "-kinds", kinds);
	json_object_set_new(doc, "-notes", json_integer((json_int_t)count));
}
