"""From a profile to a wheel that imports, on a stand-in for PyTorch in each of its three build eras; and what each kind of bad input gets."""

import base64
import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
import zipfile

from toy import ERAS, busy, host_python, main, record, remove_place


def ok(result):
    assert result.returncode == 0, f"exit {result.returncode}: {result.stderr[-2000:]}"
    return result


def fails(result, code, *parts):
    assert result.returncode == code, f"exit {result.returncode} instead of {code}: {result.stderr[-2000:]}"
    for part in parts:
        assert part in result.stderr, f"'{part}' is not in: {result.stderr[-2000:]}"
    return result


def check_wheel(world, era):
    built = ok(world.build(era))
    item = record(built)
    assert not item["store_hit"]
    r = item["record"]
    check_runs_on(world, item, built.stderr)
    assert re.fullmatch(r"torch-2\.9\.1\+cpu\.avx2-cp3\d+-cp3\d+-manylinux_2_\d+_x86_64\.whl", r["wheel"]), r["wheel"]
    assert r["build"]["host_units_checked"] >= 10 and r["build"]["cache_entries_checked"] > 20
    assert r["used"]["ran"] and all(c["ok"] for c in r["used"]["checks"]) and len(r["used"]["checks"]) == 6
    assert [v["needed"] for v in r["vendored"]] == ["libyaml-0.so.2"]
    assert r["verified"]["errors"] == 0
    check_report(world, r)
    return r


def check_runs_on(world, item, said):
    """Where the wheel runs is said before the build and after it, in the record, and by verify, which reads the wheel alone."""
    needs, tag = item["runs_on"], re.search(r"manylinux_(2)_(\d+)_", item["wheel"])
    assert needs["python"] == host_python() and needs["glibc"] == ".".join(tag.groups()) and needs["isa"] == "avx2" and not needs["gpu"], needs
    assert item["this_machine"] == {"runs": "yes", "lacks": [], "root": None}, item["this_machine"]
    assert item["record"]["verified"]["runs_on"] == needs, item["record"]["verified"]
    assert f"pytorch: the wheel will run on python {host_python()} only; glibc 2." in said and "pytorch: this machine: yes" in said, said
    assert re.search(r"pytorch: downloads: .*\n(.*\n)*?.*pytorch: time: (about|not known)", said), said
    told = json.loads(ok(world.run("verify", "--json", item["wheel"])).stdout)["wheels"][0]
    assert told["runs_on"] == needs and told["this_machine"]["runs"] == "yes", told
    text = ok(world.run("verify", item["wheel"])).stdout
    assert f"runs on  python {host_python()} only\n" in text and "\n         this machine: yes\n" in text, text


def check_report(world, r):
    """What the build took is in the record, and build.html shows it."""
    build, steps = r["build"], {s["step"]: s for s in r["steps"]}
    assert build["units"]["count"] >= 10 and build["units"]["compiled"] + build["units"]["from_compiler_cache"] == build["units"]["count"]
    assert build["compiler_cache"]["mode"] == "depend" and re.match(r"\d+\.", build["compiler_cache"]["version"])
    assert build["compiler_cache"]["hits"] + build["compiler_cache"]["misses"] == sum(build["compiler_cache"]["counters"].get(n, 0) for n in ("direct_cache_hit", "preprocessed_cache_hit", "cache_miss"))
    assert steps["build"]["tree_bytes"] > 1000
    # A build from the cache takes less than a second, in processes that begin and end between two looks: its figures may be 0.
    if not build["units"]["from_compiler_cache"]:
        assert steps["build"]["cpu_seconds"] > 0.1 and steps["build"]["peak_processes"] > 3
        assert steps["build"]["peak_memory_bytes"] > 30 << 20
    with open(os.path.join(world.out, r["variant"], "build.html"), encoding="utf-8") as f:
        data = json.loads(re.search(r'id="data">(.*?)</script>', f.read(), re.S).group(1))
    assert data["record"] == r and len(data["units"]) == build["units"]["count"] and len(data["series"]["at"]) >= 5
    assert data["sizes"]["r"] == sum(i.file_size for i in zipfile.ZipFile(os.path.join(world.out, r["wheel"])).infolist())


def test_era_setup_py_env(world):
    check_wheel(world, "setup-py-env")


def test_era_setup_py_cmake_env(world):
    check_wheel(world, "setup-py-cmake-env")


def test_era_scikit_build_core(world):
    check_wheel(world, "scikit-build-core")


def test_again_is_a_hit(world):
    for era in ERAS:
        item = record(ok(world.build(era)))
        assert item["store_hit"], era


def test_wheel_passes_verify(world):
    for name in world.wheels():
        ok(world.run("verify", os.path.join(world.out, name)))


def test_marker_and_record(world):
    path = os.path.join(world.out, world.wheels()[0])
    with zipfile.ZipFile(path) as z:
        names = z.namelist()
        info = [n for n in names if ".dist-info/" in n]
        assert names[-1].endswith("/RECORD") and names[-2].endswith("/.metadata-rev"), names[-3:]
        assert names[-len(info) :] == info, "dist-info is not at the end"
        assert z.read(names[-2]).startswith(b"rev=1 tool=ptbuild ")
        assert b"/ptbuild" not in b"".join(z.read(n) for n in names)
    assert open(path + ".metadata-rev").read().strip() == "1"


def test_a_clean_cache_gives_the_same_bytes(world):
    path = os.path.join(world.out, world.wheels()[0])
    before = hashlib.sha256(open(path, "rb").read()).hexdigest()
    era = "setup-py-env"
    item = record(ok(world.build(era, "--jobs", "1", "--out", world.path("again"), cache=world.path("other"))))
    assert not item["store_hit"]
    first = record(ok(world.build(era)))["record"]["sha256"]
    assert item["record"]["sha256"] == first, "two builds of one variant differ"
    shutil.rmtree(world.path("other"))
    assert before


def test_offline_with_everything_there(world):
    item = record(ok(world.build("setup-py-env", "--offline")))
    assert item["store_hit"]


def test_metadata_rev_changes_the_output_only(world):
    item = record(ok(world.build("setup-py-env", "--metadata-rev", "2", "--out", world.path("rev2"))))
    assert item["wheel"].startswith(world.path("rev2"))
    first = record(ok(world.build("setup-py-env")))
    assert item["record"]["compile_key"] == first["record"]["compile_key"]
    assert item["record"]["output_key"] != first["record"]["output_key"]
    assert item["record"]["pack_key"] == first["record"]["pack_key"]
    assert "-2-cp3" in item["record"]["wheel"], "other bytes must have another name"
    with zipfile.ZipFile(item["wheel"]) as z:
        marker = [n for n in z.namelist() if n.endswith("/.metadata-rev")]
        assert z.read(marker[0]).startswith(b"rev=2 ")


def light(files):
    """The same stand-in with a test of its own."""
    files["own/test_light.py"] = b"import unittest\nclass T(unittest.TestCase):\n    def test_import(self):\n        import torch\n"


def test_a_new_revision_is_not_built(world):
    """What was built before gives its contents; and the bytes are those of a build."""
    world.pin("setup-py-env", name="light", change=light)
    first = record(ok(world.build("light")))
    item = record(ok(world.build("light", "--metadata-rev", "3", "--out", world.path("rev3"))))
    assert [s["step"] for s in item["record"]["steps"]] == ["repack"], item["record"]["steps"]
    fresh = record(ok(world.build("light", "--metadata-rev", "3", "--out", world.path("fresh"), cache=world.path("other"))))
    assert len(fresh["record"]["steps"]) > 3, fresh["record"]["steps"]
    shutil.rmtree(world.path("other"))
    assert fresh["record"]["sha256"] == item["record"]["sha256"], f"{fresh['wheel']} {item['wheel']}"
    by_hand = json.loads(ok(world.run("repack", first["wheel"], "--metadata-rev", "3", "--json", "--out", world.path("hand"))).stdout)
    assert by_hand[0]["sha256"] == item["record"]["sha256"], by_hand
    odd = world.path("odd\udcff")
    fails(world.run("repack", first["wheel"], "--metadata-rev", "3", "--json", "--out", odd), 2, "is not UTF-8")
    assert not os.path.exists(odd)
    ok(world.run("repack", first["wheel"], "--metadata-rev", "3", "--out", odd))
    assert any(n.endswith(".whl") for n in os.listdir(odd))


def test_repack_takes_it_from_the_store(world):
    select = ("--profile", "cpu-avx2", "--release", "2.9.1-light", "--metadata-rev", "4", "--json", "--out", world.path("rev4"))
    item = record(ok(world.run("repack", *select)))
    assert item["record"]["metadata_rev"] == 4 and not item["store_hit"]
    assert record(ok(world.run("repack", *select)))["store_hit"]
    fails(world.run("repack", *select, cache=world.path("empty")), 7, "differs in its metadata revision only")
    assert not any(n.endswith(".whl") for _, _, names in os.walk(world.path("empty")) for n in names)
    fails(world.run("repack", *select[:4]), 2, "needs the new metadata revision")


def test_what_repack_says_builds_it(world):
    """The name of a variant from a file leads to no file, and that of a release's to the newest one."""
    profile = world.path("my it's", "own.yaml")
    os.makedirs(os.path.dirname(profile))
    with open(profile, "w") as f:
        f.write("inherit: cpu-avx2\n")
    select = ("--profile", profile, "--release", "2.9.1-light", "--metadata-rev", "2", "--json", "--out", world.path("own"))
    missing = fails(world.run("repack", *select), 7, "differs in its metadata revision only")
    (line,) = (line for line in missing.stderr.splitlines() if line.startswith("hint: "))
    words = shlex.split(line.removeprefix("hint: this builds it: "))
    assert words[:2] == ["ptbuild", "build"], words
    built = subprocess.run([world.ptbuild, *words[1:]], capture_output=True, text=True, cwd=world.dir, timeout=900)
    assert record(ok(built))["variant"].endswith("-own"), built.stdout
    assert record(ok(world.run("repack", *select)))["store_hit"]


def test_its_own_tests_run_on_the_wheel_of_the_store(world):
    with open(os.path.join(world.profiles, "tests", "2.9.1-light.yaml"), "w") as f:
        f.write("sources: the stand-in\npackages:\n  - {package: pytorch, dir: own, files: [{file: test_light.py, levels: [smoke]}]}\n")
    select = ("--profile", "cpu-avx2", "--release", "2.9.1-light", "--out", world.path("tested"))
    assert "  run         1\n  passed      1\n" in ok(world.run("test", *select)).stdout
    fails(world.run("test", *select, cache=world.path("empty")), 7, "must have been built")


def test_bill_of_materials_and_licences(world):
    item = record(ok(world.build("setup-py-env")))
    with zipfile.ZipFile(item["wheel"]) as z:
        info = [n for n in z.namelist() if n.endswith(".dist-info/METADATA")][0][: -len("METADATA")]
        bill = json.loads(z.read(info + "sboms/torch.cdx.json"))
        metadata = z.read(info + "METADATA").decode()
        inside = {n[len(info) :] for n in z.namelist() if n.startswith(info)}
        library = [c for c in bill["components"] if c["name"].startswith("libyaml-0")][0]
        file = [p["value"] for p in library["properties"] if p["name"] == "ptbuild:file"][0]
        assert library["hashes"][0]["content"] == hashlib.sha256(z.read(file)).hexdigest()
        copyright = z.read(info + "licenses/vendored/libyaml-0-2/copyright")
    assert bill["specVersion"] == "1.6" and "serialNumber" not in bill
    assert [c["name"] for c in bill["components"] if c["type"] == "file"] == ["toy-setup-py-env.tar.gz"]
    assert library["purl"].startswith("pkg:deb/debian/libyaml-0-2@") and library["licenses"]
    assert copyright == open("/usr/share/doc/libyaml-0-2/copyright", "rb").read()
    if float(re.search(r"Metadata-Version: (\S+)", metadata).group(1)) >= 2.4:
        assert "License-File: vendored/libyaml-0-2/copyright" in metadata
    assert "sboms/torch.cdx.json" in inside


def openssl(world, *args):
    subprocess.run(["openssl", *args], cwd=world.dir, check=True, capture_output=True)


def test_provenance_signed_and_checked(world):
    for name in ("mine", "other"):
        openssl(world, "genpkey", "-algorithm", "ed25519", "-out", name)
        openssl(world, "pkey", "-in", name, "-pubout", "-out", name + ".pub")
    item = record(ok(world.build("setup-py-env")))
    wheel = item["wheel"]
    statement = json.load(open(wheel + ".intoto.json"))
    assert statement["subject"] == [{"name": os.path.basename(wheel), "digest": {"sha256": item["record"]["sha256"]}}]
    assert not os.path.exists(wheel + ".dsse.json")
    fails(world.run("verify", wheel, "--key", "mine.pub"), 5, "is not signed")
    fails(world.build("setup-py-env", "--sign-key", "mine.pub"), 3, "--sign-key", "holds no private key")
    signed = ok(world.build("setup-py-env", "--sign-key", "mine"))
    secret = open(world.path("mine")).read().split("\n")[1]
    assert secret not in signed.stdout + signed.stderr and secret not in open(wheel + ".dsse.json").read()
    ok(world.run("verify", wheel, "--key", "mine.pub"))
    fails(world.run("verify", wheel, "--key", "other.pub"), 5, "is signed by another key")
    assert ", by ptbuild " in ok(world.run("verify", wheel)).stdout
    with open(wheel + ".intoto.json") as beside:
        text = beside.read()
    with open(wheel + ".intoto.json", "w") as beside:
        beside.write(text.replace(item["record"]["sha256"], "ab" * 32))
    wrong = fails(world.run("verify", wheel), 5, "failed verification")
    assert "is about another wheel" in wrong.stdout and "[provenance]" in wrong.stdout, wrong.stdout
    with open(wheel + ".intoto.json", "w") as beside:
        beside.write(text)
    envelope = json.load(open(wheel + ".dsse.json"))
    payload = base64.b64decode(envelope["payload"])
    envelope["payload"] = base64.b64encode(payload.replace(b"avx2", b"avx5")).decode()
    json.dump(envelope, open(wheel + ".dsse.json", "w"))
    fails(world.run("verify", wheel, "--key", "mine.pub"), 5, "was changed after it was signed")
    os.remove(wheel + ".dsse.json")


def built(world, era, name, *more):
    """In a fresh store, into a directory of that name: the item."""
    return record(ok(world.build(era, *more, "--out", world.path(name), cache=world.path(f"{name}-store"))))


def hits(item):
    return item["record"]["build"]["compiler_cache"]["hits"], item["record"]["build"]["compiler_cache"]["misses"]


def test_without_a_sandbox(world):
    """As in a container that is the sandbox itself: the same wheel, since it is built at the same paths, and the same compiled objects. Where they cannot be had, other bytes."""
    plan = ok(world.run("plan", "--profile", "cpu-avx2", "--release", "2.9.1-setup-py-env", "--json", "--sandbox", "none"))
    apart = json.loads(plan.stdout)["elsewhere"]
    for era in ("setup-py-env", "scikit-build-core"):
        sandboxed = record(ok(world.build(era)))["record"]
        alone = built(world, era, "plain", "--sandbox", "none")
        served = built(world, era, "served", "--sandbox", "none", "--lower-store", world.cache)
        for item in (alone, served):
            r = item["record"]
            assert not item["store_hit"] and r["inputs"]["sandbox"] == "none" and r["verified"]["errors"] == 0 and r["used"]["ran"], item
            assert r["compile_key"] != sandboxed["compile_key"] and r["output_key"] != sandboxed["output_key"]
            assert (r["pack_key"] == sandboxed["pack_key"]) != apart, r
            assert apart or r["sha256"] == sandboxed["sha256"], f"{era}: another wheel without a sandbox"
        assert apart or (hits(alone)[0] == 0 and hits(served)[0] > 5 and hits(served)[1] == 0), (hits(alone), hits(served))
        if not apart:
            back = built(world, era, "back", "--lower-store", world.path("plain-store"))
            assert hits(back) == hits(served) and back["record"]["sha256"] == sandboxed["sha256"], hits(back)
        for name in ("plain", "served", "back"):
            shutil.rmtree(world.path(name), ignore_errors=True)
            shutil.rmtree(world.path(f"{name}-store"), ignore_errors=True)
    remove_place()


def test_built_twice(world):
    item = record(ok(world.build("light", "--check")))
    assert item["check"]["same"] and item["check"]["differences"] == [], item["check"]
    assert item["check"]["sha256"][0] == item["check"]["sha256"][1] == item["record"]["sha256"]
    assert "umask 077" in item["check"]["settings"] and item["check"]["second"] is None
    assert os.listdir(world.path("cache", "tmp")) == []


def test_what_differs_is_named(world):
    """A build that lets its number of jobs into a function and the clock into a text file."""

    def leak(files):
        light(files)
        files["csrc/toy.cpp"] += b'\nextern "C" int toy_jobs(void) { return TOY_JOBS; }\n'
        files["setup.py"] = files["setup.py"].replace(
            b"def build_library", b"import time\nopen('torch/built.py', 'w').write(f'when = {time.time_ns()}\\n')\nos.environ['CXXFLAGS'] += f\" -DTOY_JOBS={os.environ['MAX_JOBS']}\"\n\n\ndef build_library", 1
        )

    world.pin("setup-py-env", name="leaky", change=leak)
    result = world.build("leaky", "--check", "--jobs", "2")
    fails(result, 7, "1 of 1 wheel differs in the second build")
    check = json.loads(result.stdout)[0]["check"]
    told = {(d["member"], d["where"]) for d in check["differences"]}
    assert ("torch/built.py", "line 1") in told, told
    assert ("torch/lib/libtorch_toy.so", "symbol toy_jobs") in told, told
    assert os.path.exists(check["second"])
    os.remove(world.release("leaky"))


def test_the_plain_platform_tag(world):
    item = record(ok(world.build("light", "--platform", "linux", "--out", world.path("plain"))))
    assert item["record"]["wheel"].endswith("-linux_x86_64.whl")
    ok(world.run("verify", item["wheel"]))
    fails(world.build("light", "--platform", "musllinux"), 2, "manylinux or linux")
    os.remove(world.release("light"))


def test_asked_is_not_got(world):
    result = fails(world.build("setup-py-env", "--set", "USE_KINETO=ON"), 7, "USE_KINETO", "asked ON, got OFF in the summary", "libkineto was not found")
    assert "hint:" in result.stderr


def nothing_new(world, before):
    assert world.wheels() == before
    tmp = os.path.join(world.cache, "tmp")
    assert not os.path.isdir(tmp) or os.listdir(tmp) == [], os.listdir(tmp)


def test_an_edited_archive(world):
    before = world.wheels()
    path = world.pin("setup-py-env", name="edited", change=lambda f: f.update({"extra": b"x"}))
    data = bytearray(open(path, "rb").read())
    data[len(data) // 2] ^= 1
    open(path, "wb").write(data)
    want = re.search(r"sha256: ([0-9a-f]{64})", open(world.release("edited")).read()).group(1)
    fails(world.build("edited"), 5, want, hashlib.sha256(data).hexdigest())
    nothing_new(world, before)
    os.remove(world.release("edited"))


def test_a_compile_error(world):
    def break_it(files):
        files["csrc/toy.cpp"] += b"\nint broken( { }\n"

    world.pin("setup-py-env", name="broken", change=break_it)
    result = fails(world.build("broken"), 6, "csrc/toy.cpp", "error: ", "build.log")
    log = re.search(r"'([^']*build\.log)'", result.stderr).group(1)
    assert "broken" in open(log).read()
    told = result.stderr[result.stderr.index("ptbuild: error") :]
    assert told.count("\n") < 12, "a failure is told in a few lines"
    os.remove(world.release("broken"))


def test_a_failed_build_goes_on_where_it_was(world):
    state = world.path("cache", "build")
    left = [d for d in os.listdir(state) if os.path.isdir(os.path.join(state, d, "src"))]
    assert left, "the tree of the failed build was not kept"


def test_offline_without_the_file(world):
    path = world.pin("setup-py-env", name="absent", change=lambda f: f.update({"more": b"y"}))
    os.remove(path)
    fails(world.build("absent"), 4, "toy-setup-py-env.tar.gz", "is not there")
    release = world.release("absent")
    text = open(release).read().replace(f"file://{path}", "https://127.0.0.1:1/toy.tar.gz")
    open(release, "w").write(text)
    fails(world.build("absent", "--offline"), 4, "toy-setup-py-env.tar.gz", "offline")
    os.remove(world.release("absent"))


def test_an_unknown_key_in_a_table(world):
    path = os.path.join(world.profiles, "isa.yaml")
    good = open(path).read()
    lines = good.splitlines()
    at = next(i for i, line in enumerate(lines) if "cpuinfo:" in line)
    lines.insert(at, re.match(r"\s*", lines[at]).group(0) + "colour: blue")
    open(path, "w").write("\n".join(lines) + "\n")
    try:
        fails(world.build("setup-py-env"), 3, f"isa.yaml:{at + 1}", "colour")
    finally:
        open(path, "w").write(good)


def test_names_that_do_not_exist(world):
    fails(world.run("build", "--profile", "sm90-avx521"), 3, "avx521", "avx512")
    fails(world.run("build", "--profile", "cpu-avx2", "--release", "2.9.1-setup-py-emv"), 3, "2.9.1-setup-py-env")
    fails(world.run("biuld", "--profile", "cpu-avx2"), 2, "build")
    fails(world.run("build", "--profil", "cpu-avx2"), 2, "--profile")


def test_an_impossible_pair(world):
    fails(world.run("plan", "--profile", "sm103-avx2", "--cuda", "12.8", "--release", "2.9.1-setup-py-env"), 7, "sm103", "use CUDA 12.9")


def test_a_missing_nvcc(world):
    """Of the toolkit that is asked for: a machine with another one is told so."""
    result = world.run("build", "--profile", "sm90-avx2", "--release", "2.9.1-setup-py-env", "--json")
    assert result.returncode in (7, 8), result.returncode
    assert "no CUDA 12.8 in the root" in result.stderr and "12.8" in result.stderr, result.stderr


def test_a_full_disk(world):
    """The cache on a file system of three megabytes, in a mount namespace of its own, of which the compilers find some pages."""

    def fill(files):
        command = b'    subprocess.check_call(["cmake", "--build"'
        assert files["setup.py"].count(command) == 1
        filler = b'    with open("filler", "wb", 0) as f:\n        while os.statvfs(".").f_bavail > 10:\n            f.write(bytes(4096))\n'
        files["setup.py"] = files["setup.py"].replace(command, filler + command)

    world.pin("setup-py-env", name="filled", change=fill)
    mount = world.path("small")
    os.mkdir(mount)
    command = " ".join(f"'{a}'" for a in world.command("build", "--profile", "cpu-avx2", "--release", "2.9.1-filled", "--out", world.path("never"), cache=mount))
    script = f"mount -t tmpfs -o size=3m none '{mount}' && {command}"
    result = subprocess.run(["unshare", "--mount", "--map-root-user" if os.getuid() else "--mount", "sh", "-c", script], capture_output=True, text=True, timeout=300)
    assert result.returncode == 8, f"exit {result.returncode}: {result.stderr}"
    assert "No space left" in result.stderr or "no space left" in result.stderr, result.stderr
    assert not os.path.exists(world.path("never")) or not any(n.endswith(".whl") for n in os.listdir(world.path("never")))
    os.remove(world.release("filled"))


def test_a_disk_that_was_full(world):
    """There is room again when the compiler has ended and taken its file back: only its words tell."""

    def complain(files):
        command = b'    subprocess.check_call(["cmake", "--build"'
        words = b'    raise SystemExit("unit_1.cpp:9:1: fatal error: error writing to unit_1.s: No space left on device")\n'
        files["setup.py"] = files["setup.py"].replace(command, words + command)

    world.pin("setup-py-env", name="was-full", change=complain)
    fails(world.build("was-full"), 8, "No space left on device", "free space")
    os.remove(world.release("was-full"))


def test_interrupt_stops_the_whole_tree(world):
    world.pin("setup-py-env", name="slow", change=busy)
    begun = time.time()
    p = world.start("build", "--profile", "cpu-avx2", "--release", "2.9.1-slow", "--jobs", "1")
    log = wait_for_log(world, p, begun)
    p.send_signal(signal.SIGINT)
    p.communicate(timeout=120)
    assert p.returncode == 130, p.returncode
    size = os.path.getsize(log)
    time.sleep(0.5)
    assert os.path.getsize(log) == size, "something still builds"


def wait_for_log(world, p, begun):
    """The log of a build that is compiling now, begun then: others left theirs."""
    for _ in range(6000):
        for folder, _, names in os.walk(world.path("cache", "build")):
            if "build.log" in names and b"[2/" in open(os.path.join(folder, "build.log"), "rb").read():
                if os.path.getmtime(os.path.join(folder, "build.log")) > begun:
                    return os.path.join(folder, "build.log")
        assert p.poll() is None, p.communicate()
        time.sleep(0.05)
    raise AssertionError("the build does not start to compile")


def test_two_at_once(world):
    a = world.start("build", "--profile", "cpu-avx2", "--release", "2.9.1-slow", "--json")
    b = world.start("build", "--profile", "cpu-avx2", "--release", "2.9.1-slow", "--json")
    results = [json.loads(p.communicate(timeout=300)[0])[0] for p in (a, b)]
    assert a.returncode == 0 and b.returncode == 0
    assert sorted(r["store_hit"] for r in results) == [False, True], "both built, or neither"
    assert results[0]["record"]["sha256"] == results[1]["record"]["sha256"]


def test_the_store_is_whole(world):
    ok(world.run("cache", "verify"))


def as_pytorch_is(world):
    """Packed by setuptools, as in the eras of PyTorch (elsewhere the stand-in packs itself, which is sooner done), and with a process that is
    there at several looks of the watch, however fast the machine is."""

    def change(files):
        files.pop("packing.py")
        if "setup.py" in files:
            files["setup.py"] += b"\nimport time\nend = time.process_time() + 1\nwhile time.process_time() < end:\n    pass\n"

    for era in ERAS:
        world.pin(era, change)


if __name__ == "__main__":
    main(
        [
            test_era_setup_py_env,
            test_era_setup_py_cmake_env,
            test_era_scikit_build_core,
            test_again_is_a_hit,
            test_wheel_passes_verify,
            test_marker_and_record,
            test_a_clean_cache_gives_the_same_bytes,
            test_offline_with_everything_there,
            test_metadata_rev_changes_the_output_only,
            test_a_new_revision_is_not_built,
            test_repack_takes_it_from_the_store,
            test_what_repack_says_builds_it,
            test_its_own_tests_run_on_the_wheel_of_the_store,
            test_bill_of_materials_and_licences,
            test_provenance_signed_and_checked,
            test_without_a_sandbox,
            test_built_twice,
            test_what_differs_is_named,
            test_the_plain_platform_tag,
            test_asked_is_not_got,
            test_an_edited_archive,
            test_a_compile_error,
            test_a_failed_build_goes_on_where_it_was,
            test_offline_without_the_file,
            test_an_unknown_key_in_a_table,
            test_names_that_do_not_exist,
            test_an_impossible_pair,
            test_a_missing_nvcc,
            test_a_full_disk,
            test_a_disk_that_was_full,
            test_interrupt_stops_the_whole_tree,
            test_two_at_once,
            test_the_store_is_whole,
        ],
        as_pytorch_is,
    )
