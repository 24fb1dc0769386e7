"""'ptbuild slim' on a wheel with fat binaries in a library of gcc: the wheel, an installed environment, the bundle of an application, kills, refusals."""

import base64
import csv
import ctypes
import glob
import hashlib
import http.server
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
import zipfile

from toy import TOP, main
from wheelsite import Server, clean_env, make_wheel, venv

SIZE = 300000
CODE = r"""
__asm__(".section .nv_fatbin,\"a\"\n.balign 8\nbox0: .incbin \"box0\"\n.balign 8\nbox1: .incbin \"box1\"\n.section .rodata\n.incbin \"host\"\n.text\n");
extern const unsigned char box0[], box1[];
static const unsigned char *volatile table[] = {box0, box1};
int use(int i) { return table[i][8] | table[i][9] ? table[i][180] : 0; }
"""
ARCHS = 'const char *archs(void) { static const char list[] = "sm_80 sm_90 sm_120"; const char *volatile p = list; return p; }\n'


def image(sm, fill, flags=0):
    data = (b"\x7fELF" + bytes(60)).ljust(SIZE, bytes([fill]))
    return struct.pack("<HHIQIIHHIQQQQ", 2, 0x101, 64, len(data), 0, 0, 0, 1, sm, 0, 0x11 | flags, 0, 0) + data


def box(*images):
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(b"".join(images))) + b"".join(images)


def pack(path, files):
    info = next(n.split("/")[0] for n in files if n.endswith("/METADATA"))
    rows = "".join(f"{n},sha256={digest(d)},{len(d)}\n" for n, d in files.items())
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        for n, d in {**files, f"{info}/RECORD": (rows + f"{info}/RECORD,,\n").encode()}.items():
            z.writestr(zipfile.ZipInfo(n, (2024, 1, 1, 0, 0, 0)), d, zipfile.ZIP_DEFLATED)


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")


def official(world, name="torch", least=80, cuda="12.8"):
    """A wheel as an index has it: torch's library for three GPUs, and the one with the list of targets."""
    path = world.path(f"official-{least}-{cuda}", f"{name}-2.9.1-py3-none-manylinux_2_28_x86_64.whl")
    if os.path.exists(path):
        return path
    folder = world.path("lib")
    os.makedirs(folder, exist_ok=True)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    for n, data in {"box0": box(image(least, 1), image(90, 2), image(120, 3)), "box1": box(image(least, 4), image(120, 5)), "host": random.Random(1).randbytes(2 << 20), "c.c": CODE.encode(), "p.c": ARCHS.encode()}.items():
        with open(os.path.join(folder, n), "wb") as f:
            f.write(data)
    for source, to in (("c.c", "libtorch_cuda.so"), ("p.c", "libtorch_python.so")):
        subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", to, source], cwd=folder, check=True)
    read = lambda n: open(os.path.join(folder, n), "rb").read()
    info = f"{name}-2.9.1.dist-info"
    pack(path, {f"{name}/__init__.py": b"", f"{name}/version.py": f"__version__ = '2.9.1+cu{cuda.replace('.', '')}'\ncuda: str = '{cuda}'\n".encode(),
                f"{name}/lib/libtorch_cuda.so": read("libtorch_cuda.so"), f"{name}/lib/libtorch_python.so": read("libtorch_python.so"),
                f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 2.9.1\nRequires-Dist: nvidia-cuda-runtime=={cuda}.1; platform_system == 'Linux'\n\nwords\n".encode(),
                f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: setuptools\nRoot-Is-Purelib: false\nTag: py3-none-manylinux_2_28_x86_64\n"})
    return path


def slim(world, *args):
    return world.run("slim", *args)


def cut(world, *args):
    result = slim(world, *args, "--json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)["wheels"]


def refused(world, status, words, *args):
    result = slim(world, *args)
    assert result.returncode == status, (result.returncode, result.stderr)
    assert words in result.stderr, result.stderr
    return result


def used(library):
    """In a process of its own: the two fat binaries' first images, and the list."""
    code = f"import ctypes; l = ctypes.CDLL({library!r}); print(l.use(0), l.use(1))"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def test_a_wheel_for_each_target(world):
    wheel = official(world)
    two = cut(world, wheel, "--gpu", "sm90,sm80+sm120", "--out", world.path("one"))
    assert [os.path.basename(w["wheel"]) for w in two] == [f"torch-2.9.1+cu128.{t}-py3-none-manylinux_2_28_x86_64.whl" for t in ("sm90", "sm80.sm120")]
    first = two[0]
    assert first["bytes_before"] == os.path.getsize(wheel)
    assert first["unpacked"] < first["unpacked_before"] - 4 * SIZE + 20000
    library, names = next(f for f in first["files"] if f["file"].endswith("cuda.so")), next(f for f in first["files"] if f["file"].endswith("python.so"))
    assert [k["code"] for k in library["kept"]] == ["cubin sm_90"] and sum(d["images"] for d in library["dropped"]) == 4
    assert names["targets_told"] == "sm_90"
    with zipfile.ZipFile(first["wheel"]) as z:
        assert z.testzip() is None
        info = "torch-2.9.1+cu128.sm90.dist-info"
        assert b"\nVersion: 2.9.1+cu128.sm90\n" in z.read(f"{info}/METADATA") and z.read(f"{info}/METADATA").endswith(b"\n\nwords\n")
        for path, sha256, size in csv.reader(z.read(f"{info}/RECORD").decode().splitlines()):
            assert path.endswith("RECORD") or (sha256, int(size)) == ("sha256=" + digest(z.read(path)), len(z.read(path))), path
        bill = json.loads(z.read(f"{info}/sboms/slim.cdx.json"))
        assert bill["components"][0]["hashes"][0]["content"] == hashlib.sha256(open(wheel, "rb").read()).hexdigest() == first["made_from"]["sha256"]
        marker = json.loads(z.read(f"{info}/ptbuild-slim.json"))
        assert (marker["schema"], marker["gpus"], marker["release"], marker["dropped"]) == (1, ["9.0"], "2.9.1", [])
        assert z.namelist()[-2:] == [f"{info}/.metadata-rev", f"{info}/RECORD"]
    statement = json.load(open(first["wheel"] + ".intoto.json"))
    assert statement["predicate"]["buildDefinition"]["resolvedDependencies"][0]["digest"]["sha256"] == first["made_from"]["sha256"]
    five = cut(world, wheel, "--gpu", "sm80,sm80+sm120,sm120,sm90,sm80+sm90", "--out", world.path("five"))
    for one in two + five:
        again = cut(world, wheel, "--gpu", one["gpu"], "--out", world.path("two"), "--jobs", "1")[0]
        assert again["sha256"] == one["sha256"], "the same bytes, by one thread as by many, alone as beside others"
    # The first GPU in order that it cannot run on is named, and nothing is written.
    out = world.path("failed")
    said = refused(world, 7, "has no code for sm75", wheel, "--gpu", "sm80,sm75,sm60,sm90", "--out", out).stderr
    assert "sm60" not in said, said
    assert not os.path.exists(out), os.listdir(out)
    os.makedirs(out)
    refused(world, 7, "has no code for sm75", wheel, "--gpu", "sm75", "--out", out + "/a/b")
    assert os.listdir(out) == [], "what it made itself is removed, and nothing else"
    report = json.loads(world.run("verify", first["wheel"], "--json").stdout)["wheels"][0]
    before = json.loads(world.run("verify", wheel, "--json").stdout)["wheels"][0]
    said = lambda r: sorted((f["rule"], f["file"].split("/")[-1], f["level"]) for f in r["findings"] if f["rule"] != "marker")
    assert said(report) == said(before), (said(report), said(before))
    revised = world.run("repack", first["wheel"], "--metadata-rev", "2", "--out", world.path("rev"))
    assert revised.returncode == 0, revised.stderr


def test_what_a_kill_leaves_goes_with_the_next_cut(world):
    rng, out = random.Random(5), world.path("left")
    for turn in range(8):
        process = subprocess.Popen(world.command("slim", official(world), "--gpu", "sm90,sm80", "--out", out), cwd=world.dir, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.02, 0.15))
        process.send_signal(signal.SIGKILL)
        process.wait()
    left = os.path.join(out, ".ptbuild-00112233445566ff", "more")
    os.makedirs(left)
    open(os.path.join(left, "0"), "w").close()
    done = [os.path.basename(w["wheel"]) for w in cut(world, official(world), "--gpu", "sm90,sm80", "--out", out)]
    assert sorted(os.listdir(out)) == sorted(n + e for n in done for e in ("", ".intoto.json", ".metadata-rev")), os.listdir(out)


def test_an_index_knows_what_they_run_on(world):
    out = world.path("indexed")
    for gpu in ("sm90", "sm80+sm120"):
        cut(world, official(world), "--gpu", gpu, "--out", out)
    assert world.run("index", out, "--variants").returncode == 0
    variants = json.load(open(os.path.join(out, "variants", "torch-2.9.1-variants.json")))["variants"]
    assert {k: v["nvidia"]["sm_arch"] for k, v in variants.items()} == {"cu128.sm90": ["90_real"], "cu128.sm80.sm120": ["80_real", "120_real"]}, variants
    if not os.path.exists("/dev/nvidiactl"):
        result = world.run("install", out, "--print")
        assert result.returncode == 7 and "cu128-sm90: it has no NVIDIA GPU" in result.stderr, result.stderr


def test_a_wheel_slimmed_before_markers(world):
    """Its version label tells."""
    done = cut(world, official(world), "--gpu", "sm90", "--out", world.path("one"))[0]["wheel"]
    old = world.path("unmarked", os.path.basename(done))
    os.makedirs(os.path.dirname(old), exist_ok=True)
    with zipfile.ZipFile(done) as z:
        pack(old, {n: z.read(n) for n in z.namelist() if not n.endswith(("RECORD", "ptbuild-slim.json"))})
    out = ("--out", world.path("unmarked-out"))
    assert "sm90 only" in refused(world, 7, "torch-2.9.1+cu128.sm90", old, "--gpu", "sm80", *out).stderr
    assert slim(world, old, "--gpu", "sm90", *out).returncode == 0
    assert not os.path.exists(out[1])


def test_a_wheel_whose_marker_names_no_gpu(world):
    source = official(world)
    with zipfile.ZipFile(source) as z:
        files = {n: z.read(n) for n in z.namelist() if not n.endswith("RECORD")}
    files["torch-2.9.1.dist-info/ptbuild-slim.json"] = b'{"schema": 1, "gpus": [], "dropped": ["same"]}'
    wheel = world.path("nogpu", os.path.basename(source))
    os.makedirs(os.path.dirname(wheel))
    pack(wheel, files)
    refused(world, 7, "has no GPU code", wheel, "--gpu", "sm90", "--out", world.path("nogpu-out"))


def test_code_elsewhere_is_for_its_own_gpus_alone(world):
    """torch 2.15.0 has cubins for sm_90 in .lrodata: that makes it no torch for sm61."""
    source = official(world)
    folder = world.path("lib-elsewhere")
    os.makedirs(folder)
    for n, data in {"box0": box(image(80, 1), image(100, 2), image(120, 3)), "box1": box(image(80, 4), image(120, 5)), "host": box(image(90, 2)), "c.c": CODE.replace(".rodata", ".lrodata,\\\"a\\\"\\n.balign 8").encode()}.items():
        open(os.path.join(folder, n), "wb").write(data)
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", "libtorch_cuda.so", "c.c"], cwd=folder, check=True)
    with zipfile.ZipFile(source) as z:
        files = {n: z.read(n) for n in z.namelist() if not n.endswith("RECORD")}
    files["torch/lib/libtorch_cuda.so"] = open(os.path.join(folder, "libtorch_cuda.so"), "rb").read()
    wheel = world.path("elsewhere", os.path.basename(source))
    os.makedirs(os.path.dirname(wheel))
    pack(wheel, files)
    out = ("--out", world.path("elsewhere-out"))
    for gpu in ("sm61", "sm90"):
        refused(world, 7, f"has no code for {gpu}", wheel, "--gpu", gpu, *out)
    assert not os.path.exists(out[1])
    cut(world, wheel, "--gpu", "sm80", *out)
    assert "1 fat binaries only" in refused(world, 7, "has code for sm100", wheel, "--gpu", "sm100", *out).stderr


def test_pip_installs_it_and_it_works(world):
    wheel = cut(world, official(world), "--gpu", "sm90", "--out", world.path("one"))[0]["wheel"]
    env = world.path("installed")
    venv(env)
    subprocess.run([f"{env}/bin/python", "-m", "pip", "--isolated", "install", "--no-index", "--no-deps", wheel], check=True, capture_output=True, env=clean_env())
    library = glob.glob(f"{env}/lib/python3*/site-packages/torch/lib/libtorch_cuda.so")[0]
    assert used(library) == ["2", "0"]


def installed(world, name, **kinds):
    """An environment whose files have a second name each, as those of a package cache."""
    env, cache = world.path(name), world.path(name + "-cache")
    site = f"{env}/lib/python3.13/site-packages"
    os.makedirs(site)
    with zipfile.ZipFile(official(world, **kinds)) as z:
        z.extractall(site)
    shutil.copytree(env, cache, copy_function=os.link)
    return env, cache, site


def state(top):
    return {os.path.relpath(os.path.join(d, n), top): hashlib.sha256(open(os.path.join(d, n), "rb").read()).hexdigest() for d, _, names in os.walk(top) for n in names}


def check_record(site):
    for path, sha256, size in csv.reader(open(glob.glob(f"{site}/*.dist-info/RECORD")[0])):
        data = open(f"{site}/{path}", "rb").read()
        assert not sha256 or (sha256, int(size)) == ("sha256=" + digest(data), len(data)), path


def test_an_environment(world):
    env, cache, site = installed(world, "env")
    before = state(cache)
    dry = json.loads(slim(world, "--env", env, "--gpu", "sm90", "--dry-run", "--json").stdout)
    assert state(env) == before and dry["dry_run"] is True
    done = json.loads(slim(world, "--env", env, "--gpu", "sm90", "--json").stdout)
    assert done["bytes"] < done["bytes_before"] - 4 * SIZE + 20000 and abs(done["bytes"] - dry["bytes"]) < 1000
    assert state(cache) == before, "the cache keeps its files"
    assert used(f"{site}/torch/lib/libtorch_cuda.so") == ["2", "0"]
    check_record(site)
    after = state(env)
    assert slim(world, "--env", env, "--gpu", "sm90").returncode == 0 and state(env) == after
    marker = glob.glob(f"{site}/*.dist-info/ptbuild-slim.json")[0]
    assert json.load(open(marker))["gpus"] == ["9.0"]
    for gpu in ("sm80", "sm90+ptx", "sm80+sm90"):
        assert "sm90 only" in refused(world, 7, "torch-2.9.1.dist-info", "--env", env, "--gpu", gpu).stderr
    assert state(env) == after
    # One that an older ptbuild slimmed has no marker: its code tells.
    os.unlink(marker)
    record = glob.glob(f"{site}/*.dist-info/RECORD")[0]
    rows = [r for r in open(record) if "ptbuild-slim.json" not in r]
    open(record, "w").writelines(rows)
    old = state(env)
    refused(world, 7, "has no code for sm80", "--env", env, "--gpu", "sm80")
    refused(world, 7, "no PTX that runs on sm90", "--env", env, "--gpu", "sm90+ptx")
    assert state(env) == old
    assert slim(world, "--env", env, "--gpu", "sm90").returncode == 0 and os.path.exists(marker)
    check_record(site)
    image = world.path("image")
    os.makedirs(f"{image}/opt")
    shutil.move(env, f"{image}/opt/conda")
    assert slim(world, "--env", image, "--gpu", "sm90").returncode == 0


def add_package(site, name, version, files):
    """An installed package beside torch."""
    info = f"{name}-{version}.dist-info"
    files = {**files, f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode()}
    for n, data in files.items():
        os.makedirs(os.path.dirname(f"{site}/{n}"), exist_ok=True)
        with open(f"{site}/{n}", "wb") as f:
            f.write(data)
    with open(f"{site}/{info}/RECORD", "w") as f:
        f.write("".join(f"{n},sha256={digest(d)},{len(d)}\n" for n, d in files.items()) + f"{info}/RECORD,,\n")
    return info


TRITON = {"triton/backends/nvidia/bin/ptxas": b"old", "triton/backends/nvidia/bin/ptxas-blackwell": b"new",
          "triton/backends/nvidia/lib/cupti/libcupti_static.a": b"a" * 100000, "triton/backends/nvidia/lib/cupti/libcupti.so": b"c" * 90000,
          "triton/backends/nvidia/lib/cupti/libcupti.so.12": b"c" * 90000, "triton/__init__.py": b""}
NVSHMEM = {f"nvidia/nvshmem/lib/libnvshmem_device_sm_{sm}.bc": b"b" * 5000 for sm in (75, 80, 90)}
SYMPY = {"sympy/__init__.py": b"", "sympy/core/__init__.py": b"", "sympy/core/tests/test_a.py": b"pass\n"}


def names(site):
    return {os.path.relpath(os.path.join(d, n), site) for d, _, found in os.walk(site) for n in found}


def with_packages(world, name):
    env, cache, site = installed(world, name)
    for package, version, files in (("triton", "3.9.0", TRITON), ("nvidia_nvshmem_cu13", "3.7.2", NVSHMEM), ("sympy", "1.14.0", SYMPY)):
        add_package(site, package, version, files)
    return env, site


def check_records(site):
    for record in glob.glob(f"{site}/*.dist-info/RECORD"):
        for path, sha256, size in csv.reader(open(record)):
            data = open(f"{site}/{path}", "rb").read()
            assert not sha256 or (sha256, int(size)) == ("sha256=" + digest(data), len(data)), path


def test_env_removes_default_kinds(world):
    env, site = with_packages(world, "kinds")
    before = names(site)
    dry = json.loads(slim(world, "--env", env, "--gpu", "sm90", "--dry-run", "--json").stdout)
    assert names(site) == before
    assert {"symbols", "static", "same", "bitcode", "compilers"} <= {k["kind"] for k in dry["kinds"]} and {"tests", "proton"} <= {k["kind"] for k in dry["kept"]}
    assert all(k["lost"] and k["bytes"] for k in dry["kinds"] + dry["kept"])
    done = json.loads(slim(world, "--env", env, "--gpu", "sm90", "--json").stdout)
    assert {k["kind"]: k["files"] for k in done["kinds"]} == {k["kind"]: k["files"] for k in dry["kinds"]}
    gone = {"triton/backends/nvidia/bin/ptxas", "triton/backends/nvidia/lib/cupti/libcupti_static.a", *(n for n in NVSHMEM if "90" not in n)}
    markers = {f"{os.path.basename(i)}/ptbuild-slim.json" for i in glob.glob(f"{site}/*.dist-info") if "sympy" not in i}
    assert names(site) == before - gone | markers
    cupti = f"{site}/triton/backends/nvidia/lib/cupti/libcupti.so"
    assert os.path.samefile(cupti, cupti + ".12")
    assert b".symtab" not in subprocess.run(["readelf", "-SW", f"{site}/torch/lib/libtorch_cuda.so"], capture_output=True, check=True).stdout
    assert used(f"{site}/torch/lib/libtorch_cuda.so") == ["2", "0"]
    check_records(site)
    marker = json.load(open(f"{site}/triton-3.9.0.dist-info/ptbuild-slim.json"))
    assert marker["gpus"] == ["9.0"] and marker["dropped"] == ["compilers", "same", "static"], marker
    after = state(site)
    assert slim(world, "--env", env, "--gpu", "sm90").returncode == 0 and state(site) == after
    told = json.loads(world.run("doctor", "--env", env, "--json").stdout)
    assert {p["package"] for p in told["packages"]} == {os.path.dirname(m) for m in markers} and told["packages"][0]["gpus"] == ["9.0"]


def test_env_dry_run_predicts_the_sizes(world):
    for turn, more in enumerate(((), ("--keep", "same"), ("--drop", "all"), ("--keep", "all"))):
        env, site = with_packages(world, f"sizes{turn}")
        library = open(f"{site}/torch/lib/libtorch_cuda.so", "rb").read()
        add_package(site, "twice", "1.0", {"twice/a.so": library, "twice/b.so": library})
        dry = json.loads(slim(world, "--env", env, "--gpu", "sm90", *more, "--dry-run", "--json").stdout)
        done = json.loads(slim(world, "--env", env, "--gpu", "sm90", *more, "--json").stdout)
        assert abs(dry["bytes"] - done["bytes"]) < 3000, (more, dry["bytes"], done["bytes"])
        assert dry["disk_before"] == done["disk_before"] > dry["disk"], (more, dry)
        assert abs(dry["disk"] - done["disk"]) < 60000, (more, dry["disk"], done["disk"])


def test_env_packages_without_gpu_code_are_for_any_gpu(world):
    env, site = with_packages(world, "any")
    equal = {f"setuptools/{n}.exe": b"e" * 100000 for n in ("cli", "gui")}
    static = {n: d for n, d in TRITON.items() if not n.startswith("triton/backends/nvidia/bin/")}
    add_package(site, "setuptools", "65.5.0", equal)
    gpus = lambda name: json.load(open(glob.glob(f"{site}/{name}-*.dist-info/ptbuild-slim.json")[0]))["gpus"]
    assert slim(world, "--env", env, "--gpu", "sm90").returncode == 0
    assert [gpus(n) for n in ("torch", "triton", "nvidia_nvshmem_cu13", "setuptools")] == [["9.0"]] * 3 + [[]]
    after = state(site)
    assert slim(world, "--env", env, "--gpu", "sm90").returncode == 0 and state(site) == after
    # What this run drops is for any GPU; ptxas went in the last one.
    assert slim(world, "--env", env, "--gpu", "sm90", "--drop", "proton").returncode == 0 and gpus("triton") == ["9.0"]
    after = state(site)
    told = json.loads(world.run("doctor", "--env", env, "--json").stdout)["packages"]
    assert {p["package"].split("-")[0]: p["gpu"] for p in told} == {"torch": "sm90", "triton": "sm90", "nvidia_nvshmem_cu13": "sm90", "setuptools": None}
    lines = {line.split("-")[0]: line for line in world.run("doctor", "--env", env).stdout.splitlines() if ".dist-info" in line}
    assert "code for sm90" in lines["torch"] and "without GPU code; without same" in lines["setuptools"], lines
    hint = refused(world, 7, "sm90 only", "--env", env, "--gpu", "sm80").stderr
    assert "nvidia_nvshmem_cu13, torch, triton" in hint and "setuptools" not in hint and state(site) == after, hint
    for name in ("torch", "triton", "nvidia_nvshmem_cu13"):
        shutil.rmtree(glob.glob(f"{site}/{name}-*.dist-info")[0])
        shutil.rmtree(f"{site}/{name.split('_')[0]}")
    with zipfile.ZipFile(official(world)) as z:
        z.extractall(site)
    add_package(site, "triton", "3.9.0", static)
    result = slim(world, "--env", env, "--gpu", "sm80")
    assert result.returncode == 0, result.stderr
    assert [gpus(n) for n in ("torch", "setuptools")] == [["8.0"], []]
    # The profilers for Blackwell are not there: what goes of this triton goes for all GPUs.
    assert gpus("triton") == []


def test_env_drops_and_keeps_kinds(world):
    env, site = with_packages(world, "chosen")
    before = names(site)
    assert slim(world, "--env", env, "--gpu", "sm80", "--keep", "all").returncode == 0
    assert names(site) - before == {"torch-2.9.1.dist-info/ptbuild-slim.json"} and before <= names(site)
    assert slim(world, "--env", env, "--gpu", "sm80", "--drop", "tests,proton", "--keep", "symbols,same").returncode == 0
    assert not os.path.exists(f"{site}/sympy/core/tests") and not os.path.exists(f"{site}/triton/backends/nvidia/lib/cupti")
    assert os.path.exists(f"{site}/triton/backends/nvidia/bin/ptxas") and not os.path.exists(f"{site}/triton/backends/nvidia/bin/ptxas-blackwell")
    assert [n for n in sorted(names(site)) if n.endswith(".bc")] == ["nvidia/nvshmem/lib/libnvshmem_device_sm_80.bc"]
    assert b".symtab" in subprocess.run(["readelf", "-SW", f"{site}/torch/lib/libtorch_cuda.so"], capture_output=True, check=True).stdout
    check_records(site)
    refused(world, 2, "--drop", "--env", env, "--gpu", "sm80", "--drop", "unheard")
    refused(world, 2, "--keep", official(world), "--gpu", "sm80", "--keep", "tests")


def test_env_leaves_other_versions_of_triton(world):
    env, cache, site = installed(world, "version")
    add_package(site, "triton", "4.0.0", TRITON)
    assert slim(world, "--env", env, "--gpu", "sm90").returncode == 0
    assert os.path.exists(f"{site}/triton/backends/nvidia/bin/ptxas") and not os.path.exists(f"{site}/triton/backends/nvidia/lib/cupti/libcupti_static.a")


def test_env_drop_follows_no_link(world):
    env, site = with_packages(world, "links")
    outside = world.path("outside")
    os.makedirs(f"{outside}/bin", exist_ok=True)
    open(f"{outside}/bin/ptxas", "w").write("mine")
    shutil.rmtree(f"{site}/triton/backends/nvidia/bin")
    os.symlink(f"{outside}/bin", f"{site}/triton/backends/nvidia/bin")
    slim(world, "--env", env, "--gpu", "sm90")
    assert open(f"{outside}/bin/ptxas").read() == "mine"


def test_diff_compares_documents_of_renamed_dist_info(world):
    wheel, = cut(world, official(world), "--gpu", "sm90")
    found = json.loads(world.run("diff", official(world), wheel["wheel"], "--json").stdout)["differences"]
    version, = [d for d in found if d["where"] == "Version"]
    assert version["member"].endswith(".dist-info/METADATA") and "'2.9.1'" in version["what"]
    only = {os.path.basename(d["member"]) for d in found if "only" in d["what"] and not d["where"]}
    assert only == {".metadata-rev", "ptbuild-slim.json", "slim.cdx.json"}, only


def test_kills_leave_each_file_old_or_new(world):
    env, cache, site = installed(world, "killed")
    before, rng = state(cache), random.Random(7)
    whole = None
    for turn in range(10):
        process = subprocess.Popen(world.command("slim", "--env", env, "--gpu", "sm90"), cwd=world.dir, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0, 0.15))
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert used(f"{site}/torch/lib/libtorch_cuda.so") in (["1", "4"], ["2", "0"])
        assert state(cache) == before
    result = slim(world, "--env", env, "--gpu", "sm90")
    assert result.returncode == 0, result.stderr
    assert used(f"{site}/torch/lib/libtorch_cuda.so") == ["2", "0"]
    check_record(site)
    marker = os.path.relpath(glob.glob(f"{site}/*.dist-info/ptbuild-slim.json")[0], env)
    assert set(state(env)) == set(before) | {marker}, "nothing is left behind"


def test_two_at_once_leave_whole_files(world):
    """A library that another process cut meanwhile was replaced by an empty file."""
    for turn in range(6):
        env, cache, site = installed(world, f"both{turn}")
        both = [subprocess.Popen(world.command("slim", "--env", env, "--gpu", gpu), cwd=world.dir, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for gpu in ("sm90", "sm80" if turn % 2 else "sm90")]
        done = [p.communicate()[1] for p in both]
        codes = [p.returncode for p in both]
        assert 0 in codes and not set(codes) - {0, 7, 8}, done
        assert all(c == 0 or "another process is slimming" in text or "cannot be slimmed" in text or "has code for sm" in text for c, text in zip(codes, done)), done
        assert used(f"{site}/torch/lib/libtorch_cuda.so") in (["2", "0"], ["1", "4"])
        check_record(site)


def test_an_environment_in_which_nothing_is_cut(world):
    env, cache, site = installed(world, "other")
    shutil.move(f"{site}/torch-2.9.1.dist-info", f"{site}/demo-2.9.1.dist-info")
    record = f"{site}/demo-2.9.1.dist-info/RECORD"
    text = open(record).read().replace("torch-2.9.1.dist-info", "demo-2.9.1.dist-info")
    os.unlink(record)
    open(record, "w").write(text)
    before = state(env)
    refused(world, 7, "nothing in it runs on sm75", "--env", env, "--gpu", "sm75")
    for library in glob.glob(f"{site}/torch/lib/*.so"):
        os.unlink(library)
    refused(world, 7, "it needs no slimming", "--env", env, "--gpu", "sm90")
    assert {n: d for n, d in before.items() if not n.endswith(".so")} == state(env)


def test_packages_without_a_list_of_their_files(world):
    env, cache, site = installed(world, "unlisted")
    record = f"{site}/torch-2.9.1.dist-info/RECORD"
    text = open(record).read()
    os.unlink(record)
    refused(world, 7, "what 1 of its packages hold is not known", "--env", env, "--gpu", "sm90")
    open(record, "w").write(text + "short\n")
    assert "fewer than three fields" in refused(world, 7, "the first is 'torch-2.9.1.dist-info'", "--env", env, "--gpu", "sm90").stderr
    open(record, "w").write(text)
    assert state(env) == state(cache)


def test_links_out_of_the_environment_are_not_followed(world):
    env, cache, site = installed(world, "linked")
    outside = world.path("outside")
    shutil.move(f"{site}/torch", outside)
    os.symlink(outside, f"{site}/torch")
    before = state(outside)
    refused(world, 7, "will not follow a link: ", "--env", env, "--gpu", "sm90")
    assert state(outside) == before
    os.unlink(f"{site}/torch")
    shutil.move(outside, f"{site}/torch")
    shutil.move(f"{site}/torch-2.9.1.dist-info", outside)
    os.symlink(outside, f"{site}/torch-2.9.1.dist-info")
    before = state(env)
    refused(world, 7, "has GPU code", "--env", env, "--gpu", "sm90")
    assert state(env) == before


def test_refusals(world):
    wheel = official(world)
    out = ("--out", world.path("refused"))
    refused(world, 2, "no GPU is named", wheel, *out)
    refused(world, 2, "names a form of code", wheel, "--gpu", "sm90a", *out)
    refused(world, 2, "has no GPU target", wheel, "--profile", "cpu-avx2", *out)
    refused(world, 7, "has no code for sm75", wheel, "--gpu", "sm75", *out)
    refused(world, 7, "has no PTX that runs on sm90", wheel, "--gpu", "sm90+ptx", *out)
    done = cut(world, wheel, "--profile", "sm90-avx512", "--out", world.path("one"))[0]["wheel"]
    assert "sm90 only" in refused(world, 7, os.path.basename(done), done, "--gpu", "sm80", *out).stderr
    same = slim(world, done, "--gpu", "sm90", *out)
    assert same.returncode == 0 and "already slimmed for sm90" in same.stderr, same.stderr
    refused(world, 2, "not a version: '../x'", wheel, "--gpu", "sm90", "--cuda", "../x", *out)
    refused(world, 2, "not a version: '../../x'", "--release", "../../x", "--pin", "torch==2.9.1")
    refused(world, 2, "does not support 'native'", wheel, "--profile", "native", *out)
    assert "sm9-avx2" not in refused(world, 3, "option '--gpu': unknown GPU target 'sm9'", wheel, "--gpu", "sm9", *out).stderr
    refused(world, 2, "not a directory", "--env", world.path("nowhere"), "--gpu", "sm90")
    data = open(wheel, "rb").read()
    for name, bad in (("short", data[: len(data) // 2]), ("changed", data.replace(b"\x50\xed\x55\xba", b"\x50\xed\x55\xbb")), ("hole", data[:5000] + bytes(64) + data[5064:])):
        path = world.path(name, os.path.basename(wheel))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        open(path, "wb").write(bad)
        if bad != data:
            refused(world, 5, os.path.basename(wheel), path, "--gpu", "sm90", *out)
    assert not os.path.exists(world.path("refused"))


def test_a_chip_that_newer_toolkits_call_by_another_number(world):
    """Thor is sm101 for CUDA 12, whose sm_100 code perhaps runs there, and sm110 from CUDA 13 on."""
    older, newer = (official(world, least=100, cuda=cuda) for cuda in ("12.8", "13.0"))
    cut(world, older, "--gpu", "sm101", "--out", world.path("thor"))
    assert "sm110" in refused(world, 7, "no code for sm101", newer, "--gpu", "sm100,sm101", "--out", world.path("thor-13")).stderr
    assert not os.path.exists(world.path("thor-13"))
    refused(world, 7, "no code for sm101", newer, "--gpu", "sm101", "--dry-run")
    cut(world, newer, "--gpu", "sm101", "--cuda", "12.9", "--out", world.path("thor-told"))
    env, _, _ = installed(world, "thor-env", least=100, cuda="13.0")
    before = state(env)
    assert "sm110" in refused(world, 7, "no code for sm101", "--env", env, "--gpu", "sm101").stderr
    assert state(env) == before
    assert "sm110" in refused(world, 7, "no code for sm101", "--release", "2.15.0", "--gpu", "sm101", "--python", "3.13", "--dry-run").stderr


def test_a_release_for_the_platform(world):
    """What is not in the store and may not be fetched is named."""
    for words, machine in ((("--profile", "sm90-armv9"), "aarch64"), (("--profile", "sm90-avx2"), "x86_64"), (("--profile", "sm90-avx2", "--platform", "aarch64-linux"), "aarch64"), (("--gpu", "sm90"), os.uname().machine)):
        refused(world, 4, f"-cp313-cp313-manylinux_2_28_{machine}.whl'", "--release", "2.15.0", *words, "--python", "3.13", "--offline")
    refused(world, 2, "unknown value 'arm'", "--release", "2.15.0", "--gpu", "sm90", "--platform", "arm")


def test_what_no_release_has_is_told_with_what_helps(world):
    """Each hint is for this very platform, CUDA, Python or GPU, by the definitions of ptbuild."""
    def refused(_, status, words, *args):
        done = subprocess.run([world.ptbuild, "slim", *args, "--profiles", os.path.join(TOP, "profiles"), "--cache", world.cache], capture_output=True, text=True, timeout=300)
        assert done.returncode == status and words in done.stderr, (done.returncode, done.stderr)
        return done

    x86 = ("--platform", "x86_64-linux", "--dry-run", "--offline")
    said = refused(world, 3, "release 2.11.0 is for CUDA 13.0 on x86_64-linux, not for CUDA 12.8", "--release", "2.11.0", "--gpu", "sm89", "--cuda", "12.8", *x86).stderr
    assert "releases for CUDA 12.8: 2.8.0, " in said and "--release 2.10.0" in said and "Python" not in said, said
    for words in ((), ("--release", "2.15.0")):
        said = refused(world, 7, "only aarch64-linux systems have sm110", *words, "--gpu", "sm110", *x86).stderr
        assert "hint: use --platform aarch64-linux: release 2.15.0 has it there" in said, said
    assert "--platform aarch64-linux" in refused(world, 7, "only aarch64-linux systems have sm87", "--gpu", "sm87", *x86).stderr
    assert "-avx2" not in refused(world, 7, "only aarch64-linux systems have sm53", "--gpu", "sm53", *x86).stderr
    assert "it is sm110" in refused(world, 7, "only aarch64-linux systems have sm101", "--gpu", "sm101", *x86).stderr
    assert "--python 3.9," in refused(world, 7, "Python 3.8", "--gpu", "sm89", "--python", "3.8", *x86).stderr
    said = refused(world, 3, "unknown GPU target 'sm35'", "--gpu", "sm35", *x86).stderr
    assert "no release is for GPUs older than sm50" in said and "did you mean" not in said, said


def test_pin_leaves_out_a_platform_without_metadata(world):
    """Of the wheel for one platform the index has no METADATA: the other one is pinned."""
    top = world.path("pin-site")
    os.makedirs(top)
    names = [f"torch-2.5.0-cp312-cp312-{p}.whl" for p in ("manylinux1_x86_64", "manylinux2014_aarch64")]
    with open(os.path.join(top, names[0] + ".metadata"), "w") as f:
        f.write("Metadata-Version: 2.1\nName: torch\nVersion: 2.5.0\nRequires-Dist: nvidia-cuda-runtime-cu12==12.4.127\n")
    os.makedirs(os.path.join(top, "simple", "torch"))
    files = [{"filename": n, "url": f"../../{n}", "hashes": {"sha256": "0" * 63 + str(i)}, "size": 5} for i, n in enumerate(names)]
    with open(os.path.join(top, "simple", "torch", "index.html"), "w") as f:
        json.dump({"meta": {"api-version": "1.1"}, "name": "torch", "files": files}, f)
    made = os.path.join(world.profiles, "official", "2.5.0")
    with Server(top) as server:
        done = world.run("slim", "--release", "2.5.0", "--pin", "torch==2.5.0", env=clean_env(HOME=world.dir, PIP_INDEX_URL=f"{server.url}/simple"))
    assert done.returncode == 0, done.stderr
    assert "leaving out 'torch==2.5.0' for aarch64-linux" in done.stderr and "--cuda" in done.stderr, done.stderr
    with open(made) as f:
        lines = [line for line in f.read().splitlines() if line.endswith(" 12.4") or "aarch64" in line]
    os.remove(made)
    assert [line.split()[0] for line in lines] == names[:1], lines


def test_list_of_targets_says_what_runs_on_the_gpu(world):
    done = slim(world, official(world), "--gpu", "sm89", "--out", world.path("ada"))
    assert done.returncode == 0 and "arch list sm_80 (runs on sm89)" in done.stdout, (done.stdout, done.stderr)
    done = slim(world, official(world), "--gpu", "sm90", "--out", world.path("hopper"))
    assert "arch list sm_90\n" in done.stdout, done.stdout


def test_an_output_directory_that_cannot_be_written_is_told_before_the_download(world):
    words = ("--release", "2.15.0", "--gpu", "sm90", "--python", "3.13", "--offline")
    assert "--out" in refused(world, 8, "/proc/none", *words, "--out", "/proc/none").stderr
    refused(world, 4, "--offline forbids", *words, "--dry-run", "--out", "/proc/none")


def test_dry_run_of_a_release_downloads_nothing(world):
    """A wheel that is not in the store has a size; one that is here is measured, and nothing is written."""
    out, store = world.path("never"), world.path("no-store")
    doc = json.loads(world.run("slim", "--release", "2.15.0", "--python", "3.13", "--platform", "x86_64-linux", "--gpu", "sm90", "--dry-run", "--json", "--out", out, cache=store).stdout)
    assert [(w["here"], w["bytes_before"] > 500e6, w["unpacked"]) for w in doc["wheels"]] == [(False, True, None)], doc
    assert not os.path.exists(out) and not os.path.exists(store)
    wheel = official(world)
    doc = json.loads(slim(world, wheel, "--gpu", "sm90", "--dry-run", "--json", "--out", out).stdout)
    real = cut(world, wheel, "--gpu", "sm90", "--out", world.path("measured"))[0]
    like = doc["wheels"][0]
    assert like["here"] and (like["kept"], like["dropped"]) == (real["kept"], real["dropped"]) and abs(like["unpacked"] - real["unpacked"]) < 10000, (like, real)
    assert not os.path.exists(out) and os.listdir(os.path.join(world.cache, "tmp")) == []
    refused(world, 7, "sm75", wheel, "--gpu", "sm75", "--dry-run")


def test_dry_run_names_the_place_that_the_run_takes(world):
    """Offline it is refused as the run is; a mirror that has the wheel is named, offline too."""
    words = ("--release", "2.15.0", "--python", "3.13", "--platform", "x86_64-linux", "--gpu", "sm90", "--offline")
    mirror, store = world.path("mirror"), world.path("no-mirrored-store")
    os.makedirs(mirror)
    said = [refused(world, 4, "--offline forbids", *words, *more, "--mirror", mirror).stderr for more in ((), ("--dry-run",))]
    assert all("-cp313-cp313-manylinux_2_28_x86_64.whl' (sha256" in s for s in said), said
    name = [w for w in said[1].split("'") if w.endswith(".whl")][0]
    with open(os.path.join(mirror, name), "wb"):
        pass
    done = world.run("slim", *words, "--dry-run", "--mirror", mirror, cache=store)
    assert f"mirror '{mirror}'" in done.stdout and "index" not in done.stdout, done.stdout


def test_nvidias_own_stay_here(world):
    wheel = official(world, "nvidia_cublas")
    refused(world, 7, "is NVIDIA's", wheel, "--gpu", "sm90", "--out", world.path("nv"))
    done = cut(world, wheel, "--gpu", "sm90", "--nvidia", "--cuda", "12.8", "--out", world.path("nv"))[0]["wheel"]
    with zipfile.ZipFile(done) as z:
        assert any(n.endswith("/NOT-FOR-PASSING-ON") for n in z.namelist())
    result = world.run("index", world.path("nv"))
    assert result.returncode == 7 and "passing" in result.stderr, result.stderr


def test_nvidias_libraries_in_the_wheel_of_another(world):
    source = official(world)
    with zipfile.ZipFile(source) as z:
        files = {n.replace("lib/libtorch_cuda.so", "lib/libnvjpeg.so.12"): z.read(n) for n in z.namelist() if not n.endswith("RECORD")}
        files["torch/lib/libtorch_cuda.so"] = z.read("torch/lib/libtorch_cuda.so")
    wheel = world.path("vendored", os.path.basename(source))
    os.makedirs(os.path.dirname(wheel))
    pack(wheel, files)
    for more, private in (((), False), (("--nvidia",), True)):
        out = world.path("vendored-" + str(private))
        done = cut(world, wheel, "--gpu", "sm90", *more, "--out", out)[0]["wheel"]
        with zipfile.ZipFile(done) as z:
            assert any(n.endswith("/NOT-FOR-PASSING-ON") for n in z.namelist()) is private
            assert (z.getinfo("torch/lib/libnvjpeg.so.12").file_size == len(files["torch/lib/libnvjpeg.so.12"])) is not private
        assert world.run("index", out).returncode == (7 if private else 0)


class Index(http.server.BaseHTTPRequestHandler):
    """An index with a page in JSON for each distribution, and its wheels."""

    def do_GET(self):
        files, asked = self.server.files, self.server.asked
        asked.append(self.path)
        name = self.path.strip("/").split("/")[-1]
        data = files.get(name)
        if self.path.startswith("/simple/"):
            mine = [n for n in files if n.split("-")[0] == name]
            data = json.dumps({"meta": {"api-version": "1.1"}, "name": name, "files": [{"filename": n, "url": f"/files/{n}", "hashes": {"sha256": hashlib.sha256(files[n]).hexdigest()}, "size": len(files[n])} for n in mine]}).encode()
        self.send_response(200 if data else 404)
        self.send_header("Content-Length", str(len(data or b"")))
        self.end_headers()
        self.wfile.write(data or b"")

    def log_message(self, *args):
        pass


def application(world):
    """A row of an application with the torch of this test; the wheels by name."""
    folder = world.path("application")
    os.makedirs(os.path.join(world.profiles, "bundles"), exist_ok=True)
    os.makedirs(folder, exist_ok=True)
    files = {}
    for path in (make_wheel(folder, "toyapp", "1.0", ["torch==2.9.1"]), official(world)):
        with open(path, "rb") as f:
            files[os.path.basename(path)] = f.read()
    with open(os.path.join(world.profiles, "bundles.yaml"), "w") as f:
        f.write("applications:\n  - name: toyapp\n    version: '1.0'\n    source: a test\n    parts:\n"
                "      - {wheel: toyapp==1.0, python: '>=3.8', requires: [torch==2.9.1], why: it has no GPU code}\n"
                "      - {wheel: torch==2.9.1, gpus: ['80', '90', '120']}\n")
    with open(os.path.join(world.profiles, "bundles", "toyapp-1.0"), "w") as f:
        f.write("ptbuild official 1\n" + "".join(f"{n} {hashlib.sha256(d).hexdigest()} {len(d)} {'12.8' if n.startswith('torch') else '-'}\n" for n, d in files.items()))
    return files


def test_bundle_of_an_application(world):
    """From a row of the table to what pip installs, from an index of this machine."""
    files = application(world)
    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index)
    httpd.files, httpd.asked = files, []
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    words = ("bundle", "toyapp==1.0", "--gpu", "sm90", "--python", "3.11", "--platform", "x86_64-linux", "--out", world.path("app"))
    env = {**os.environ, "PIP_INDEX_URL": f"http://127.0.0.1:{httpd.server_address[1]}/simple", "no_proxy": "127.0.0.1"}
    dry = world.run(*words, "--dry-run", env=env)
    assert dry.stdout == ("toyapp-1.0: sm90, Python 3.11, CUDA 12.8, release 2.9.1\n"
                          "package  version           made     from\n"
                          "toyapp   1.0               fetched  toyapp-1.0-py3-none-any.whl\n"
                          "torch    2.9.1+cu128.sm90  cut      torch-2.9.1-py3-none-manylinux_2_28_x86_64.whl\n"
                          "toyapp: it has no GPU code\n"
                          "what of these the store has already is taken from it\n"), dry.stdout + dry.stderr
    assert not httpd.asked and not os.path.exists(world.path("app")), httpd.asked
    made = world.run(*words, "--json", env=env)
    assert made.returncode == 0, made.stderr
    httpd.shutdown()
    httpd.server_close()
    doc = json.loads(made.stdout)
    assert [(w["name"], w["version"], w["made"]) for w in doc["wheels"]] == [("toyapp", "1.0", "fetched"), ("torch", "2.9.1+cu128.sm90", "cut")], doc
    assert {a.split("/")[-1] for a in httpd.asked if a.startswith("/files/")} == set(files), httpd.asked
    with open(world.path("app", "constraints.txt")) as f:
        lines = [line.split(" #")[0] for line in f.read().splitlines()]
    assert lines[1:] == ["toyapp==1.0", "torch==2.9.1+cu128.sm90"], lines
    for name in ("sbom.cdx.json", "Dockerfile", "simple/toyapp/index.html", "simple/torch/index.html"):
        assert os.path.getsize(world.path("app", name)), name
    if os.uname().machine == "x86_64":
        python = venv(world.path("app-env"))
        pip = subprocess.run([python, "-m", "pip", "install", "--no-deps", "--no-cache-dir", "--index-url", f"file://{world.path('app')}/simple/", "toyapp", "torch", "-c", world.path("app", "constraints.txt")], capture_output=True, text=True, env=clean_env())
        assert all(f" {n}" in pip.stdout.splitlines()[-1] for n in ("toyapp-1.0", "torch-2.9.1+cu128.sm90")), pip.stdout + pip.stderr


def test_bundle_of_an_application_names_conflicts(world):
    application(world)
    words = ("bundle", "toyapp", "--gpu", "sm90", "--platform", "x86_64-linux", "--dry-run")
    for more, status, texts in ((("--python", "3.7"), 7, ["bundles.yaml:6 (parts: toyapp==1.0) and --python (python: 3.7): toyapp 1.0 requires Python >=3.8, not 3.7"]),
                                (("--cuda", "13.0"), 7, ["bundles.yaml:7 (parts: torch==2.9.1) and --cuda (cuda: 13.0): torch 2.9.1 has no wheel"]),
                                (("--gpu", "sm75"), 7, ["bundles.yaml:7 (parts: torch==2.9.1) and --gpu (profile: sm75): torch 2.9.1 has no GPU code for compute capability 7.5"]), (("--sign-key", __file__), 2, ["does not support --sign-key"])):
        r = world.run(*words, *more)
        assert r.returncode == status and all(t in r.stderr for t in texts), (more, r.returncode, r.stderr)
    world.change("bundles.yaml", "requires: .torch==2.9.1.", "requires: [torch==2.8.0]")
    r = world.run(*words)
    assert r.returncode == 7 and "bundles.yaml:6 (parts: toyapp==1.0)" in r.stderr and "bundles.yaml:7 (parts: torch==2.9.1)" in r.stderr and "toyapp 1.0 requires 'torch==2.8.0', not torch 2.9.1" in r.stderr, r.stderr
    for word, text in (("toyap", "did you mean 'toyapp'?"), ("toyapp==1.1", "known: 1.0"), ("other.yaml", "other.yaml")):
        r = world.run("bundle", word, "--gpu", "sm90") if word != "other.yaml" else world.run("bundle", word)
        assert r.returncode in (2, 3) and text in r.stderr, (word, r.returncode, r.stderr)


if __name__ == "__main__":
    sys.exit(main([v for k, v in sorted(globals().items()) if k.startswith("test_")]))
