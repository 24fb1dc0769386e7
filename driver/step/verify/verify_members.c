#include <elf.h>
#include <limits.h>

#include "step/verify/verify_parts.h"

/* A thread's. */
struct worker {
	struct verifying *v;
	struct arena *a;
	char *path; /* of the temporary file, reused for each member */
};

struct pool {
	struct verifying *v;
	struct worker *workers;
	unsigned threads;
	atomic_size_t left; /* members that are not done */
};

static bool in_name(char c)
{
	return isalnum((unsigned char)c) || (c && strchr("._-+~", c));
}

/* Whether a longer path goes on here: "~/.cache/ptbuild/x" has a name before it,
 * "-I/ptbuild/x" an option. A name of one or two characters may be the length of a text that a
 * program wrote before it, as Python's .pyc files do. */
static bool inside_longer(const char *data, const char *found)
{
	const char *word = found;

	while (word > data && in_name(word[-1]) && found - word < NAME_MAX)
		word--;
	if (found - word < 3)
		return false;
	if (*word != '-')
		return true;
	for (word++; word < found && isalpha((unsigned char)*word); word++)
		;
	return word < found;
}

static const char *find_path(const char *data, size_t len, const char *path)
{
	const char *at = data, *found;
	size_t n = strlen(path);

	while (n && (found = memmem(at, len - (size_t)(at - data), path, n))) {
		if (!inside_longer(data, found))
			return found;
		at = found + n;
	}

	return NULL;
}

static void scan(const struct verify_request *q, struct verify_member *m, const void *data,
		 size_t len)
{
	for (size_t i = 0; i < q->build_paths.count && !m->build_path; i++) {
		const char *path = q->build_paths.items[i], *found = find_path(data, len, path);
		if (found) {
			m->build_path = path;
			m->build_path_at = (uint64_t)(found - (const char *)data);
		}
	}
}

/* What a linker reads in the place of a library: commands, behind comments. */
static bool is_linker_script(const char *data, size_t size)
{
	static const char *const commands[] = {"INPUT", "GROUP", "OUTPUT_FORMAT"};
	const char *end = data + size, *close;

	while (data < end &&
	       (isspace((unsigned char)*data) || (end - data > 3 && memcmp(data, "/*", 2) == 0))) {
		close = *data == '/' ? memmem(data + 2, (size_t)(end - data) - 2, "*/", 2)
				     : data - 1;
		if (!close)
			return false;
		data = close + 2;
	}

	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		size_t n = strlen(commands[i]);
		if ((size_t)(end - data) > n && memcmp(data, commands[i], n) == 0 &&
		    strchr(" \t(", data[n]))
			return true;
	}

	return false;
}

/* A file of PTX as text, which the driver compiles. */
static void take_text(const void *data, size_t size, struct arena *a, struct fatbin_summary *ret)
{
	struct fatbin_entry entry;

	if (ret->count || !fatbin_text(data, size, &entry))
		return;
	ret->items = arena_array(a, 1, sizeof(*ret->items));
	ret->items[0] = (struct fatbin_count){
		.kind = entry.kind, .number = entry.number, .entries = 1, .bytes = size};
	memcpy(ret->items[0].target, entry.target, sizeof(entry.target));
	ret->count = 1;
}

static int examine_data(struct worker *w, struct verify_member *m, struct err *e)
{
	AUTO_MAPPING struct fs_mapping file;
	AUTO_ELF_MAP struct elf_map map = {0};
	const struct verifying *v = w->v;
	struct err why = {0};

	if (fs_map(w->path, &file, e) < 0)
		return err_wrap(e, "%s", m->entry->name);
	if (m->row && *m->row->digest && strncmp(m->row->digest, "sha256=", 7) != 0)
		digest_record(arena_strndup(w->a, m->row->digest, strcspn(m->row->digest, "=")),
			      file.data ? file.data : (const void *)"", file.size, m->digest);
	if (!file.data)
		return 0;
	scan(v->q, m, file.data, file.size);
	m->loads_global = path_has_suffix(m->entry->name, ".py") &&
			  (memmem(file.data, file.size, "RTLD_GLOBAL", 11) ||
			   memmem(file.data, file.size, "setdlopenflags", 14));
	m->kind = elf_sort(file.data, file.size, &m->machine);
	if (m->kind == ELF_FOREIGN) /* at the same offset in all ELF files */
		m->elf.type = file.data[EI_DATA] == ELFDATA2LSB ? file.data[EI_NIDENT]
								: file.data[EI_NIDENT + 1];
	/* The finding names the file. */
	if (m->kind == ELF_HOST &&
	    (elf_map_memory(&(struct file_bytes){file.data, file.size, NULL}, &map, &why) < 0 ||
	     (v->q->policy ? elf_map_all : elf_map_info)(&map, w->a, &m->elf, &why) < 0)) {
		m->elf_broken = arena_strdup(w->a, why.msg);
	} else if (fatbin_summarize(&(struct file_bytes){file.data, file.size, NULL}, w->a, &m->gpu,
				    &why) < 0) {
		m->gpu_broken = arena_strdup(w->a, why.msg);
	}

	if (m->kind == ELF_NONE)
		take_text(file.data, file.size, w->a, &m->gpu);
	const bool judged = m->kind == ELF_HOST && !m->elf_broken && v->report.promise.gpu.count;
	if (judged) /* what is malformed is a finding already */
		(void)!fatbin_look_data(&(struct file_bytes){file.data, file.size, m->entry->name},
					w->a, &m->look, ERR_IGNORED);
	m->link_text = is_linker_script((const char *)file.data, file.size);
	/* Objects run only once they are linked; GPU code
	 * in a file of its own is judged by verify_gpu. */
	if (!v->q->code || m->kind != ELF_HOST || m->elf_broken)
		return 0;
	if (m->elf.type != ET_DYN && m->elf.type != ET_EXEC)
		return 0;
	return verify_isa_scan(w->v, m, &map, w->a, e);
}

static int examine(struct worker *w, struct verify_member *m, struct err *e)
{
	AUTO_FD int fd = open(w->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return err_errno(e, ERR_SYSTEM, "cannot create '%s'", w->path);
	uint8_t sha256[DIGEST_LEN];
	if (zip_extract_fd(w->v->zip, m->entry, fd, sha256, e) < 0) {
		if (e->kind != ERR_INTEGRITY)
			return fs_disk_place(w->path, e);
		m->broken = arena_strdup(w->a, e->msg);
		err_clear(e);
		return 0;
	}

	strcpy(m->digest, "sha256=");
	digest_base64url(sha256, m->digest + strlen(m->digest));
	return examine_data(w, m, e);
}

static int examine_one(unsigned thread, size_t i, void *user, struct err *e)
{
	struct pool *p = user;
	int rc = examine(&p->workers[thread], &p->v->members[i], e);

	/* Who still decodes a large library may use the
	 * processor of a thread that has nothing left to do. */
	if (atomic_fetch_sub(&p->left, 1) <= p->threads)
		atomic_fetch_add(&p->v->idle.processors, 1);
	return rc;
}

int verify_members(struct verifying *v, unsigned threads, struct arena *arenas, struct err *e)
{
	char *dir;
	struct pool p = {v, arena_array(v->a, threads, sizeof(*p.workers)), threads, v->count};
	uint64_t *sizes = arena_array(v->a, v->count, sizeof(*sizes));

	if (fs_temp_dir(v->q->temp_dir, "ptbuild-verify-", v->a, &dir, e) < 0)
		return -1;
	for (unsigned i = 0; i < threads; i++)
		p.workers[i] = (struct worker){v, &arenas[i],
					       arena_printf(&arenas[i], "%s/member%u", dir, i)};
	for (size_t i = 0; i < v->count; i++)
		sizes[i] = v->members[i].entry->size;
	v->idle.processors = v->count < threads ? (int)(threads - v->count) : 0;
	int rc = thread_items(threads, v->count, sizes, v->run, examine_one, &p, e);
	(void)!fs_remove(TRUSTED, dir, ERR_IGNORED);
	return rc;
}
