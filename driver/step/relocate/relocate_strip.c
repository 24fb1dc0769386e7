/* Removes symbol tables but for the names of functions that use more than the wheel may require: they show later that
 * each is called only after a check of the processor. */
#include <string.h>
#include <sys/stat.h>

#include "base/sys/fs.h"
#include "base/sys/machine.h"
#include "base/sys/proc.h"
#include "step/relocate/relocate_parts.h"

/* The names, one a line; none when the library uses no more than it may. */
static int names_to_keep(struct relocation *r, const struct relocate_file *f, struct buf *ret, struct err *e)
{
	AUTO_ARENA struct arena scratch = {0};
	AUTO_ELF_MAP struct elf_map m = {0};
	struct isa_scan s;
	enum extension_machine machine;
	uint64_t allowed[EXTENSION_MACHINES];
	if (!r->q->code || !isa_scan_machine(f->info.machine, &machine))
		return 0;
	struct isa_idle spare = {(int)machine_processors() - 1};
	isa_rules_allowed(r->q->code, r->q->isa, allowed);
	if (elf_map_open(f->path, &m, e) < 0 ||
	    isa_scan_file(&m, r->q->code->decoders, allowed, &spare, r->run, &scratch, &s, e) < 0)
		return -1;
	for (size_t i = 0; i < s.count; i++) {
		const char *name = s.found[i].range->name;
		/* Exported names stay anyway; the tool takes a line with '#' for a comment. */
		if (name && !(s.found[i].range->flags & (CODE_STRONG | CODE_WEAK)) && !strpbrk(name, "#\n"))
			buf_printf(ret, "%s\n", name);
	}
	return 0;
}

static int run_tool(struct relocation *r, const struct relocate_file *f, const char *fresh, struct err *e)
{
	AUTO_BUF struct buf names = {0}, out = {0};
	const char *list = arena_printf(r->a, "%s.names", f->path),
		   *keep = arena_printf(r->a, "--keep-symbols=%s", list);
	const char *const all[] = {"strip", "--strip-unneeded", "-o", fresh, f->path, NULL};
	const char *const most[] = {"objcopy", "--strip-unneeded", "--keep-file-symbols", keep, f->path, fresh, NULL};
	if (names_to_keep(r, f, &names, e) < 0)
		return -1;
	if (names.len == 0)
		return proc_capture(all, r->run, &out, e);
	if (fs_write(TRUSTED, list, names.data, names.len, 0644, e) < 0)
		return -1;
	int rc = proc_capture(most, r->run, &out, e);
	unlink(list);
	return rc;
}

int relocate_strip(struct relocation *r, struct relocate_file *f, struct err *e)
{
	struct stat st;
	const char *fresh = arena_printf(r->a, "%s.stripped", f->path);
	if (f->info.stripped)
		return 0;
	if (stat(f->path, &st) < 0)
		return err_errno(e, ERR_SYSTEM, "cannot read '%s'", f->path);
	int rc = run_tool(r, f, fresh, e);
	if (rc == 0 && chmod(fresh, st.st_mode & 07777) < 0)
		rc = err_errno(e, ERR_SYSTEM, "cannot set the permissions of '%s'", fresh);
	if (rc == 0 && rename(fresh, f->path) < 0)
		rc = err_errno(e, ERR_SYSTEM, "cannot replace '%s'", f->path);
	if (rc < 0) {
		unlink(fresh);
		return err_wrap(e, "cannot strip '%s'", f->rel);
	}
	f->info.stripped = true;
	r->result.stripped++;
	return 0;
}
