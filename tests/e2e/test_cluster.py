#!/usr/bin/python3
"""`ptbuild matrix --format slurm`, its script with stand-ins for Slurm and for builds; `--status`; the jobs as JSON. tests/slow/test_slurm.py has the real ones."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from report_browser import beyond_the_edge, browser

PTBUILD = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else "ptbuild"
LARGEST = "build-pytorch/pytorch-2.10-python313"
IDS = [f"pytorch-python313-cuda12_8-{name}" for name in ("sm80-avx512", "sm90-avx2", "sm90-avx512")] # the last finds all that the others compile
HOSTILE = "<script>alert(1)</script>&\"' /ptbuild/src/aten/src/ATen/native/cpu/UpSampleMoreKernelOfALongName.cpp.AVX512.cpp"

# sbatch runs nothing: it says a number and notes its words. Like Slurm it knows its options, needs its script, and refuses what a partition's limits
# ("$STUB/partitions": NAME MINUTES MEGABYTES, the first is the default) or the accounting ("$STUB/account") forbid where limits are enforced
# ("$STUB/enforced"). Where they are not, the job waits with a reason. squeue says what the test wants, after what waits for ever. A build fails, or makes a record.
SBATCH = """#!/bin/bash
words=("$@") partition= account= minutes=0 megabytes=0 array=
refuse() { echo "sbatch: error: Batch job submission failed: $*" >&2; exit 1; }
while [[ ${1-} == -* ]]; do
	case $1 in
	--partition=*) partition=${1#*=} ;;
	--account=*) account=${1#*=} ;;
	--time=*) minutes=${1#*=} ;;
	--mem=*M) megabytes=${1#*=} megabytes=${megabytes%M} ;;
	--array=*) array=${1#*=0-} ;;
	--parsable | --job-name=* | --requeue | --open-mode=* | --output=* | --cpus-per-task=* | --dependency=* | --constraint=* | --qos=*) ;;
	*) echo "sbatch: unrecognized option '$1'" >&2; exit 1 ;;
	esac
	shift
done
[ -f "${1-}" ] || { echo "sbatch: error: Unable to open file ${1-}" >&2; exit 1; }
reason=
[ ! -e "$STUB/account" ] || [ "$account" = "$(cat "$STUB/account")" ] || refuse "Invalid account or account/partition combination specified"
if [ -e "$STUB/partitions" ]; then
	row=$(if [ "$partition" ]; then grep "^$partition " "$STUB/partitions"; else head -n 1 "$STUB/partitions"; fi) || refuse "Invalid partition name specified"
	read -r _ most memory <<<"$row"
	((megabytes <= memory)) || refuse "Memory required by task is not available"
	if ((minutes > most)); then
		[ ! -e "$STUB/enforced" ] || refuse "Requested time limit is invalid (missing or exceeds some limit)"
		reason=PartitionTimeLimit
	fi
fi
n=$(($(cat "$STUB/n" 2>/dev/null || echo 100) + 1))
echo $n >"$STUB/n"
if [ "$reason" ]; then
	if [ "$array" ]; then for ((k = 0; k <= array; k++)); do echo "${n}_$k PENDING $reason"; done; else echo "${n}_N/A PENDING $reason"; fi >>"$STUB/held"
fi
printf "%s\\0" "${words[@]}" >"$STUB/sbatch.$n"
echo "$n;cluster"
"""
SQUEUE = """#!/bin/bash
[ ! -e "$STUB/down" ] || exit 1
for format; do case $format in --format=*) break ;; esac; done
cat "$STUB/held" "$STUB/queue" 2>/dev/null | while read -r task state; do
	case $format in
	--format=%F_%K) echo "$task" ;;
	"--format=%F_%K %T %r") echo "$task ${state:-PENDING None}" ;;
	*) echo "squeue: no such format: $format" >&2; exit 1 ;;
	esac
done
"""
BUILD = """#!/bin/bash
if [ "$1" = build ]; then
	echo "$*" >>"$STUB/builds"
	[ ! -e "$STUB/fail" ] || { cat "$STUB/fail" >&2; exit 6; }
	while [ "$1" != --out ]; do case $1 in pytorch-*) name=$1 ;; esac; shift; done
	mkdir -p "$2/$name"
	echo '{"wheel": "'"$name"'.whl", "bytes": 2500000, "build": {"compiler_cache": {"hits": 9, "misses": 1}}}' >"$2/$name/build.json"
	echo page >"$2/$name/build.html"
	echo wheel >"$2/$name.whl"
	exit
fi
[ "$1" != index ] || exit 0
exec %s "$@"
"""


def ptbuild(*args, status=0):
    got = subprocess.run([PTBUILD, "matrix", *args], capture_output=True, text=True)
    if got.returncode != status:
        raise AssertionError(f"{args} gave {got.returncode}: {got.stderr}")
    return got


class Place(unittest.TestCase):
    def setUp(self):
        self.top = tempfile.mkdtemp(prefix="ptbuild-cluster-")
        self.stub = os.path.join(self.top, "stub")
        self.dir = os.path.join(self.top, "it's a $(run) %j")
        self.script = os.path.join(self.top, "wheels.sh")
        os.mkdir(self.stub)
        for name, text in (("sbatch", SBATCH), ("squeue", SQUEUE), ("build", BUILD % PTBUILD)):
            self.write(os.path.join(self.stub, name), text)
            os.chmod(os.path.join(self.stub, name), 0o755)
        self.env = dict(os.environ, STUB=self.stub, PATH=self.stub + ":" + os.environ["PATH"], PTBUILD=os.path.join(self.stub, "build"))

    def tearDown(self):
        shutil.rmtree(self.top)

    def write(self, path, text):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)

    def read(self, *parts):
        with open(os.path.join(*parts), encoding="utf-8") as f:
            return f.read()

    def make(self, *args):
        self.write(self.script, ptbuild(*IDS, "--release", "2.10.0", "--format", "slurm", *args).stdout)

    def bash(self, *args, status=0, **env):
        got = subprocess.run(["bash", self.script, *args], capture_output=True, text=True, env=dict(self.env, **env), cwd=self.top)
        self.assertEqual(got.returncode, status, got.stderr)
        return got.stdout

    def submitted(self):
        """The words of each sbatch, the oldest first."""
        names = sorted(n for n in os.listdir(self.stub) if n.startswith("sbatch."))
        words = [self.read(self.stub, n).split("\0")[:-1] for n in names]
        for n in names:
            os.unlink(os.path.join(self.stub, n))
        return words

    def task(self, words, index, **env):
        at = words.index("task")
        return self.bash(*words[at:], SLURM_ARRAY_TASK_ID=str(index), SLURM_ARRAY_JOB_ID="7", SLURMD_NODENAME="n1", **env)

    def status(self, *args):
        got = subprocess.run([PTBUILD, "matrix", "--status", self.dir, *args], capture_output=True, text=True, env=self.env)
        self.assertEqual(got.returncode, 0, got.stderr)
        return got.stdout


class Script(Place):
    def test_waves_are_arrays_that_wait(self):
        self.make("--jobs", "4")
        self.assertIn("3 of 3 jobs submitted", self.bash(self.dir))
        first, second, last = self.submitted()
        self.assertIn("--array=0-1", first)
        self.assertEqual((first[-2:], second[-1:]), (IDS[:2], IDS[2:]))
        self.assertFalse([w for w in first if w.startswith("--dependency")])
        self.assertIn("--dependency=afterany:101", second)
        self.assertIn("--dependency=afterany:101:102", last)
        self.assertEqual(last[-4:], ["collect", self.dir, self.top, self.env["PTBUILD"]])
        for words in (first, second):
            self.assertIn("--cpus-per-task=4", words)
            self.assertIn("--requeue", words)
            self.assertIn(f"--output={self.dir.replace('%', '%%')}/log/slurm.log", words)
            self.assertTrue([w for w in words if re.fullmatch(r"--mem=\d+M", w)] and [w for w in words if re.fullmatch(r"--time=\d+", w)])

    def test_what_is_done_or_waits_is_not_submitted(self):
        self.make()
        self.bash(self.dir)
        first, second, _ = self.submitted()
        self.task(first, 0)
        self.write(os.path.join(self.stub, "queue"), "101_1\n102_0\n103_4294967294\n")
        self.assertIn("0 of 3 jobs submitted, 2 wait or run, 1 were done", self.bash(self.dir))
        self.assertEqual(self.submitted(), [])
        self.write(os.path.join(self.stub, "queue"), "102_0\n")
        self.assertIn("1 of 3 jobs submitted, 1 wait or run, 1 were done", self.bash(self.dir))
        again, last = self.submitted()
        self.assertEqual(again[-1], first[-1])
        self.assertIn("--dependency=afterany:102:104", last)
        # another option is another command
        self.make("--blas", "mkl")
        self.write(os.path.join(self.stub, "queue"), "")
        self.assertIn("3 of 3 jobs submitted", self.bash(self.dir))

    def test_a_task_builds_once_and_says_how_it_went(self):
        self.make("--cache", "/local/it's")
        self.bash(self.dir)
        first, second, last = self.submitted()
        self.write(os.path.join(self.stub, "fail"), f"hello\nptbuild: error: {HOSTILE}\nhint: no\n")
        with self.assertRaises(AssertionError):
            self.task(first, 1)
        os.unlink(os.path.join(self.stub, "fail"))
        self.task(first, 0)
        self.task(first, 0, SLURM_RESTART_COUNT="1")
        built = self.read(self.stub, "builds").splitlines()
        self.assertEqual(len(built), 2)
        self.assertTrue(all("--cache /local/it's --out " + self.dir + "/out/" in line for line in built), built)
        self.write(os.path.join(self.dir, "state", second[-1]), "state running\nnode <n9>\nstarted 5\n")
        self.bash(*last[last.index("collect") :], status=1)
        jobs = {job["id"]: job["run"] for job in json.loads(self.status("--json"))["jobs"]}
        self.assertEqual({id: run["state"] for id, run in jobs.items()}, {first[-2]: "done", first[-1]: "failed", second[-1]: "lost"})
        self.assertEqual((jobs[first[-1]]["exit"], jobs[first[-1]]["why"], jobs[first[-1]]["node"]), (6, HOSTILE, "n1"))
        self.assertEqual(os.listdir(os.path.join(self.dir, "dist")), [first[-2] + ".whl"])
        page = self.read(self.dir, "matrix.html")
        self.assertNotIn("<script", page)
        self.assertIn("&#60;script&#62;alert(1)", page)
        self.assertIn("&#60;n9&#62;", page)
        self.assertIn(f'href="./out/{first[-2]}/{first[-2]}/build.html"', page)
        self.assertIn("90\u00a0%", page) # which no line divides
        self.assertNotRegex(page, "@[A-Z]+@")
        for width in (390, 1280) if browser() else ():
            self.assertEqual(beyond_the_edge(page, width), (width, ""))
        table = self.status()
        self.assertIn("1 done, 1 failed, 1 lost of 3 jobs", table)
        self.assertIn(HOSTILE, table)

    def test_a_late_first_run_does_not_undo_the_second(self):
        """A node that was given up runs on: its job has ended well elsewhere when the first run fails."""
        self.make()
        self.bash(self.dir)
        first = self.submitted()[0]
        self.task(first, 0)
        done = self.read(self.dir, "state", first[-2])
        wrapper = os.path.join(self.stub, "late")
        self.write(os.path.join(self.top, "done"), done)
        self.write(wrapper, f'#!/bin/bash\ncp "$STUB/../done" "$STUB/../it\'s a \\$(run) %j/state/{first[-2]}"\nexit 9\n')
        os.chmod(wrapper, 0o755)
        os.unlink(os.path.join(self.dir, "state", first[-2]))
        first[first.index("task") + 3] = wrapper
        with self.assertRaises(AssertionError):
            self.task(first, 0)
        self.assertEqual(self.read(self.dir, "state", first[-2]), done)

    def test_usage(self):
        self.make()
        for args in ([], ["--help"]):
            self.bash(*args, status=2)

    def test_words_that_a_shell_would_read(self):
        """Names and values with odd characters are refused or quoted."""
        for args, words in (
            (["--set", "CFLAGS=$(reboot)"], "cannot be written"),
            (["--torch", "/a b.whl"], ""),
            (["--out", "x"], "--out has no effect here"),
            (["--image", "x"], "--image has no effect here"),
        ):
            got = subprocess.run([PTBUILD, "matrix", IDS[0], "--format", "slurm", *args], capture_output=True, text=True)
            self.assertNotEqual(got.returncode, 0, args)
            self.assertIn(words, got.stderr)
        names = os.path.join(self.top, "profiles", "matrices", "odd")
        shutil.copytree(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "profiles"), os.path.join(self.top, "profiles"))
        text = ptbuild(IDS[0], "--release", "2.10.0", "--format", "slurm", "--cache", "/x'; touch y; '").stdout
        self.assertIn("store='/x'\\''; touch y; '\\'''", text)
        self.assertFalse(os.path.exists(names))

    def test_without_sbatch_nothing_is_made(self):
        self.make()
        programs = os.path.join(self.top, "programs")
        os.mkdir(programs)
        for name in ("bash", "realpath"):
            os.symlink(shutil.which(name), os.path.join(programs, name))
        self.bash(self.dir, status=1, PATH=programs)
        self.assertFalse(os.path.exists(self.dir))

    def test_runner_maps_are_options_of_sbatch(self):
        path = os.path.join(self.top, "map.yaml")
        self.write(path, 'runners:\n  - {match: "*-sm90-avx512", labels: [partition=gpu, "constraint=a&(b|c)"]}\n  - {labels: [any]}\n')
        self.make("--runner-map", path)
        self.bash(self.dir)
        options = {words[-1]: words for words in self.submitted()}
        self.assertIn("--constraint=a&(b|c)", options[IDS[2]])
        self.assertIn("--partition=gpu", options[IDS[2]])
        self.assertFalse([w for w in options[IDS[0]] if "partition" in w] if IDS[0] in options else [])
        for label in ("fast", "wrap=reboot", "output=x", "=x"):
            self.write(path, f"runners:\n  - {{labels: [{label}]}}\n")
            self.assertIn("not an option of sbatch", ptbuild(IDS[0], "--format", "slurm", "--runner-map", path, status=3).stderr)


class Limits(Place):
    """A default partition of 60 minutes, a long one, and an account that all jobs need."""

    MAP = ("runners:\n  - {match: collect, labels: [account=lab], minutes: 30}\n"
           "  - {match: '*-sm90-avx512', labels: [partition=long, account=lab, qos=night], mem: 100G, minutes: 600}\n"
           "  - {labels: [partition=long, account=lab], minutes: 5000}\n")

    def setUp(self):
        super().setUp()
        self.write(os.path.join(self.stub, "partitions"), "short 60 4000\nlong 10000 900000\n")
        self.write(os.path.join(self.stub, "account"), "lab\n")
        self.map = os.path.join(self.top, "map.yaml")

    def enforce(self):
        self.write(os.path.join(self.stub, "enforced"), "")

    def make_by(self, text):
        self.write(self.map, text)
        self.make("--runner-map", self.map)

    def failed(self, **env):
        got = subprocess.run(["bash", self.script, self.dir], capture_output=True, text=True, env=dict(self.env, **env), cwd=self.top)
        self.assertEqual(got.returncode, 1, got.stdout)
        return got.stderr.splitlines()

    def test_every_job_has_the_options_of_its_row(self):
        self.enforce()
        self.make_by(self.MAP)
        self.assertIn("3 of 3 jobs submitted", self.bash(self.dir))
        first, second, last = self.submitted()
        self.assertLessEqual({"--partition=long", "--account=lab", "--time=5000"}, set(first))
        self.assertLessEqual({"--qos=night", "--mem=102400M", "--time=600"}, set(second))
        self.assertLessEqual({"--account=lab", "--time=30", "--mem=2048M"}, set(last))
        self.assertFalse([w for w in last if w.startswith("--partition")])

    def test_collecting_without_a_row_is_as_the_last_job(self):
        self.enforce()
        self.make_by("runners:\n  - {match: 'pytorch-*', labels: [partition=long, account=lab], minutes: 9000}\n")
        self.bash(self.dir)
        self.assertLessEqual({"--partition=long", "--account=lab", "--time=120"}, set(self.submitted()[-1]))

    def test_collecting_asks_for_no_time_that_no_map_gives(self):
        os.unlink(os.path.join(self.stub, "account"))
        self.write(os.path.join(self.stub, "partitions"), "short 60 900000\n")
        self.make()
        self.bash(self.dir)
        self.assertFalse([w for w in self.submitted()[-1] if w.startswith("--time")])

    def test_refused_jobs_are_named_with_their_options(self):
        self.enforce()
        self.make_by("runners:\n  - {labels: [account=other]}\n")
        said = self.failed()
        self.assertIn("Invalid account", said[0])
        self.assertIn(f"sbatch refuses '{IDS[0]}'", said[-1])
        self.assertIn("--account=other", said[-1])

    def test_a_refused_collector_is_told_and_submitted_again(self):
        self.enforce()
        self.make_by(self.MAP.replace("minutes: 30", "minutes: 90"))
        self.assertIn("match: collect", self.failed()[-1])
        for words in self.submitted():
            for k in range(len(words) - 1 - words.index("task") - 3):
                self.task(words, k)
        self.assertIn("3 done of 3 jobs", self.status())
        self.assertEqual(json.loads(self.status("--json"))["collect"]["state"], "not submitted")
        self.make_by(self.MAP)
        self.assertIn("0 of 3 jobs submitted", self.bash(self.dir))
        (last,) = self.submitted()
        self.write(os.path.join(self.stub, "queue"), "103_N/A PENDING Priority\n")
        self.assertEqual(json.loads(self.status("--json"))["collect"]["slurm"]["reason"], "Priority")
        self.bash(self.dir)
        self.assertEqual(self.submitted(), [], "it waits")
        self.bash(*last[last.index("collect") :])
        self.assertEqual(json.loads(self.status("--json"))["collect"]["state"], "done")

    def test_status_has_reason_and_job(self):
        self.make_by("runners:\n  - {labels: [account=lab], mem: 2G, minutes: 61}\n")
        self.bash(self.dir)
        run = {job["id"]: job["run"] for job in json.loads(self.status("--json"))["jobs"]}[IDS[0]]
        self.assertEqual((run["state"], run["slurm"]["state"], run["slurm"]["reason"]), ("waiting", "PENDING", "PartitionTimeLimit"))
        self.assertRegex(run["slurm"]["job"], r"^\d+_\d$")
        self.assertRegex(self.status(), r"waiting +pytorch-.* 101_0 PENDING \(PartitionTimeLimit\)")
        self.assertIn("waiting, 103 PENDING (PartitionTimeLimit)", self.status())
        os.unlink(os.path.join(self.stub, "held"))
        self.assertIn("3 lost of 3 jobs", self.status())
        self.write(os.path.join(self.stub, "down"), "")
        self.assertIn("3 waiting of 3 jobs", self.status(), "what is not known is not said")

    def test_a_node_without_ptbuild_is_named(self):
        self.make_by(self.MAP)
        self.bash(self.dir, PTBUILD="/no/ptbuild")
        first, _, last = self.submitted()
        nowhere = {"PATH": self.stub + ":/usr/bin:/bin"}
        with self.assertRaises(AssertionError):
            self.task(first, 0, **nowhere)
        run = {job["id"]: job["run"] for job in json.loads(self.status("--json"))["jobs"]}[first[-2]]
        self.assertEqual((run["state"], run["exit"]), ("failed", 127))
        self.assertIn("node 'n1' has no '/no/ptbuild'", run["why"])
        self.bash(*last[last.index("collect") :], status=1, **nowhere)
        collect = json.loads(self.status("--json"))["collect"]
        self.assertEqual(collect["state"], "failed")
        self.assertIn("has no '/no/ptbuild'", collect["why"])

    def test_the_environment_need_not_reach_the_jobs(self):
        self.make_by(self.MAP)
        self.bash(self.dir, SBATCH_EXPORT="NONE")
        words = self.submitted()[0]
        del self.env["PTBUILD"]
        self.task(words, 0)
        self.assertEqual(len(self.read(self.stub, "builds").splitlines()), 1)

    def test_variables_that_jobs_need_are_missed_before_submission(self):
        self.make_by(self.MAP)
        self.assertIn("PTBUILD_CCACHE_REMOTE", self.failed(SBATCH_EXPORT="NONE", PTBUILD_CCACHE_REMOTE="redis://cache:6379")[-1])
        self.assertFalse(os.path.exists(self.dir))
        self.bash(self.dir, SBATCH_EXPORT="HOME,PTBUILD_CCACHE_REMOTE", PTBUILD_CCACHE_REMOTE="redis://cache:6379")


class Data(unittest.TestCase):
    def test_jobs_say_what_they_need(self):
        jobs = json.loads(ptbuild(LARGEST, "--json").stdout)["jobs"]
        waves = {job["id"]: job["wave"] for job in jobs}
        self.assertEqual(len(waves), len(jobs))
        for job in jobs:
            self.assertTrue(all(waves[other] < job["wave"] for other in job["needs"]))
            makers = {j["cpu_cache"] for j in jobs if j["id"] in job["needs"] and j["makes_cpu"]} | {j["gpu_cache"] for j in jobs if j["id"] in job["needs"] and j["makes_gpu"]}
            missing = {c for c, own in ((job["cpu_cache"], job["makes_cpu"]), (job["gpu_cache"], job["makes_gpu"])) if c and not own}
            self.assertTrue(missing <= makers, job["id"])
            self.assertEqual(job["argv"][:2] + job["argv"][-2:], ["ptbuild", "build", "--release", "2.10.0"])
            self.assertEqual(job["command"], " ".join(job["argv"]))
            self.assertTrue(job["cpus"] == 16 and job["memory_bytes"] >= 4 << 30 and 3600 <= job["seconds"] <= 172800)
            self.assertEqual(job["outputs"], [f"dist/{v}/build.json" for v in job["variants"]])

    def test_places_and_processors(self):
        job = json.loads(ptbuild(IDS[1], "--json", "--jobs", "2", "--cache", "/s", "--out", "/o p", "--ccache-remote", "redis://cache:6379").stdout)["jobs"][0]
        self.assertEqual(job["argv"][-6:], ["--ccache-remote", "redis://cache:6379", "--cache", "/s", "--out", "/o p"])
        self.assertTrue(job["command"].endswith("--out '/o p'"))
        self.assertEqual((job["cpus"], job["outputs"]), (2, [f"/o p/{IDS[1]}/build.json"]))
        few = job["memory_bytes"]
        job = json.loads(ptbuild(IDS[1], "--json", "--jobs", "32").stdout)["jobs"][0]
        self.assertGreater(job["memory_bytes"], 8 * few)

    def test_what_the_tables_know_bounds_the_time(self):
        known = json.loads(ptbuild("torchaudio-python313-cpu-avx2", "--release", "2.6.0-debian", "--torch", __file__, "--json").stdout)["jobs"][0]
        torch = json.loads(ptbuild("torchaudio-python313-cpu-avx2", "--release", "2.6.0-debian", "--json").stdout)["jobs"][0]
        cuda = json.loads(ptbuild(IDS[2], "--json").stdout)["jobs"][0]
        self.assertTrue(3600 < known["seconds"] < torch["seconds"] < cuda["seconds"] == 172800, (known["seconds"], torch["seconds"]))

    def test_a_status_of_nothing(self):
        with tempfile.TemporaryDirectory() as d:
            self.assertIn("lacks jobs.json", ptbuild("--status", d, status=3).stderr)
            for text, status in (("{}", 5), ('{"jobs": [{"id": "../x"}]}', 5), ('{"jobs": [{"id": "x", "variants": ["../y", 1]}, 3]}', 5), ('{"jobs": []}', 0)):
                with open(d + "/jobs.json", "w", encoding="utf-8") as f:
                    f.write(text)
                ptbuild("--status", d, status=status)
            self.assertIn("html shows a run", ptbuild(IDS[0], "--format", "html", status=2).stderr)
            self.assertIn("no extension", ptbuild("--profile", "cpu-avx2", "--extension", ".", status=2).stderr)
            self.assertIn("no names", ptbuild(IDS[0], "--status", d, status=2).stderr)


if __name__ == "__main__":
    unittest.main()
