#!/usr/bin/python3
"""`ptbuild matrix`: its files against schemas of what the services take, and what they promise about sharing."""

import functools
import hashlib
import http.server
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
import zipfile

import jsonschema

PTBUILD = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else "ptbuild"
HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data", "ci")
LARGEST = "build-pytorch/pytorch-2.10-python313"
LIMIT = 256 # of GitHub


def ptbuild(*args, status=0):
    got = subprocess.run([PTBUILD, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if got.returncode != status:
        raise AssertionError("%s gave %d: %s" % (args, got.returncode, got.stderr))
    return got


@functools.lru_cache(maxsize=None)
def matrix_text(*args):
    return ptbuild("matrix", *args).stdout


def matrix(*args):
    return json.loads(matrix_text(*args))


def schema(name):
    with open(os.path.join(DATA, name), encoding="utf-8") as f:
        s = json.load(f)
    jsonschema.Draft7Validator.check_schema(s)
    return s


GITHUB = schema("github-workflow.json")
GITLAB = schema("gitlab-ci.json")


def github_cells(doc):
    return [cell for job in github_jobs(doc).values() for cell in job["strategy"]["matrix"]["include"]]


def github_jobs(doc):
    return {name: job for name, job in doc["jobs"].items() if name != "index"}


def gitlab_jobs(doc):
    return {name: job for name, job in doc.items() if name not in ("stages", ".ptbuild", "index")}


def gitlab_variants(job):
    return job["script"][0].removeprefix("ptbuild build ").split(" --", 1)[0]


@functools.lru_cache(maxsize=None)
def names():
    """All matrices that are no view of another."""
    rows = json.loads(ptbuild("list", "--matrices", "--json").stdout)["matrices"]
    return [row["name"] for row in rows if not row["view_of"]]


class Formats(unittest.TestCase):
    def test_every_matrix_is_valid_in_both_formats(self):
        every = names()
        self.assertGreater(len(every), 10)
        for name in every:
            with self.subTest(name):
                github, gitlab, own = matrix(name, "--format", "github"), matrix(name, "--format", "gitlab"), matrix(name, "--json")
                jsonschema.validate(github, GITHUB)
                jsonschema.validate(gitlab, GITLAB)
                wanted = sorted(" ".join(job["variants"]) for job in own["jobs"])
                self.assertEqual(sorted(cell["variants"] for cell in github_cells(github)), wanted)
                self.assertEqual(sorted(gitlab_variants(job) for job in gitlab_jobs(gitlab).values()), wanted)

    def test_every_variant_that_can_be_built_is_in_one_job(self):
        rows = {row["name"]: row for row in json.loads(ptbuild("list", "--matrices", "--json").stdout)["matrices"]}
        for name in ("build-pytorch/main", "build-torchaudio/main", LARGEST):
            variants = [v for job in matrix(name, "--json")["jobs"] for v in job["variants"]]
            self.assertEqual(len(variants), len(set(variants)))
            self.assertEqual(len(variants), rows[name]["variants"] - rows[name]["refused"])

    def test_the_schemas_refuse_what_the_services_would(self):
        good = matrix("pytorch-python313-cpu-avx2", "--format", "github")
        jsonschema.validate(good, GITHUB)
        job = good["jobs"]["wave-1-1"]
        job["strategy"]["matrix"]["include"] *= 257
        with self.assertRaises(jsonschema.ValidationError):
            jsonschema.validate(good, GITHUB)
        good = matrix("pytorch-python313-cpu-avx2", "--format", "gitlab")
        good["pytorch-python313-cpu-avx2"]["tag"] = ["x"]
        with self.assertRaises(jsonschema.ValidationError):
            jsonschema.validate(good, GITLAB)

    def test_companions_are_built_where_their_torch_is(self):
        jobs = matrix("build-pytorch/main", "--json")["jobs"]
        both = [job for job in jobs if "torchvision-python313-cuda12_8-sm61-avx" in job["variants"]]
        self.assertEqual(len(both), 1)
        self.assertEqual(
            both[0]["variants"],
            ["pytorch-python313-cuda12_8-sm61-avx", "torchvision-python313-cuda12_8-sm61-avx", "torchaudio-python313-cuda12_8-sm61-avx"],
        )
        self.assertEqual(both[0]["command"], "ptbuild build %s --release 2.8.0" % " ".join(both[0]["variants"]))


class Sharing(unittest.TestCase):
    def test_no_wave_compiles_a_unit_twice(self):
        for name in names():
            jobs = matrix(name, "--json")["jobs"]
            known = set()
            for wave in range(1, max(job["wave"] for job in jobs) + 1):
                made = [cache for job in jobs if job["wave"] == wave for cache in (job["cpu_cache"], job["gpu_cache"]) if cache and cache not in known]
                self.assertEqual(len(made), len(set(made)), (name, wave))
                says = [job[which + "_cache"] for job in jobs if job["wave"] == wave for which in ("cpu", "gpu") if job["makes_" + which]]
                self.assertEqual(sorted(made), sorted(says), (name, wave))
                known |= set(made)
            self.assertLessEqual(wave, 3, name)

    def test_the_first_wave_is_as_wide_as_the_shorter_side_allows(self):
        jobs = matrix(LARGEST, "--only", "*-cuda12_8-*-avx*", "--json")["jobs"]
        rows, columns = {job["gpu_cache"] for job in jobs}, {job["cpu_cache"] for job in jobs}
        self.assertEqual((len(jobs), len(rows), len(columns)), (37, 8, 5))
        self.assertEqual([sum(job["wave"] == wave for job in jobs) for wave in (1, 2)], [5, 3])

    def test_jobs_that_share_stand_together(self):
        keys = [(job["wave"], job["gpu_cache"] or "") for job in matrix(LARGEST, "--json")["jobs"]]
        self.assertEqual(keys, sorted(keys))

    def test_a_restored_cache_is_a_store(self):
        """What the service keeps, and nothing else, laid out as a job finds it."""
        for doc in (matrix(LARGEST, "--format", "github"), matrix(LARGEST, "--format", "gitlab")):
            paths = {p for text in re.findall(r'"path": "([^"]*compiled[^"]*)"', json.dumps(doc)) for p in text.split("\\n")}
            caches = [c for job in doc.values() if isinstance(job, dict) for c in job.get("cache", [])]
            paths |= {p for c in caches for p in c["paths"] if not c["key"].startswith("ptbuild-files-")}
            self.assertEqual(paths, {"ptbuild-store/compiled", "ptbuild-store/format"})
        with tempfile.TemporaryDirectory() as d:
            ptbuild("fetch", "--profile", "cpu-avx2", "--release", "2.9.1", "--offline", "--cache", d + "/ptbuild-store", status=4)
            os.makedirs(d + "/next/ptbuild-store/compiled")
            os.rename(d + "/ptbuild-store/format", d + "/next/ptbuild-store/format")
            ptbuild("cache", "info", "--cache", d + "/next/ptbuild-store")

    def test_what_a_job_compiles_it_keeps_and_later_ones_take(self):
        doc = matrix(LARGEST, "--format", "github")
        for name, job in github_jobs(doc).items():
            wave = int(name.split("-")[1])
            caches = [step for step in job["steps"] if step.get("uses", "").startswith("actions/cache/") and "files" not in step["name"]]
            self.assertEqual([step["uses"].split("@")[0].rsplit("/")[-1] for step in caches], ["restore", "restore", "save", "save"])
            self.assertEqual([step.get("if") for step in caches[2:]], ["always() && matrix.makes_cpu", "always() && matrix.makes_gpu"])
            for step in caches:
                self.assertIn("--${{ github.run_id }}-${{ github.run_attempt }}", step["with"]["key"])
            self.assertEqual({int(other.split("-")[1]) for other in job.get("needs", [])}, {wave - 1} if wave > 1 else set())
        self.assertEqual(doc["jobs"]["index"]["needs"], list(github_jobs(doc)))
        doc = matrix(LARGEST, "--format", "gitlab")
        plan = {job["variants"][0]: job for job in matrix(LARGEST, "--json")["jobs"]}
        for name, job in gitlab_jobs(doc).items():
            makes = plan[name]["makes_cpu"], plan[name]["makes_gpu"]
            caches = [c for c in job["cache"] if not c["key"].startswith("ptbuild-files-")]
            self.assertEqual([c["policy"] == "pull-push" for c in caches], list(makes)[: len(caches)])
            self.assertEqual(len(caches), 2 if plan[name]["gpu_cache"] else 1)
            self.assertIn(job["stage"], doc["stages"])


class Files(unittest.TestCase):
    """What a job downloads for its world."""

    WORDS = ("pytorch-python313-cpu-avx2", "pytorch-python313-cpu-avx512", "pytorch-python312-cpu-avx2", "pytorch-python313-cuda12_8-sm90-avx2", "--release", "2.9.1")

    def test_one_job_of_each_world_keeps_them(self):
        doc = matrix(*self.WORDS, "--format", "github")
        cells = {cell["variants"]: cell for cell in github_cells(doc)}
        kept = [cells[name]["files"] for name in self.WORDS[:4]]
        self.assertRegex(kept[0], r"^ptbuild-files-2\.9\.1-debian13_lean-[0-9a-f]{16}$")
        self.assertEqual(kept[1], kept[0])
        self.assertRegex(kept[2], r"^ptbuild-files-2\.9\.1-debian13_lean-python3_12-[0-9a-f]{16}$")
        self.assertEqual(kept[3], "") # a toolkit is too large
        self.assertEqual(sorted(cell["files"] for cell in cells.values() if cell["keeps_files"]), sorted([kept[0], kept[2]]))
        for job in github_jobs(doc).values():
            steps = [step for step in job["steps"] if "files" in step["name"]]
            self.assertEqual([step["name"] for step in steps], ["files of the world", "download the files", "keep the files of the world"])
            restore, fetch, save = steps
            self.assertEqual((restore["id"], restore["if"], restore["with"]["key"]), ("files", "matrix.files != ''", "${{ matrix.files }}"))
            self.assertNotIn("restore-keys", restore["with"])
            self.assertEqual(save["with"], restore["with"])
            self.assertEqual({fetch["if"], save["if"]}, {"matrix.keeps_files && steps.files.outputs.cache-hit != 'true'"})
            self.assertIn('ptbuild fetch $VARIANTS --release "$RELEASE" --cache ptbuild-store', fetch["run"])
        jobs = gitlab_jobs(matrix(*self.WORDS, "--format", "gitlab"))
        policies = [(c["key"], c["policy"]) for job in jobs.values() for c in job["cache"] if c["key"].startswith("ptbuild-files-")]
        self.assertEqual(sorted(policies), sorted([(kept[0], "pull-push"), (kept[0], "pull"), (kept[2], "pull-push")]))

    def test_nothing_is_kept_where_nothing_is_downloaded(self):
        for options in (["--offline"], ["--root", "/"], ["--sandbox", "none"]):
            for format in ("github", "gitlab"):
                text = matrix_text(*self.WORDS[:1], *self.WORDS[4:], "--format", format, *options)
                self.assertNotIn("ptbuild-files-", text)
                self.assertNotIn("keeps_files", text)

    def test_another_lock_has_another_name(self):
        with tempfile.TemporaryDirectory() as d:
            profiles = os.path.join(d, "profiles")
            shutil.copytree(os.path.join(HERE, "..", "..", "profiles"), profiles)
            words = (*self.WORDS[:1], *self.WORDS[4:], "--format", "github", "--profiles", profiles)
            (before,) = github_cells(matrix(*words))
            for name in os.listdir(os.path.join(profiles, "worlds")):
                if name.startswith("debian13_lean.") and name.endswith(".lock"):
                    path = os.path.join(profiles, "worlds", name)
                    with open(path, encoding="utf-8") as f:
                        text = f.read()
                    digests = re.findall(r"^deb .* ([0-9a-f]{64}) ", text, re.M)
                    with open(path, "w", encoding="utf-8") as f:
                        f.write(text.replace(digests[0], digests[0][::-1]))
            (after,) = github_cells(json.loads(ptbuild("matrix", *words).stdout))
            self.assertNotEqual(before["files"], after["files"])
            self.assertEqual(before["cpu_cache"], after["cpu_cache"])

    def test_caches_that_a_repository_has_no_room_for_are_told(self):
        told = r"github keeps: compiled objects up to 56\.0 GiB \(28 caches\), downloads 0\.\d GiB \(2 worlds\), and a repository has 10\.0 GiB; use --ccache-remote URL, or fewer variants with --only GLOB"
        self.assertRegex(ptbuild("matrix", "build-pytorch/main", "--format", "github").stderr, told)
        for options in (["--ccache-remote", "redis://cache"], ["--only", "*-sm90-*avx2"]):
            self.assertNotIn("the caches", ptbuild("matrix", "build-pytorch/main", "--format", "github", *options).stderr)
        self.assertNotIn("the caches", ptbuild("matrix", "build-pytorch/main", "--format", "gitlab").stderr)


class Releases(unittest.TestCase):
    """Jobs that install the wheel of a release."""

    WORDS = ("pytorch-python313-cpu-avx2", "--release", "2.9.1", "--format")

    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.name = "ptbuild-9.9-py3-none-manylinux_2_31_x86_64.whl"
        self.write(self.name, "9.9")

    def write(self, name, version):
        path = os.path.join(self.dir.name, name)
        dist = "ptbuild-%s.dist-info/" % version
        with zipfile.ZipFile(path, "w") as wheel:
            wheel.writestr(dist + "METADATA", "Metadata-Version: 2.1\nName: ptbuild\nVersion: %s\n" % version)
            wheel.writestr(dist + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(dist + "RECORD", "%sMETADATA,,\n%sWHEEL,,\n%sRECORD,,\n" % (dist, dist, dist))
        with open(path, "rb") as f:
            self.digest = hashlib.sha256(f.read()).hexdigest()
        return path

    def ask(self, *words, status=0):
        got = subprocess.run([PTBUILD, "matrix", *words], cwd=self.dir.name, capture_output=True, text=True)
        self.assertEqual(got.returncode, status, got.stderr)
        return got

    def test_a_wheel_replaces_the_source(self):
        url = "https://example.org/v9/ptbuild-9.9-py3-none-manylinux_2_31_x86_64.whl"
        doc = matrix(*self.WORDS, "github", "--ptbuild", url + "=" + "0" * 64)
        jsonschema.validate(doc, GITHUB)
        for job in doc["jobs"].values():
            self.assertFalse(any("checkout" in step.get("uses", "") for step in job["steps"]))
            (script,) = [step["run"] for step in job["steps"] if step["name"] == "install ptbuild"]
            self.assertIn(f"'{url}#sha256={'0' * 64}'", script)
            self.assertIn("--no-install-recommends ca-certificates python3-venv\n", script)
            self.assertNotIn("cmake", script)
        doc = matrix(*self.WORDS, "gitlab", "--ptbuild", url + "=" + "0" * 64)
        jsonschema.validate(doc, GITLAB)
        for job in (doc[".ptbuild"], doc["index"]):
            self.assertEqual("\n".join(job["before_script"]), script)
        # A file of the repository is there in its checkout alone.
        doc = json.loads(self.ask(*self.WORDS, "github", "--ptbuild", self.name + "=" + self.digest).stdout)
        for job in doc["jobs"].values():
            self.assertEqual([step["name"] for step in job["steps"] if "checkout" in step.get("uses", "")], ["files that the jobs name"])

    def test_exactly_this_wheel_is_installed(self):
        """The lines of a job, with an environment of the test's, of this machine's pip."""
        place = os.path.join(self.dir.name, "opt")
        subprocess.run(["/usr/bin/python3", "-m", "venv", place], check=True)

        class Quiet(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *_):
                pass

        handler = functools.partial(Quiet, directory=self.dir.name)
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            self.addCleanup(server.shutdown)
            # The machine of the test may be another one, for which pip refuses the name. The wheel has no code.
            real = os.path.join(self.dir.name, "ptbuild-9.9-py3-none-any.whl")
            shutil.copy(os.path.join(self.dir.name, self.name), real)
            for where in ("http://127.0.0.1:%d/%s" % (server.server_port, self.name), self.name):
                for digest, good in ((self.digest, True), (self.digest[::-1], False)):
                    # A file must have its digest where the matrix is written, so the wrong one comes later.
                    text = self.ask(*self.WORDS, "gitlab", "--ptbuild", where + "=" + self.digest).stdout.replace(self.digest, digest)
                    lines = json.loads(text)[".ptbuild"]["before_script"]
                    (script,) = [line for line in lines if line.startswith("case ")]
                    script = script.replace("/opt/ptbuild", place).replace('"$(uname -m)"', "x86_64")
                    script = script.replace(self.name, os.path.basename(real))
                    got = subprocess.run(["sh", "-e", "-c", script], cwd=self.dir.name, env={"PATH": os.environ["PATH"], "no_proxy": "*", "HOME": self.dir.name}, capture_output=True, text=True)
                    self.assertEqual(got.returncode == 0, good, (where, got.stdout, got.stderr))
                    there = subprocess.run([place + "/bin/python", "-c", "import importlib.metadata as m; print(m.version('ptbuild'))"], capture_output=True, text=True)
                    self.assertEqual(there.stdout, "9.9\n" if good else "")
                    subprocess.run([place + "/bin/pip", "uninstall", "--yes", "ptbuild"], capture_output=True)

    def test_refusals(self):
        good = "https://example.org/ptbuild-9.9-py3-none-manylinux_2_31_x86_64.whl=" + "0" * 64
        arm = good.replace("x86_64", "aarch64")
        for words, status, says in (
            (["--ptbuild", self.name], 2, "the digest of the wheel is missing"),
            (["--ptbuild", "none/" + self.name + "=" + "0" * 64], 2, "does not exist"),
            (["--ptbuild", self.name + "=" + "0" * 64], 5, "has sha256 " + self.digest + ", not 000"),
            (["--ptbuild", good, "--image", "a/b:1"], 2, "cannot be used together"),
            (["--ptbuild", good, "--ptbuild", good], 2, "two wheels are for x86_64-linux"),
            (["--ptbuild", arm], 2, "no wheel is for x86_64-linux, which 'pytorch-python313-cpu-avx2' needs"),
        ):
            got = self.ask(*self.WORDS, "github", *words, status=status)
            self.assertIn(says, got.stderr)
            self.assertEqual(got.stdout, "")
        for format in ("json", "table", "slurm", "kubernetes"):
            got = self.ask(*self.WORDS, format, "--ptbuild", good, *(["--image", "a/b:1"] if format == "kubernetes" else []), status=2)
            self.assertIn("--ptbuild has no effect here", got.stderr)
        self.ask("pytorch-python313-cpu-avx2", "pytorch-python313-cpu-armv9", *self.WORDS[1:], "github", "--ptbuild", good, "--ptbuild", arm)


class Attestations(unittest.TestCase):
    def test_wheels_are_attested_with_no_more_rights_than_that_takes(self):
        words = ("pytorch-python313-cpu-avx2", "torchvision-python313-cpu-avx2", "--release", "2.9.1", "--format", "github")
        plain, doc = matrix(*words), matrix(*words, "--attest")
        jsonschema.validate(doc, GITHUB)
        names = [step["name"] for step in doc["jobs"]["index"]["steps"]]
        self.assertEqual(names[-3:], ["make the index", "attest the wheels", "keep the index"])
        step = doc["jobs"]["index"]["steps"].pop(-2)
        self.assertRegex(step["uses"], "^actions/attest-build-provenance@[0-9a-f]{40}$")
        self.assertEqual(step["with"], {"subject-path": "dist/*.whl"})
        self.assertEqual(doc["jobs"]["index"]["permissions"], {"contents": "read", "id-token": "write", "attestations": "write"})
        doc["jobs"]["index"]["permissions"] = {"contents": "read"}
        self.assertEqual(doc, plain)

    def test_others_refuse_it(self):
        for format in ("gitlab", "slurm", "json", "table", "kubernetes"):
            image = ["--image", "a/b:1"] if format == "kubernetes" else []
            got = ptbuild("matrix", "pytorch-python313-cpu-avx2", "--format", format, *image, "--attest", status=2)
            self.assertIn("--attest has no effect here", got.stderr)

    def test_one_attestation_has_a_limit(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as f:
            for python in ("310", "311", "312", "313", "314"):
                for gpu in itertools.combinations("sm70 sm75 sm80 sm86 sm89 sm90 sm100 sm120".split(), 3):
                    for isa in ("avx", "avx2", "avx512", "avx512vnni"):
                        f.write("pytorch-python%s-cuda12_8-%s-%s\n" % (python, "+".join(gpu), isa))
            f.flush()
            got = ptbuild("matrix", "--file", f.name, "--release", "2.10.0", "--format", "github", "--attest", status=2)
            self.assertIn("--attest: at most 1024 wheels at once, and these are 1120", got.stderr)


class Fetching(unittest.TestCase):
    def test_the_torch_that_is_implied_is_fetched_too(self):
        """Nothing is there: the first source that is missed is told."""
        with tempfile.TemporaryDirectory() as d:
            args = ["fetch", "--profile", "cpu-avx2", "--package", "torchvision", "--release", "2.6.0-debian", "--sources-only", "--offline", "--cache", d + "/s"]
            self.assertIn("'pytorch_2.6.0", ptbuild(*args, status=4).stderr)
            self.assertIn("'pytorch-vision_0.21.0", ptbuild(*args, "--torch", "root", status=4).stderr)


class Limits(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)

    def write(self, name, text):
        path = os.path.join(self.dir.name, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def many(self):
        sms = ["50", "52", "60", "61", "70", "75", "80", "86", "89", "90", "100", "103", "120"]
        isas = ["avx", "avx2", "avx512", "avx512bf16", "avx512vnni", "armv8_2", "armv9"]
        lines = ["# more than one matrix takes", ""]
        for python in ("310", "311", "312", "313", "314"):
            lines += ["pytorch-python%s-cuda12_9-sm%s-%s" % (python, sm, isa) for sm in sms for isa in isas]
        return self.write("many.txt", "\n".join(lines) + "\n"), len(lines) - 2

    def test_large_matrices_are_split(self):
        path, count = self.many()
        self.assertGreater(count, 400)
        github = matrix("--file", path, "--release", "2.10.0", "--format", "github")
        jsonschema.validate(github, GITHUB)
        self.assertEqual(len(github_cells(github)), count)
        sizes = [len(job["strategy"]["matrix"]["include"]) for job in github_jobs(github).values()]
        self.assertEqual(max(sizes), LIMIT)
        gitlab = matrix("--file", path, "--release", "2.10.0", "--format", "gitlab")
        jsonschema.validate(gitlab, GITLAB)
        self.assertEqual(len(gitlab_jobs(gitlab)), count)

    def test_runner_maps(self):
        path = self.write(
            "runners.yaml",
            "runners:\n"
            '  - {match: "*-sm90-*", labels: [self-hosted, hopper]}\n'
            "  - {platform: aarch64-linux, format: github, labels: [arm-box]}\n"
            "  - {labels: [other]}\n",
        )
        labels = {
            cell["variant"]: cell["runs_on"] for cell in github_cells(matrix("build-pytorch/main", "--format", "github", "--runner-map", path))
        }
        self.assertEqual(labels["pytorch-python313-cuda12_8-sm90-avx2"], ["self-hosted", "hopper"])
        self.assertEqual(labels["pytorch-python313-cuda12_8-sm80-armv9"], ["arm-box"])
        self.assertEqual(labels["pytorch-python313-cuda12_8-sm80-avx2"], ["other"])
        gitlab = matrix("build-pytorch/main", "--format", "gitlab", "--runner-map", path)
        tags = {name: job["tags"] for name, job in gitlab_jobs(gitlab).items()}
        self.assertEqual(tags["pytorch-python313-cuda12_8-sm90-avx2"], ["self-hosted", "hopper"])
        self.assertEqual(tags["pytorch-python313-cuda12_8-sm80-armv9"], ["other"])

    def test_a_job_that_its_limit_may_end_is_told(self):
        words = ["matrix", "pytorch-python313-cuda12_8-sm80+sm90+sm100-avx512", "pytorch-python313-cpu-avx2", "--release", "2.9.1", "--format"]
        for format in ("github", "gitlab"):
            got = ptbuild(*words, format)
            limit = {"github": "360", "gitlab": "180"}[format]
            for text in (f"has {limit} minutes", "up to ", "--shards 2", "--runner-map", "rough estimate"):
                self.assertIn(text, got.stderr)
        path = self.write("map.yaml", 'runners:\n  - {match: "*-sm80+*", labels: [self-hosted], minutes: 2880}\n  - {labels: [other]}\n')
        got = ptbuild(*words, "github", "--runner-map", path)
        self.assertEqual(got.stderr, "")
        doc = json.loads(got.stdout)
        jsonschema.validate(doc, GITHUB)
        self.assertEqual({job["timeout-minutes"] for name, job in doc["jobs"].items() if name != "index"}, {"${{ matrix.minutes }}"})
        self.assertEqual(sorted(cell["minutes"] for cell in github_cells(doc)), [360, 2880])
        self.assertEqual(sorted(cell["build_minutes"] for cell in github_cells(doc)), [340, 2860])
        steps = [step for name, job in doc["jobs"].items() if name != "index" for step in job["steps"]]
        limits = {step["name"]: step.get("timeout-minutes") for step in steps}
        self.assertEqual(limits["build"], "${{ matrix.build_minutes }}")
        self.assertEqual({name for name, limit in limits.items() if limit}, {"build"})
        self.assertEqual([step["with"]["retention-days"] for step in steps if step["name"] == "keep the wheels"], [3])
        jobs = gitlab_jobs(matrix(*words[1:], "gitlab", "--runner-map", path))
        self.assertEqual([jobs[name].get("timeout") for name in words[1:3]], ["2880 minutes", None])

    def test_disk_that_a_runner_lacks_is_told_with_one_that_has_it(self):
        words = ["matrix", "pytorch-python311-cuda12_8-sm89-avx2", "--release", "2.9.1"]
        (job,) = matrix(*words[1:], "--json")["jobs"]
        self.assertGreater(job["disk_bytes"], 40 << 30)
        self.assertGreater(job["estimate_seconds"], 60)
        table = matrix_text(*words[1:])
        self.assertRegex(table, r"(?s)time +disk .* 42\.\d GiB ")
        got = ptbuild(*words, "--format", "github")
        self.assertRegex(got.stderr, r"more disk than .*needs 42\.\d GiB, and 'ubuntu-24\.04' has 14\.0 GiB.*--runner-map.*\[self-hosted\]")
        self.assertNotIn("more disk", ptbuild(*words, "--format", "gitlab").stderr)
        path = self.write("map.yaml", "runners:\n  - {labels: [saas-linux-small-amd64]}\n")
        self.assertIn("labels: [saas-linux-medium-amd64]", ptbuild(*words, "--format", "gitlab", "--runner-map", path).stderr)
        path = self.write("map.yaml", "runners:\n  - {labels: [big], disk: 40G, cpus: '64', minutes: 2880}\n")
        self.assertIn("'big' has 40.0 GiB", ptbuild(*words, "--format", "github", "--runner-map", path).stderr)
        path = self.write("map.yaml", "runners:\n  - {labels: [big], disk: 60G, cpus: '64', minutes: 2880}\n")
        self.assertEqual(ptbuild(*words, "--format", "github", "--runner-map", path).stderr, "")

    def test_shards_answer_the_warning_that_names_them(self):
        words = ["matrix", "pytorch-python313-cuda12_8-sm80+sm90+sm100-avx512", "--release", "2.9.1", "--format", "github"]
        self.assertIn("has 360 minutes", ptbuild(*words).stderr)
        self.assertNotIn("360 minutes", ptbuild(*words, "--ccache-remote", "redis://cache", "--shards", "2").stderr)

    def test_jobs_without_an_image_say_that_they_need_the_source(self):
        words = ["pytorch-python313-cpu-avx2", "--format"]
        github, gitlab = matrix(*words, "github"), matrix(*words, "gitlab")
        scripts = [step["run"] for job in github["jobs"].values() for step in job["steps"] if step["name"] == "install ptbuild"]
        self.assertEqual(len(scripts), 2)
        scripts.append("\n".join(gitlab[".ptbuild"]["before_script"]))
        for script in scripts:
            check = "\n".join(script.splitlines()[:2])
            self.assertIn("has ptbuild's source at its top", check)
            got = subprocess.run(["sh", "-ec", check], cwd=self.dir.name, capture_output=True, text=True)
            self.assertEqual(got.returncode, 1)
            self.assertIn("--image", got.stderr)
        self.assertNotIn("install-packages", matrix_text(*words, "github", "--image", "a/b:1"))

    def test_bad_runner_maps(self):
        for text, status, words in (
            ("runners:\n  - {labels: [a], minutes: 6h}\n", 3, "2: '6h' is not a number of minutes"),
            ("runners:\n  - {labels: [a], disk: much}\n", 3, "not a size: 'much'"),
            ("runners:\n  - {labels: [a], cpus: none}\n", 3, "2: 'none' is not a number of processors"),
            ("runners:\n  - {labels: [a], minutes: -3}\n", 3, "2: '-3' is not a number of minutes"),
            ("runners:\n  - {labels: [a], minutes: 999999999999999}\n", 3, "is not a number of minutes"),
            ('runners:\n  - {match: "*-sm90-*", labels: [x]}\n', 3, "no row of the runner map matches"),
            ("runners:\n  - {match: x}\n", 3, "missing key 'labels'"),
            ("runners:\n  - {labels: ['a;b']}\n", 3, "2: 'a;b' is not a runner label"),
            ("runner:\n  - {labels: [a]}\n", 3, "unknown key 'runner'"),
            ("runners: []\n", 3, "at least 1"),
            ("runners:\n  - {platfrom: x86_64-linux, labels: [a]}\n", 3, "2: unknown key 'platfrom'\nhint: did you mean 'platform'?"),
            ("runners:\n  - {platform: x86_64-linx, labels: [a]}\n", 3, "2: 'platform' cannot be 'x86_64-linx'\nhint: did you mean 'x86_64-linux'? it is one of: "),
            ("runners:\n  - {labels: [a]}\n  - {format: githb, labels: [a]}\n", 3, "3: 'format' cannot be 'githb'\nhint: did you mean 'github'? it is one of: "),
            ("runners:\n  - {labels: [partition=long, constraint=avx512]}\n", 3, "'partition=long' of the runner map is an option of Slurm's sbatch, and the jobs are for github"),
        ):
            path = self.write("bad.yaml", text)
            got = ptbuild("matrix", "build-pytorch/main", "--format", "github", "--runner-map", path, status=status)
            self.assertIn(words, got.stderr)
            self.assertEqual(got.stdout, "")

    def test_default_runners(self):
        cells = github_cells(matrix("build-pytorch/main", "--format", "github"))
        self.assertEqual({label for cell in cells for label in cell["runs_on"]}, {"ubuntu-24.04", "ubuntu-24.04-arm"})

    def test_options_reach_the_command(self):
        doc = matrix("pytorch-python313-cpu-avx2", "--format", "github", "--blas", "mkl", "--set", "USE_NUMA=OFF", "--image", "a/b:1",
                     "--cuda-libraries", "system", "--platform", "linux", "--metadata-rev", "2")
        jsonschema.validate(doc, GITHUB)
        job = doc["jobs"]["wave-1-1"]
        self.assertEqual(job["container"]["image"], "a/b:1")
        self.assertFalse(any("checkout" in step.get("uses", "") for step in job["steps"]))
        self.assertTrue(any("--cuda-libraries system --blas mkl --set USE_NUMA=OFF --platform linux --metadata-rev 2" in step.get("run", "") for step in job["steps"]))
        # Tables of the repository are there in its checkout alone.
        tables = os.path.relpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "profiles"))
        for image in ([], ["--image", "a/b:1"]):
            for given, count in ((tables, 1), (os.path.abspath(tables), 0 if image else 1)):
                doc = matrix("pytorch-python313-cpu-avx2", "--format", "github", "--profiles", given, *image)
                steps = doc["jobs"]["wave-1-1"]["steps"]
                self.assertEqual(sum("checkout" in step.get("uses", "") for step in steps), count, (given, image))
        got = ptbuild("matrix", "pytorch-python313-cpu-avx2", "--set", "CFLAGS=$(reboot)", status=2)
        self.assertIn("cannot be written into a CI file", got.stderr)

    def test_options_of_every_command_reach_the_jobs_or_are_refused(self):
        options = "--jobs 3 --root /r --mirror /m --lower-store /a --lower-store /b --store-url http://s/x --sandbox none --without-protection seccomp --max-processes 99 --max-time 2h --no-drift --offline"
        for format in ("github", "gitlab"):
            text = matrix_text("pytorch-python313-cpu-avx2", "--format", format, *options.split())
            for option in re.findall("--[^-]\\S+(?: [^-]\\S*)?", options):
                self.assertIn(" " + option + " ", text)
            for option in ("--cache", "--out"):
                got = ptbuild("matrix", "pytorch-python313-cpu-avx2", "--format", format, option, "x", status=2)
                self.assertIn(option + " has no effect here", got.stderr)
            text = matrix_text("pytorch-python313-cpu-avx2", "--format", format, "--ccache-remote", "redis://cache:6379")
            self.assertIn("--ccache-remote redis://cache:6379", text)
            self.assertNotIn("ptbuild-store/compiled", text)
            for url, words in (("redis://:pw@cache", "readable in"), ("cache", "redis://")):
                self.assertIn(words, ptbuild("matrix", "pytorch-python313-cpu-avx2", "--format", format, "--ccache-remote", url, status=2).stderr)

    def test_refusals(self):
        for args, status, words in (
            (["build-pytorch/mian"], 3, "build-pytorch/main"),
            (["build-pytorch/main", "--format", "jenkins"], 2, "it is table, json, github, gitlab, kubernetes, slurm or html"),
            (["build-pytorch/main", "--json", "--format", "table"], 2, "--json and --format table cannot be used together"),
            (["build-pytorch/main", "--json", "--format", "slurm"], 2, "--json and --format slurm cannot be used together"),
            (["--status", ".", "--json", "--format", "html"], 2, "--json alone has the same as data"),
            (["pytorch-python313-cuda12_8-sm110-armv9", "--release", "2.10.0"], 7, "none of these variants can be built"),
            (["build-pytorch/main", "--file", __file__], 2, "--file already names"),
            ([], 2, "no matrix is named"),
            (["pytorch-python313-cpu-avx9"], 3, "avx9"),
        ):
            got = ptbuild("matrix", *args, status=status)
            self.assertIn(words, got.stderr)
            if "--json" in args:
                self.assertIn(words, "{message} {hint}".format(**json.loads(got.stdout)["error"]))
            else:
                self.assertEqual(got.stdout, "")
        empty = self.write("empty.txt", "# nothing\n\n")
        self.assertIn("no variant is named", ptbuild("matrix", "--file", empty, status=3).stderr)

    def test_shards_reach_every_format(self):
        words = ["build-pytorch/main", "--only", "*-sm90-*", "--shards", "3", "--ccache-remote", "redis://cache:6379"]
        github, gitlab, own = matrix(*words, "--format", "github"), matrix(*words, "--format", "gitlab"), matrix(*words, "--json")
        jsonschema.validate(github, GITHUB)
        jsonschema.validate(gitlab, GITLAB)
        shards = [job["shard"] for job in own["jobs"] if "shard" in job]
        self.assertEqual(shards.count("1/3"), shards.count("last"))
        self.assertGreater(shards.count("last"), 0)
        self.assertEqual(sorted(cell["shard"] for cell in github_cells(github) if cell["shard"]), sorted(shards))
        scripts = [job["script"][0] for job in gitlab_jobs(gitlab).values()]
        self.assertEqual(sum(" --shard " in script for script in scripts), len(shards))
        plain = matrix("build-pytorch/main", "--only", "*-sm90-*", "--json")["jobs"]
        self.assertEqual(len(own["jobs"]), len(plain) + 3 * shards.count("last"))

    def test_shards_are_refused_where_they_cannot_be(self):
        for format in ("github", "gitlab"):
            self.assertIn("add --ccache-remote", ptbuild("matrix", "pytorch-python313-cpu-avx2", "--format", format, "--shards", "2", status=2).stderr)
        self.assertIn("at most 64", ptbuild("matrix", "pytorch-python313-cpu-avx2", "--shards", "65", status=2).stderr)

    def test_a_toolkit_that_is_open_is_the_one_of_the_plan(self):
        asked = ["python313Packages.torchvision-sm90-avx2", "python313Packages.pytorch-sm90-avx2", "python313Packages.pytorch-sm80-avx2"]
        named = ["torchvision-python313-cuda12_6-sm90-avx2", "pytorch-python313-cuda12_6-sm90-avx2", "pytorch-python313-cuda12_6-sm80-avx2"]
        for format in ("json", "table", "slurm", "github", "gitlab"):
            one, two = (ptbuild("matrix", *words, "--release", "2.7.1", "--format", format) for words in (asked, named))
            self.assertEqual((one.stdout, one.stderr), (two.stdout, two.stderr))
        for words, warns in (([], False), (["--root", "world:debian12"], False), (["--root", "/"], True), (["--sandbox", "none"], True)):
            said = ptbuild("matrix", asked[0], "--release", "2.7.1", "--format", "github", *words).stderr
            self.assertEqual("jobs for CUDA need --image" in said, warns, (words, said))
        jobs = matrix(*asked, "--release", "2.7.1", "--json")["jobs"]
        self.assertIn([f"dist/{name}/build.json" for name in (named[1], named[0])], [job["outputs"] for job in jobs])
        # sm120 needs a newer toolkit than the release's first
        jobs = matrix("python313Packages.pytorch-sm120-avx2", named[1], "--release", "2.7.1", "--json")["jobs"]
        self.assertEqual(sorted(job["cuda"] for job in jobs), ["12.6", "12.8"])
        self.assertEqual(len({job["cpu_cache"] for job in jobs}), 2)

    def test_a_profile_file_is_found_by_its_name_or_refused(self):
        os.mkdir(os.path.join(self.dir.name, "pf"))
        for path in ("small.yaml", "pf/small.yaml", "pf/big.yaml"):
            self.write(path, "inherit: cpu-avx2\n")
        def ask(profile):
            return subprocess.run([PTBUILD, "matrix", "--profile", profile, "--python", "3.13", "--json"], cwd=self.dir.name, capture_output=True, text=True)
        for profile, name in (("./small.yaml", "small"), ("l40s-server", "l40s-server"), ("cpu-avx2", "cpu-avx2")):
            self.assertIn(f"-{name} --release", json.loads(ask(profile).stdout)["jobs"][0]["command"])
        for profile in ("./pf/small.yaml", "./pf/big.yaml"): # the first name is that of another file, the second of none
            got = ask(profile)
            self.assertEqual((got.returncode, json.loads(got.stdout)["error"]["exit_code"]), (2, 2))
            self.assertIn(f"'{profile}' cannot be the profile of a job", got.stderr)
            self.assertRegex(got.stderr, "profiles/examples'.*cpu-avx2")

    def test_the_manual_says_which_options_of_build_do_not_reach_the_jobs(self):
        build, own = (set(re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", ptbuild("help", command).stdout, re.M)) for command in ("build", "matrix"))
        missing = sorted(build - own)
        self.assertIn("--keep", missing)
        for name in ("ci.md", "clusters.md"):
            with open(os.path.join(HERE, "..", "..", "docs", name), encoding="utf-8") as f:
                told = re.search(r"From the options of `build` alone.*? are no options of `matrix`|$", f.read(), re.S).group()
            self.assertEqual([option for option in missing if f"`{option}`" not in told], [], name)
            self.assertEqual([option for option in re.findall("`(--[a-z-]+)`", told) if option not in missing + ["--ccache-remote"]], [], name)
        for option in set(missing) & {"--keep", "--check"}:
            self.assertIn("unknown option", ptbuild("matrix", "pytorch-python313-cpu-avx2", option, status=2).stderr)

    def test_impossible_variants_are_left_out_and_said(self):
        got = ptbuild("matrix", "build-torchaudio/main", "--format", "github")
        self.assertIn("sm103-avx2 is left out: cuda12_8 has no sm103", got.stderr)
        self.assertNotIn("sm103", got.stdout)

    def test_the_table(self):
        got = ptbuild("matrix", "build-torchvision/main", "--only", "*-sm90-*")
        lines = got.stdout.splitlines()
        self.assertEqual(sum(line.startswith("wave  shares") for line in lines), 1)
        self.assertIn("wave 1: 2 jobs compile C++ units for 2 instruction sets and GPU units for 2 lists", lines)
        self.assertIn("torchvision-python313-cuda12_8-sm90-avx2", got.stdout)


if __name__ == "__main__":
    unittest.main()
