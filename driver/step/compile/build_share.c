#include "base/sys/fs.h"
#include "core/ninja/ninja_file.h"
#include "step/compile/build_parts.h"

static void keep_own(struct strlist *heavy, const struct strlist *outputs)
{
	size_t n = 0;
	for (size_t i = 0; i < heavy->count; i++)
		if (strlist_contains(outputs, heavy->items[i]))
			heavy->items[n++] = heavy->items[i];
	heavy->count = n;
}

int building_share(struct building *b, struct strlist *heavy, const char *const **ret, struct err *e)
{
	AUTO_BUF struct buf text = {0};
	AUTO_BUF struct buf file = {0};
	struct arena *a = b->arena;
	const struct build_shard *own = b->q->shard;
	const struct ninja_share_options o = {
		.index = own->index, .count = own->count, .seconds = b->q->seconds, .user = b->q->user};
	struct ninja_share *s = &b->result.share;
	struct strlist argv = {0};
	if (fs_read(b->q->build_dir, BUILD_NINJA, NINJA_FILE_MAX, &text, e) < 0 ||
	    ninja_share(buf_cstr(&text), text.len, BUILD_NINJA, &o, a, s, e) < 0)
		return -1;
	ninja_share_text("build.ninja", &s->outputs, &file);
	if (fs_write(b->q->build_dir, BUILD_SHARE, file.data, file.len, 0644, e) < 0)
		return -1;
	keep_own(heavy, &s->outputs);
	log_info(b->run->log, "%s: shard %u of %u: %zu of %zu units, and %zu that every shard needs",
		 b->q->plan->package, own->index, own->count, s->outputs.count, s->units, s->common);
	if (b->q->observer && b->q->observer->share)
		b->q->observer->share(&s->outputs, b->q->observer->user);
	strlist_ref(&argv, a, "ninja");
	strlist_ref(&argv, a, "-C");
	strlist_ref(&argv, a, "build");
	strlist_addf(&argv, a, "-j%u", b->pools.now.total);
	strlist_ref(&argv, a, "-f");
	strlist_ref(&argv, a, NINJA_SHARE ".ninja");
	strlist_ref(&argv, a, NINJA_SHARE);
	*ret = strlist_argv(&argv, a);
	return 0;
}
