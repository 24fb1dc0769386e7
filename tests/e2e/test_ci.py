#!/usr/bin/python3
"""`ptbuild matrix`: its files against schemas of what the services take, and what they promise about sharing."""

import functools
import json
import os
import subprocess
import sys
import tempfile
import unittest

import jsonschema

PTBUILD = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else "ptbuild"
HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "data", "ci")
LARGEST = "build-pytorch/pytorch-2.10-python313"
LIMITS = {"github": 256, "gitlab": 200}


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
    return [cell for job in doc["jobs"].values() for cell in job["strategy"]["matrix"]["include"]]


def gitlab_jobs(doc):
    return {name: job for name, job in doc.items() if name != "stages"}


def gitlab_cells(doc):
    return [cell for job in gitlab_jobs(doc).values() for cell in job["parallel"]["matrix"]]


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
                self.assertEqual(sorted(cell["VARIANTS"] for cell in gitlab_cells(gitlab)), wanted)

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
        good["wave-1-1"]["tag"] = ["x"]
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
    def test_wave_two_compiles_nothing_new(self):
        for name in names():
            jobs = matrix(name, "--json")["jobs"]
            first = [job for job in jobs if job["wave"] == 1]
            cpu = {job["cpu_cache"] for job in first}
            gpu = {job["gpu_cache"] for job in first}
            for job in jobs:
                self.assertIn(job["cpu_cache"], cpu, name)
                self.assertIn(job["gpu_cache"], gpu, name)

    def test_wave_one_is_about_one_row_and_one_column(self):
        jobs = matrix(LARGEST, "--only", "*-cuda12_8-*-avx*", "--json")["jobs"]
        rows, columns = {job["gpu_cache"] for job in jobs}, {job["cpu_cache"] for job in jobs}
        first = [job for job in jobs if job["wave"] == 1]
        self.assertEqual((len(jobs), len(rows), len(columns)), (37, 8, 5))
        self.assertLessEqual(len(first), max(len(rows), len(columns)) + 1)

    def test_jobs_that_share_stand_together(self):
        keys = [(job["wave"], job["gpu_cache"] or "") for job in matrix(LARGEST, "--json")["jobs"]]
        self.assertEqual(keys, sorted(keys))

    def test_wave_one_keeps_its_caches_and_wave_two_takes_them(self):
        doc = matrix(LARGEST, "--format", "github")
        for name, job in doc["jobs"].items():
            uses = [step.get("uses", "") for step in job["steps"]]
            self.assertEqual(name.startswith("wave-1-"), "actions/cache/save@v4" in uses)
            self.assertIn("actions/cache/restore@v4", uses)
            self.assertEqual("needs" in job, not name.startswith("wave-1-"))
            for other in job.get("needs", []):
                self.assertTrue(other.startswith("wave-1-"))
        doc = matrix(LARGEST, "--format", "gitlab")
        for name, job in gitlab_jobs(doc).items():
            self.assertEqual({c["policy"] for c in job["cache"]}, {"pull-push" if name.startswith("wave-1-") else "pull"})
            self.assertIn(job["stage"], doc["stages"])
            for cell in job["parallel"]["matrix"]:
                self.assertEqual("GPU_CACHE" in cell, len(job["cache"]) == 2)


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
        sizes = [len(job["strategy"]["matrix"]["include"]) for job in github["jobs"].values()]
        self.assertEqual(max(sizes), LIMITS["github"])
        gitlab = matrix("--file", path, "--release", "2.10.0", "--format", "gitlab")
        jsonschema.validate(gitlab, GITLAB)
        self.assertEqual(len(gitlab_cells(gitlab)), count)
        self.assertEqual(max(len(job["parallel"]["matrix"]) for job in gitlab_jobs(gitlab).values()), LIMITS["gitlab"])

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
        tags = {
            cell["VARIANTS"].split()[0]: job["tags"] for job in gitlab_jobs(gitlab).values() for cell in job["parallel"]["matrix"]
        }
        self.assertEqual(tags["pytorch-python313-cuda12_8-sm90-avx2"], ["self-hosted", "hopper"])
        self.assertEqual(tags["pytorch-python313-cuda12_8-sm80-armv9"], ["other"])

    def test_bad_runner_maps(self):
        for text, status, words in (
            ('runners:\n  - {match: "*-sm90-*", labels: [x]}\n', 3, "no row of the runner map matches"),
            ("runners:\n  - {match: x}\n", 3, "missing key 'labels'"),
            ("runners:\n  - {labels: ['a;b']}\n", 3, "2: 'a;b' is not a runner label"),
            ("runner:\n  - {labels: [a]}\n", 3, "unknown key 'runner'"),
            ("runners: []\n", 3, "at least 1"),
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
        self.assertEqual(job["container"], "a/b:1")
        self.assertTrue(any("--cuda-libraries system --blas mkl --set USE_NUMA=OFF --platform linux --metadata-rev 2" in step.get("run", "") for step in job["steps"]))
        got = ptbuild("matrix", "pytorch-python313-cpu-avx2", "--set", "CFLAGS=$(reboot)", status=2)
        self.assertIn("cannot be written into a CI file", got.stderr)

    def test_refusals(self):
        for args, status, words in (
            (["build-pytorch/mian"], 3, "build-pytorch/main"),
            (["build-pytorch/main", "--format", "jenkins"], 2, "it is table, json, github or gitlab"),
            (["build-pytorch/main", "--json", "--format", "table"], 2, "cannot be used together"),
            (["pytorch-python313-cuda12_8-sm110-armv9", "--release", "2.10.0"], 7, "none of these variants can be built"),
            (["build-pytorch/main", "--file", os.devnull], 2, "--file already names"),
            ([], 2, "no matrix is named"),
            (["pytorch-python313-cpu-avx9"], 3, "avx9"),
        ):
            got = ptbuild("matrix", *args, status=status)
            self.assertIn(words, got.stderr)
            self.assertEqual(got.stdout, "")
        empty = self.write("empty.txt", "# nothing\n\n")
        self.assertIn("no variant is named", ptbuild("matrix", "--file", empty, status=3).stderr)

    def test_impossible_variants_are_left_out_and_said(self):
        got = ptbuild("matrix", "build-torchaudio/main", "--format", "github")
        self.assertIn("sm103-avx2 is left out: cuda12_8 has no sm103", got.stderr)
        self.assertNotIn("sm103", got.stdout)

    def test_the_table(self):
        got = ptbuild("matrix", "build-torchvision/main", "--only", "*-sm90-*")
        lines = got.stdout.splitlines()
        self.assertEqual(len(lines), 7)
        self.assertTrue(lines[0].startswith("wave  shares"))
        self.assertIn("torchvision-python313-cuda12_8-sm90-avx2", got.stdout)


if __name__ == "__main__":
    unittest.main()
