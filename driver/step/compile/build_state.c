#include "base/os.h"
#include "base/sys/fs.h"
#include "base/sys/json.h"
#include "base/sys/machine.h"
#include "step/compile/build_parts.h"

#define FILE_NAME "state.json"

void build_state_now(struct build_state *ret)
{
	struct build_state s = {.oom_kills = machine_oom_kills(""), .memory = machine_memory()};
	os_boot_id(s.boot, sizeof(s.boot));
	*ret = s;
}

bool build_state_read(const char *build_dir, struct build_state *ret)
{
	AUTO_JSON json_t *j = NULL;
	struct build_state s = {0};
	const char *boot;
	json_int_t kills, memory;
	int jobs, lowered, running;

	if (json_read(build_dir, FILE_NAME, &j, ERR_IGNORED) < 0)
		return false;
	if (json_unpack(j, "{s:s,s:I,s:I,s:i,s:b,s:b}", "boot", &boot, "oom_kills", &kills,
			"memory", &memory, "jobs", &jobs, "lowered", &lowered, "running",
			&running) != 0)
		return false;
	if (kills < 0 || memory < 0 || jobs < 1)
		return false;
	snprintf(s.boot, sizeof(s.boot), "%s", boot);
	s.oom_kills = (uint64_t)kills;
	s.memory = (uint64_t)memory;
	s.jobs = (unsigned)jobs;
	s.lowered = lowered;
	s.running = running;
	*ret = s;
	return true;
}

int build_state_write(const char *build_dir, const struct build_state *s, struct err *e)
{
	const uint64_t most = INT64_MAX;
	AUTO_JSON json_t *j =
		json_pack("{s:s,s:I,s:I,s:i,s:b,s:b}", "boot", s->boot, "oom_kills",
			  (json_int_t)(s->oom_kills < most ? s->oom_kills : most), "memory",
			  (json_int_t)(s->memory < most ? s->memory : most), "jobs", (int)s->jobs,
			  "lowered", (int)s->lowered, "running", (int)s->running);

	return json_write(j, build_dir, FILE_NAME, e);
}

enum build_state_verdict build_state_judge(const struct build_state *last,
					   const struct build_state *now, unsigned *ret_cap)
{
	bool same_boot = strcmp(last->boot, now->boot) == 0;
	bool killed = last->running && same_boot && now->oom_kills > last->oom_kills;

	if (killed && last->jobs > 1) {
		*ret_cap = last->jobs / 2;
		return BUILD_STATE_KILLED;
	}

	if (last->lowered && now->memory / 5 * 4 <= last->memory) {
		*ret_cap = last->jobs;
		return BUILD_STATE_LOWERED;
	}

	if (killed) {
		*ret_cap = 1;
		return BUILD_STATE_KILLED;
	}

	return BUILD_STATE_FINE;
}

int build_mend(const char *build_dir, const struct run *run, struct err *e)
{
	AUTO_ARENA struct arena a = {0};
	struct build_state last, now;
	struct strlist names = {0};

	if (!build_state_read(build_dir, &last))
		return 0;
	build_state_now(&now);
	if (strcmp(last.boot, now.boot) != 0 && fs_exists(build_dir, BUILD_SOURCE_OK)) {
		log_info(run->log,
			 "the machine was restarted since the last run in this tree, whose last "
			 "files may not have reached the disk: beginning from scratch, with the "
			 "compiler cache");
		return fs_remove(build_dir, BUILD_SOURCE_OK, e);
	}

	if (!fs_is_dir(build_dir, BUILD_TREE))
		return 0;
	/* distutils keeps no log and goes by time stamps: half a library, left by a kill or a
	 * full disk while it was copied, is newer than its origin and would go into the wheel. */
	if (fs_list(build_dir, BUILD_TREE, &a, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++)
		if ((strncmp(names.items[i], "lib.", 4) == 0 ||
		     strncmp(names.items[i], "bdist.", 6) == 0) &&
		    fs_remove(build_dir, path_join(&a, BUILD_TREE, names.items[i]), e) < 0)
			return -1;
	return 0;
}
