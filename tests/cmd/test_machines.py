#!/usr/bin/python3
"""Whatever is recommended to a recorded machine runs there: the build line and the slim line of 'detect', and what 'install' takes.

Each choice is judged here, by the machine's description, the tables of profiles/ and NVIDIA's rules, and by nothing that ptbuild says of it.
"""
import functools
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

import yaml

HERE = os.path.dirname(os.path.realpath(__file__))
PROGRAM = os.path.realpath(sys.argv.pop(1)) if __name__ == "__main__" else ""
MACHINES = os.path.join(HERE, "..", "data", "machines")
PROFILES = os.path.join(HERE, "..", "..", "profiles")
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
from wheelsite import make_wheel  # noqa: E402

# What descriptions leave open: the C library and the Pythons. None: as the description has it.
SYSTEMS = (None, ("2.41", "3.13"), ("2.31", "3.9 3.12"), ("2.36", "3.14t"), ("2.17", "3.13"))
LABELS = {
    "x86_64": ["cpu.avx", "cpu.avx2", "cpu.avx512", "cu124.sm70.avx2", "cu126.sm50.avx2", "cu126.sm60.avx", "cu126.sm75.avx2", "cu126.sm80.avx2", "cu126.sm86.avx2", "cu126.sm90.avx512",
               "cu128.sm120.avx2", "cu129.sm103.avx2", "cu130.sm75.avx2", "cu130.sm80.avx2", "cu130.sm90.avx512", "cu130.sm100.avx2", "cu130.sm120.avx2", "cu132.sm89.avx2"],
    "aarch64": ["cpu.armv8.2", "cpu.armv9", "cpu.neoverse.v1", "cu126.sm80.armv8.2", "cu126.sm90.armv9", "cu130.sm90.armv9", "cu130.sm100.armv9", "cu130.sm110.armv9", "cu130.sm121.armv9"],
}
TAGS = ("cp39-cp39-manylinux_2_28", "cp313-cp313-manylinux_2_28", "cp313-cp313-manylinux_2_17", "cp314-cp314t-manylinux_2_34")


def table(name):
    with open(os.path.join(PROFILES, name), encoding="utf-8") as f:
        return yaml.safe_load(f)


def number(version):
    return tuple(int(n) for n in re.findall(r"\d+", version or "")[:4])


class Facts:
    """A machine as its file describes it, and what NVIDIA says that it runs."""
    toolkits = {str(r["version"]): r for r in table("cuda.yaml")["toolkits"]}
    gpus = {r["sm"]: r for r in table("gpu.yaml")["gpus"]}
    on_chip = {r["capability"] for r in gpus.values() if r.get("tegra")}
    same = {f"{a[:-1]}.{a[-1]}": r["capability"] for r in gpus.values() for a in r.get("aliases", [])}
    shares = {r["capability"]: str(r["shares_from"]) for r in gpus.values() if "shares_from" in r}
    isas = {r["name"]: r for r in table("isa.yaml")["isas"]}

    def __init__(self, path):
        with open(path, encoding="utf-8") as f:
            self.data = data = yaml.safe_load(f)
        cpu = data["cpu"]
        self.platform, self.driver, self.cuda = data["platform"], data.get("driver", ""), str(data.get("driver_cuda", ""))
        self.gpus_here = [self.same.get(g["capability"], g["capability"]) for g in data.get("gpus", [])]
        listed, probed = cpu.get("flags", "").split(), cpu.get("probed", "").split()
        self.features = {f for f in listed or probed if not probed or f in probed}
        saved = int(str(cpu.get("xcr0", "0xffffffff")), 16)
        for begin, state in (("avx512", 0xE6), ("amx", 0x60000), ("avx", 0x6), ("fma", 0x6)):
            if saved & state != state:
                self.features = {f for f in self.features if not f.startswith(begin)}

    def driver_fit(self, cuda):
        """"own", "minor" (no PTX), "no", or "unknown"; for a toolkit that no row has, as for the nearest of its line."""
        line = sorted((r for v, r in self.toolkits.items() if number(v)[0] == number(cuda)[0]), key=lambda r: number(str(r["version"])))
        floor = number(line[0]["driver_floor"]) if line else (999999,)
        if self.cuda and number(self.cuda)[:2] >= number(cuda)[:2]:
            return "own"
        if self.driver:
            if cuda in self.toolkits and number(self.driver) >= number(self.toolkits[cuda]["driver"]):
                return "own"
            return "minor" if number(self.driver) >= floor else "no"
        if self.cuda:
            return "minor" if number(self.cuda)[0] == number(cuda)[0] else "no"
        return "unknown"

    def runs_code(self, target, gpu, ptx, cuda="12.8"):
        """A target as "90", "90a", "9.0" or "12.0+PTX", built with a toolkit; `ptx`: the driver compiles it."""
        digits, suffix = re.fullmatch(r"([\d.]+)([af]?(?:\+ptx)?)", target.lower()).groups()
        code = digits if "." in digits else f"{digits[:-1]}.{digits[-1]}"
        (major, minor), (own_major, own_minor) = number(code), number(gpu)
        if "ptx" in suffix and ptx and (own_major, own_minor) >= (major, minor):
            return True
        if code == gpu:
            return True
        apart = code in self.on_chip or (gpu in self.on_chip and number(cuda) < number(self.shares.get(gpu, "999")))
        return major == own_major and own_minor > minor and "a" not in suffix and not apart

    def why_not(self, cuda, targets, each=True):
        """Why code for these targets does not run; `each`: on every GPU; else on one of them."""
        if not targets:
            return ""
        fit = self.driver_fit(cuda)
        if fit == "no":
            return f"the driver {self.driver or self.cuda} does not run CUDA {cuda}"
        lack = [g for g in self.gpus_here if not any(self.runs_code(t, g, fit != "minor", cuda) for t in targets)]
        if not self.gpus_here or (lack if each else len(lack) == len(self.gpus_here)):
            return f"no code for {lack or 'a GPU: there is none'} in {targets}"
        return ""

    def lacks_isa(self, name):
        lack = set(self.isas[name].get("cpuinfo", [])) - self.features
        return f"the processor lacks {sorted(lack)} of {name}" if lack else ""


@functools.lru_cache(None)
def detected(place, system):
    """What 'detect' says of a description; `system` is what the description was made with."""
    return json.loads(run("detect", "--machine", place, "--json").stdout)


def run(*words):
    env = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LC_ALL": "C.UTF-8"}
    return subprocess.run([PROGRAM, *words, "--profiles", PROFILES], capture_output=True, text=True, env=env, timeout=120)


def official(release):
    """File names with their CUDA, and GPU targets, of profiles/official."""
    files, gpus = {}, {}
    with open(os.path.join(PROFILES, "official", release), encoding="utf-8") as f:
        for line in f.read().splitlines()[1:]:
            words = line.split()
            if words and words[0] == "gpus":
                gpus[words[1]] = words[2:]
            elif words and words[0] != "#":
                files[words[0]] = words[3]
    return files, gpus


def tag_fits(file, glibc, pythons, machine):
    python, abi, platform = file[:-len(".whl")].split("-")[-3:]
    tags = ["cp" + p.rstrip("t").replace(".", "") for p in pythons], [("cp" + p.replace(".", "")) for p in pythons]
    floors = [number(m) for m in re.findall(r"manylinux_(\d+_\d+)_" + machine, platform)]
    return python in tags[0] and abi in tags[1] and any(number(glibc) >= f for f in floors)


class Machines(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = tempfile.TemporaryDirectory()
        cls.index = os.path.join(cls.work.name, "dist")
        os.mkdir(cls.index)
        for machine, labels in LABELS.items():
            for label in labels:
                for tag in TAGS:
                    make_wheel(cls.index, "torch", f"2.9.1+{label}", python=f"{tag}_{machine}")
        made = run("index", cls.index)
        assert made.returncode == 0, made.stderr
        cls.names = sorted(n[:-len(".yaml")] for n in os.listdir(MACHINES) if n.endswith(".yaml"))
        cls.table = {}

    @classmethod
    def tearDownClass(cls):
        cls.work.cleanup()
        for (name, system), row in cls.table.items():
            print(f"{name:34} {' '.join(system or ('-',)):14} {row.get('build', '-'):24} {row.get('slim', '-'):10} {row.get('install', '-')}")

    def each(self, systems, judge):
        """judge(facts, file, system, row of the table) for every machine with each of the systems; how many it says to be chosen."""
        chosen = 0
        for name in self.names:
            path = os.path.join(MACHINES, name + ".yaml")
            facts = Facts(path)
            for system in systems if facts.platform.endswith("-linux") else (None,):
                here = path
                if system:
                    here = os.path.join(self.work.name, f"{name}-{'-'.join(system).replace(' ', '-')}.json")
                    with open(here, "w", encoding="utf-8") as f:
                        json.dump({**facts.data, "glibc": system[0], "pythons": system[1]}, f)
                with self.subTest(machine=name, system=system):
                    chosen += bool(judge(facts, here, system, self.table.setdefault((name, system), {})))
        return chosen

    def test_simulation_refuses_what_cannot_run(self):
        old = Facts(os.path.join(MACHINES, "zen4-9654-h100.yaml"))  # driver 570
        self.assertEqual([old.driver_fit(c) for c in ("12.8", "12.9", "13.0")], ["own", "minor", "no"])
        self.assertTrue(old.why_not("13.0", ["90"]) and old.why_not("12.8", ["80", "90a+ptx"][:1]) and old.why_not("12.9", ["80+ptx"]))
        self.assertFalse(old.why_not("12.8", ["80+ptx"]) or old.why_not("12.9", ["80", "90a"]))
        self.assertTrue(old.runs_code("86", "8.9", False) and not old.runs_code("80", "8.7", True) and not old.runs_code("90a", "10.0", True))
        self.assertTrue(Facts(os.path.join(MACHINES, "vm-zmm-switched-off.yaml")).lacks_isa("avx512"))
        self.assertTrue(tag_fits("t-1-cp313-cp313-manylinux_2_28_x86_64.whl", "2.28", ["3.13"], "x86_64"))
        self.assertFalse(tag_fits("t-1-cp313-cp313-manylinux_2_28_x86_64.whl", "2.27", ["3.13"], "x86_64") or tag_fits("t-1-cp313-cp313t-manylinux_2_28_x86_64.whl", "2.28", ["3.13"], "x86_64"))

    def build_line(self, facts, path, system, row):
        told = detected(path, system)
        if not told.get("command"):
            return self.assertTrue("error" in told or told["profile"] is None, told)
        words = shlex.split(told["command"])[1:]
        plan = run("plan", *words[words[0] == "plan":], "--json")  # a Mac's line plans, and others build
        self.assertEqual(plan.returncode, 0, (told["command"], plan.stderr))
        plan = json.loads(plan.stdout)
        self.assertEqual(plan["platform"], facts.platform)
        if plan["isa"]:
            self.assertFalse(facts.lacks_isa(plan["isa"]))
        self.assertFalse(facts.why_not(plan["cuda"], plan["gpu"], each=False))
        if facts.gpus_here and not plan["gpu"]:
            self.assertTrue(told["warnings"], "a GPU is not used, and nothing says why")
        if system:
            glibc = plan["runs_on"]["glibc"]
            self.assertTrue(not glibc or number(glibc) <= number(system[0]) or "glibc" in " ".join(told["warnings"]), told)
        row["build"] = f"{told['profile']} {plan['cuda'] or ''}"
        return True

    def test_build_line_of_every_machine_runs(self):
        self.assertGreater(self.each((SYSTEMS[0], SYSTEMS[4]), self.build_line), 100)

    def slim_line(self, facts, path, system, row):
        line = detected(path, system).get("without_build")
        if not line:
            return False
        tried = run(*shlex.split(line)[1:], "--dry-run", "--offline", "--cache", os.path.join(self.work.name, "store"))
        # after its own checks it looks for the wheel
        found = re.search(r"error: '(\S+\.whl)' .* is not in the store and --offline", tried.stderr)
        self.assertTrue(tried.returncode == 4 and found, (line, tried.stderr))
        release, machine = re.search(r"--release (\S+)", line)[1], facts.platform.split("-")[0]
        files, gpus = official(release)
        self.assertTrue(found[1].endswith(machine + ".whl"), line)
        self.assertFalse(facts.why_not(files[found[1]], gpus[machine]), line)
        self.assertNotEqual(facts.driver_fit(files[found[1]]), "unknown")
        if system:
            self.assertTrue(tag_fits(found[1], system[0], system[1].split(), machine), (found[1], system))
        row["slim"] = release
        return True

    def test_slim_line_of_every_machine_runs(self):
        self.assertGreater(self.each(SYSTEMS, self.slim_line), 60)

    def install_choice(self, facts, path, system, row):
        got = run("install", self.index, "--print", "--json", "--machine", path)
        if got.returncode == 7:
            return False
        self.assertEqual(got.returncode, 0, got.stderr)
        label, machine = json.loads(got.stdout)["install"][0].partition("+")[2], facts.platform.split("-")[0]
        self.assertIn(label, LABELS[machine])
        cuda, targets, isa = re.fullmatch(r"(cpu|cu\d+)\.((?:sm\d+\.)*)(.*)", label).groups()
        self.assertFalse(facts.lacks_isa(isa.replace(".", "_")), label)
        if targets:
            self.assertFalse(facts.why_not(f"{cuda[2:4]}.{cuda[4:]}", re.findall(r"\d+", targets), each=False), label)
        self.assertTrue(any(tag_fits(f"torch-2.9.1-{t}_{machine}.whl", system[0], system[1].split(), machine) for t in TAGS), (label, system))
        row["install"] = label
        return True

    def test_install_choice_of_every_machine_runs(self):
        self.assertGreater(self.each(SYSTEMS[1:], self.install_choice), 150)


if __name__ == "__main__":
    unittest.main(verbosity=2)
