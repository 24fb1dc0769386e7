#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/sys/machine.h"

static void test_there_is_a_processor(void **state)
{
	(void)state;
	unsigned n = machine_processors();
	assert_true(n >= 1 && n <= (unsigned)sysconf(_SC_NPROCESSORS_CONF));
}

static void test_one_processor_of_each_core_comes_first(void **state)
{
	(void)state;
	static const char *const siblings[] = {"0,4\n", "1,5\n", "2-3\n", "2-3\n",
					       "0,4\n", "1,5\n", "x\n"};
	unsigned numbers[] = {1, 2, 3, 4, 5, 6, 7}, none[1] = {9};
	static const unsigned want[] = {1, 2, 4, 6, 7, 3, 5};
	test_dir();
	for (unsigned i = 0; i < 7; i++)
		test_write(
			test_path("sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", i),
			siblings[i]);
	machine_cores_first(test_path("."), numbers, 7);
	assert_memory_equal(numbers, want, sizeof(want));
	machine_cores_first(test_path("."), none, 0);
	assert_int_equal(none[0], 9);
}

static void test_processors_are_listed(void **state)
{
	(void)state;
	unsigned all[4096], two[2], n = machine_list_processors(all, 4096);
	assert_true(n >= machine_processors());
	assert_int_equal(machine_list_processors(two, 2), n < 2 ? n : 2);
	assert_int_equal(two[0], all[0]);
	for (unsigned i = 1; i < n; i++)
		assert_int_not_equal(all[i], all[0]);
}

static void test_memory_is_between_nothing_and_all(void **state)
{
	(void)state;
	uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t free_now = machine_memory();
	assert_true(free_now > UINT64_C(1) << 20);
	assert_true(free_now <= all);
}

#define MIB(n) ((uint64_t)(n) << 20)

/* A machine as files: MemAvailable 4 GiB, and where cgroups are mounted. */
static const char *fake_machine(const char *mountinfo, const char *cgroup)
{
	static char root[256];

	snprintf(root, sizeof(root), "%s", test_dir());
	test_write(test_path("proc/meminfo"),
		   "MemTotal:       8388608 kB\nMemFree: 1 kB\nMemAvailable:    4194304 kB\n");
	test_write(test_path("proc/self/mountinfo"), mountinfo);
	test_write(test_path("proc/self/cgroup"), cgroup);
	return root;
}

#define V1_MOUNT                                                                                   \
	"35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:1 - cgroup cgroup rw,memory\n"
#define V2_MOUNT "30 22 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
#define HYBRID_MOUNT                                                                               \
	V1_MOUNT "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n36 31 0:33 / "      \
		 "/sys/fs/cgroup/cpu rw - "                                                        \
		 "cgroup cgroup "                                                                  \
		 "rw,cpu\n"

static void test_no_cgroup_leaves_what_is_available(void **state)
{
	(void)state;
	assert_true(machine_memory_at(fake_machine("", "")) == MIB(4096));
	assert_true(machine_memory_at(fake_machine(V2_MOUNT, "0::/\n")) == MIB(4096));
	assert_true(machine_memory_at(test_dir()) == UINT64_MAX);
	AUTO_ARENA struct arena a = {0};
	assert_string_equal(machine_memory_text(UINT64_MAX, &a), "an unknown amount");
	assert_string_equal(machine_memory_text(MIB(1536), &a), "1.5 GiB");
}

static void test_v2_limits_of_all_groups_above_count(void **state)
{
	(void)state;
	const char *root = fake_machine(V2_MOUNT, "0::/user.slice/build.scope\n");
	test_write(test_path("sys/fs/cgroup/user.slice/build.scope/memory.max"), "max\n");
	test_write(test_path("sys/fs/cgroup/user.slice/build.scope/memory.current"), "104857600\n");
	assert_true(machine_memory_at(root) == MIB(4096));
	test_write(test_path("sys/fs/cgroup/user.slice/memory.max"), "2147483648\n");
	test_write(test_path("sys/fs/cgroup/user.slice/memory.current"), "1073741824\n");
	assert_true(machine_memory_at(root) == MIB(1024));
	/* Of the GiB in use, 256 MiB are file cache that gives way. */
	test_write(test_path("sys/fs/cgroup/user.slice/memory.stat"),
		   "anon 1\nactive_file 67108864\ninactive_file 134217728\nslab_reclaimable "
		   "67108864\n");
	assert_true(machine_memory_at(root) == MIB(1280));
	test_write(test_path("sys/fs/cgroup/user.slice/build.scope/memory.high"), "524288000\n");
	assert_true(machine_memory_at(root) == MIB(400));
	/* of a container's own root */
	test_write(test_path("sys/fs/cgroup/memory.max"), "314572800\n");
	assert_true(machine_memory_at(root) == MIB(300));
	test_write(test_path("sys/fs/cgroup/memory.current"), "414572800\n");
	assert_true(machine_memory_at(root) == 0);
}

static void test_v1_limits_count_below_and_above(void **state)
{
	(void)state;
	const char *root =
		fake_machine(HYBRID_MOUNT, "9:name=systemd:/\n4:cpu,memory:/jobs/one\n0::/\n");
	test_write(test_path("sys/fs/cgroup/memory/memory.limit_in_bytes"),
		   "9223372036854771712\n");
	test_write(test_path("sys/fs/cgroup/memory/jobs/memory.limit_in_bytes"), "3221225472\n");
	test_write(test_path("sys/fs/cgroup/memory/jobs/memory.usage_in_bytes"), "1073741824\n");
	test_write(test_path("sys/fs/cgroup/memory/jobs/memory.stat"),
		   "cache 5\ntotal_inactive_file 536870912\ntotal_active_file 0\n");
	assert_true(machine_memory_at(root) == MIB(2560));
	test_write(test_path("sys/fs/cgroup/memory/jobs/one/memory.limit_in_bytes"),
		   "1073741824\n");
	assert_true(machine_memory_at(root) == MIB(1024));
}

static void test_a_container_sees_its_part_of_the_hierarchy(void **state)
{
	(void)state;
	const char *root = fake_machine(
		"35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
		"4:memory:/docker/abc/sub\n");
	test_write(test_path("sys/fs/cgroup/memory/memory.limit_in_bytes"), "2147483648\n");
	assert_true(machine_memory_at(root) == MIB(2048));
	test_write(test_path("sys/fs/cgroup/memory/sub/memory.limit_in_bytes"), "1073741824\n");
	assert_true(machine_memory_at(root) == MIB(1024));
	/* A group that is not below what is mounted: the mount itself is what there is. */
	root = fake_machine(
		"35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
		"4:memory:/docker/abcdef\n");
	test_write(test_path("sys/fs/cgroup/memory/memory.limit_in_bytes"), "2147483648\n");
	test_write(test_path("sys/fs/cgroup/memory/def/memory.limit_in_bytes"), "1\n");
	assert_true(machine_memory_at(root) == MIB(2048));
}

static void test_damaged_files_limit_nothing(void **state)
{
	(void)state;
	const char *root = fake_machine("x\n - \n1 2 3 - cgroup2\n" V2_MOUNT, "0\n::\n:\n0::/a\n");
	test_write(test_path("sys/fs/cgroup/a/memory.max"), "");
	test_write(test_path("sys/fs/cgroup/memory.max"), "many\n");
	assert_true(machine_memory_at(root) == MIB(4096));
}

static void test_kills_are_counted_where_they_show(void **state)
{
	(void)state;
	const char *root = fake_machine(V2_MOUNT, "0::/a\n");
	assert_true(machine_oom_kills(root) == 0);
	test_write(test_path("proc/vmstat"), "nr_free_pages 1\noom_kill 5\n");
	assert_true(machine_oom_kills(root) == 5);
	/* Those of other groups are not of this build. */
	test_write(test_path("sys/fs/cgroup/a/memory.events"),
		   "low 0\noom 7\noom_kill 2\noom_group_kill 0\n");
	assert_true(machine_oom_kills(root) == 2);
	root = fake_machine(V1_MOUNT, "4:memory:/a\n");
	test_write(test_path("sys/fs/cgroup/memory/a/memory.oom_control"),
		   "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
	assert_true(machine_oom_kills(root) == 3);
}

static void test_pressure_of_the_own_group_counts_before_the_machines(void **state)
{
	(void)state;
	const char *root = fake_machine(V2_MOUNT, "0::/a/b\n");
	assert_true(machine_pressure(root) == 0);
	test_write(
		test_path("proc/pressure/memory"),
		"some avg10=90.00 avg60=0.00\nfull avg10=12.50 avg60=0.00 avg300=0.00 total=0\n");
	assert_true(machine_pressure(root) == 12.5);
	test_write(test_path("sys/fs/cgroup/a/memory.pressure"),
		   "some avg10=1.00\nfull avg10=0.25 avg60=0.00\n");
	assert_true(machine_pressure(root) == 0.25);
	test_write(test_path("sys/fs/cgroup/a/b/memory.pressure"),
		   "some avg10=1.00\nfull avg10=75.00 avg60=0.00\n");
	assert_true(machine_pressure(root) == 75);
}

static void test_features_are_whole_words(void **state)
{
	(void)state;
#if defined(__x86_64__)
	assert_true(machine_has_feature("sse2"));
	assert_false(machine_has_feature("sse2x"));
#endif
	assert_false(machine_has_feature("no-such-feature"));
	assert_false(machine_has_feature(""));
}

static void test_quotas_of_all_groups_above_count(void **state)
{
	(void)state;
	const char *root = fake_machine(V2_MOUNT, "0::/user.slice/build.scope\n");
	assert_true(machine_quota(root) == UINT64_MAX);
	test_write(test_path("sys/fs/cgroup/user.slice/build.scope/cpu.max"), "max 100000\n");
	assert_true(machine_quota(root) == UINT64_MAX);
	test_write(test_path("sys/fs/cgroup/user.slice/cpu.max"), "250000 100000\n");
	assert_true(machine_quota(root) == 3);
	test_write(test_path("sys/fs/cgroup/user.slice/build.scope/cpu.max"), "1000 100000\n");
	assert_true(machine_quota(root) == 1);
	test_write(test_path("sys/fs/cgroup/user.slice/build.scope/cpu.max"), "100000 0\n");
	assert_true(machine_quota(root) == 3);
	root = fake_machine(HYBRID_MOUNT, "9:name=systemd:/\n4:cpu,cpuacct:/jobs/one\n0::/\n");
	test_write(test_path("sys/fs/cgroup/cpu/jobs/one/cpu.cfs_period_us"), "50000\n");
	test_write(test_path("sys/fs/cgroup/cpu/jobs/one/cpu.cfs_quota_us"), "-1\n");
	assert_true(machine_quota(root) == UINT64_MAX);
	test_write(test_path("sys/fs/cgroup/cpu/jobs/one/cpu.cfs_quota_us"), "200000\n");
	assert_true(machine_quota(root) == 4);
}

static void test_slurm_says_what_a_job_was_given(void **state)
{
	(void)state;
	unsetenv("SLURM_CPUS_PER_TASK");
	unsigned all = machine_processors();
	setenv("SLURM_CPUS_PER_TASK", "1", 1);
	assert_int_equal(machine_processors(), 1);
	static const char *const others[] = {"", "0", "-1", "x", "4096", "99999999999999999999"};
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		setenv("SLURM_CPUS_PER_TASK", others[i], 1);
		assert_int_equal(machine_processors(), all);
	}

	unsetenv("SLURM_CPUS_PER_TASK");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_is_a_processor),
		cmocka_unit_test_teardown(test_one_processor_of_each_core_comes_first,
					  test_teardown),
		cmocka_unit_test(test_processors_are_listed),
		cmocka_unit_test(test_memory_is_between_nothing_and_all),
		cmocka_unit_test_teardown(test_no_cgroup_leaves_what_is_available, test_teardown),
		cmocka_unit_test_teardown(test_v2_limits_of_all_groups_above_count, test_teardown),
		cmocka_unit_test_teardown(test_v1_limits_count_below_and_above, test_teardown),
		cmocka_unit_test_teardown(test_a_container_sees_its_part_of_the_hierarchy,
					  test_teardown),
		cmocka_unit_test_teardown(test_damaged_files_limit_nothing, test_teardown),
		cmocka_unit_test_teardown(test_kills_are_counted_where_they_show, test_teardown),
		cmocka_unit_test_teardown(test_pressure_of_the_own_group_counts_before_the_machines,
					  test_teardown),
		cmocka_unit_test_teardown(test_quotas_of_all_groups_above_count, test_teardown),
		cmocka_unit_test(test_slurm_says_what_a_job_was_given),
		cmocka_unit_test(test_features_are_whole_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
