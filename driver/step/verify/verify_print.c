#include <inttypes.h>

#include "base/path.h"
#include "base/sys/json.h"
#include "step/verify/verify.h"

static const char *level_name(enum finding_level level)
{
	static const char *const names[] = {
		[FINDING_NOTE] = "note", [FINDING_WARNING] = "warning", [FINDING_ERROR] = "error"};
	return names[level];
}

static json_t *promise_json(const struct promise *p)
{
	json_t *j = json_pack("{s:s, s:b, s:o, s:o}", "from", p->from, "binding", p->binding, "isa",
			      json_or_null(p->isa ? p->isa->name : NULL), "cuda", json_or_null(p->cuda));
	json_object_set_new(j, "gpu", p->gpu_known ? json_from_strlist(&p->gpu) : json_null());
	return j;
}

static json_t *gpu_json(const struct verify_report *r)
{
	json_t *files = json_array();
	for (size_t i = 0; i < r->gpu_count; i++) {
		AUTO_ARENA struct arena a = {0};
		const struct verify_gpu_file *f = &r->gpu[i];
		json_t *code = json_object();
		for (size_t k = 0; k < f->count; k++)
			json_object_set_new(code, fatbin_name(&f->code[k], &a),
					    json_pack("{s:I, s:I}", "entries", (json_int_t)f->code[k].entries, "bytes",
						      (json_int_t)f->code[k].bytes));
		json_array_append_new(files, json_pack("{s:s, s:I, s:o}", "file", f->file, "fat_binaries",
						       (json_int_t)f->fat_binaries, "code", code));
	}
	return files;
}

json_t *verify_json(const struct verify_report *r)
{
	json_t *findings = json_array();
	for (size_t i = 0; i < r->count; i++) {
		const struct finding *f = &r->findings[i];
		json_array_append_new(findings, json_pack("{s:s, s:s, s:s, s:s}", "level", level_name(f->level), "rule",
							  f->rule, "file", f->file, "text", f->text));
	}
	json_t *j = json_pack("{s:i, s:b, s:s, s:I, s:s, s:s, s:s, s:s, s:s, s:s}", "schema", 1, "ok", r->errors == 0,
			      "file", r->file, "bytes", (json_int_t)r->bytes, "sha256", r->sha256, "distribution",
			      r->name.dist, "version", r->name.version, "python", r->name.python, "abi", r->name.abi,
			      "platform", r->name.platform);
	json_object_set_new(j, "members", json_integer((json_int_t)r->members));
	json_object_set_new(j, "elf_files", json_integer((json_int_t)r->elf_files));
	json_object_set_new(j, "honest_platform", json_string(r->tag));
	json_object_set_new(j, "honest_platform_why", json_string(r->tag_why));
	json_object_set_new(j, "metadata_rev", r->metadata_rev ? json_integer(r->metadata_rev) : json_null());
	json_object_set_new(j, "requires_torch", *r->requires_torch ? json_string(r->requires_torch) : json_null());
	json_object_set_new(j, "code",
			    json_pack("{s:I, s:I, s:I}", "files", (json_int_t)r->code_files, "functions",
				      (json_int_t)r->code_functions, "bytes", (json_int_t)r->code_bytes));
	json_object_set_new(j, "promise", promise_json(&r->promise));
	json_object_set_new(j, "gpu_code", gpu_json(r));
	json_object_set_new(j, "errors", json_integer((json_int_t)r->errors));
	json_object_set_new(j, "warnings", json_integer((json_int_t)r->warnings));
	json_object_set_new(j, "findings", findings);
	return j;
}

char *verify_lines(const struct verify_report *r, struct arena *a)
{
	struct buf AUTO_BUF b = {0};
	for (size_t i = 0; i < r->count; i++) {
		const struct finding *f = &r->findings[i];
		buf_printf(&b, "%s%s%s: %s[%s]: %s\n", r->file, *f->file ? ":" : "", f->file, level_name(f->level),
			   f->rule, f->text);
	}
	return arena_strdup(a, buf_cstr(&b));
}

char *verify_text(const struct verify_report *r, struct arena *a)
{
	struct buf AUTO_BUF b = {0};
	for (size_t i = 0; i < r->count; i++) {
		const struct finding *f = &r->findings[i];
		buf_printf(&b, "%s: %s: %s [%s]\n", level_name(f->level), *f->file ? f->file : r->file, f->text,
			   f->rule);
	}
	for (size_t i = 0; i < r->gpu_count; i++) {
		const struct verify_gpu_file *f = &r->gpu[i];
		buf_printf(&b, "gpu code: %s: %zu fat binaries:", f->file, f->fat_binaries);
		for (size_t k = 0; k < f->count; k++)
			buf_printf(&b, "%s %zu %s (%.1f MB)", k ? "," : "", f->code[k].entries,
				   fatbin_name(&f->code[k], a), (double)f->code[k].bytes / 1e6);
		buf_addc(&b, '\n');
	}
	buf_printf(&b, "%s: %zu files, %zu of them ELF", r->file, r->members, r->elf_files);
	if (*r->tag)
		buf_printf(&b, ", fit for %s (%s)", r->tag, r->tag_why);
	if (r->code_files)
		buf_printf(&b, ", code of %zu functions within %s", r->code_functions,
			   r->promise.isa ? r->promise.isa->name : "no promise");
	if (r->metadata_rev)
		buf_printf(&b, ", metadata revision %u", r->metadata_rev);
	buf_printf(&b, ": %zu error%s, %zu warning%s\n", r->errors, r->errors == 1 ? "" : "s", r->warnings,
		   r->warnings == 1 ? "" : "s");
	return arena_strdup(a, buf_cstr(&b));
}
