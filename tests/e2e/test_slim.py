"""'ptbuild slim' on a wheel with fat binaries in a library of gcc: the wheel, an installed environment, kills, refusals."""

import base64
import csv
import ctypes
import glob
import hashlib
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import time
import zipfile

from toy import main
from wheelsite import clean_env, venv

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


def official(world, name="torch"):
    """A wheel as an index has it: torch's library for three GPUs, and the one with the list of targets."""
    path = world.path("official", f"{name}-2.9.1-py3-none-manylinux_2_28_x86_64.whl")
    if os.path.exists(path):
        return path
    folder = world.path("lib")
    os.makedirs(folder, exist_ok=True)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    for n, data in {"box0": box(image(80, 1), image(90, 2), image(120, 3)), "box1": box(image(80, 4), image(120, 5)), "host": random.Random(1).randbytes(2 << 20), "c.c": CODE.encode(), "p.c": ARCHS.encode()}.items():
        with open(os.path.join(folder, n), "wb") as f:
            f.write(data)
    for source, to in (("c.c", "libtorch_cuda.so"), ("p.c", "libtorch_python.so")):
        subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", to, source], cwd=folder, check=True)
    read = lambda n: open(os.path.join(folder, n), "rb").read()
    info = f"{name}-2.9.1.dist-info"
    pack(path, {f"{name}/__init__.py": b"", f"{name}/version.py": b"__version__ = '2.9.1+cu128'\ncuda: str = '12.8'\n",
                f"{name}/lib/libtorch_cuda.so": read("libtorch_cuda.so"), f"{name}/lib/libtorch_python.so": read("libtorch_python.so"),
                f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 2.9.1\n\nwords\n".encode(),
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
        assert z.namelist()[-2:] == [f"{info}/.metadata-rev", f"{info}/RECORD"]
    statement = json.load(open(first["wheel"] + ".intoto.json"))
    assert statement["predicate"]["buildDefinition"]["resolvedDependencies"][0]["digest"]["sha256"] == first["made_from"]["sha256"]
    five = cut(world, wheel, "--gpu", "sm80,sm80+sm120,sm120,sm90,sm80+sm90", "--out", world.path("five"))
    for one in two + five:
        again = cut(world, wheel, "--gpu", one["gpu"], "--out", world.path("two"), "--jobs", "1")[0]
        assert again["sha256"] == one["sha256"], "the same bytes, by one thread as by many, alone as beside others"
    # Of those that fail the first in order is named, and what was finished before it is whole.
    for turn in range(5):
        out = world.path(f"failed{turn}")
        assert "sm60" not in refused(world, 7, "runs on sm75", wheel, "--gpu", "sm80,sm75,sm60,sm90", "--out", out).stderr
        assert {n.split("-py3")[0] for n in os.listdir(out)} - {"torch-2.9.1+cu128.sm90"} == {"torch-2.9.1+cu128.sm80"}, os.listdir(out)
    report = json.loads(world.run("verify", first["wheel"], "--json").stdout)["wheels"][0]
    before = json.loads(world.run("verify", wheel, "--json").stdout)["wheels"][0]
    said = lambda r: sorted((f["rule"], f["file"].split("/")[-1], f["level"]) for f in r["findings"] if f["rule"] != "marker")
    assert said(report) == said(before)
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


def test_pip_installs_it_and_it_works(world):
    wheel = cut(world, official(world), "--gpu", "sm90", "--out", world.path("one"))[0]["wheel"]
    env = world.path("installed")
    venv(env)
    subprocess.run([f"{env}/bin/python", "-m", "pip", "--isolated", "install", "--no-index", "--no-deps", wheel], check=True, capture_output=True, env=clean_env())
    library = glob.glob(f"{env}/lib/python3*/site-packages/torch/lib/libtorch_cuda.so")[0]
    assert used(library) == ["2", "0"]


def installed(world, name):
    """An environment whose files have a second name each, as those of a package cache."""
    env, cache = world.path(name), world.path(name + "-cache")
    site = f"{env}/lib/python3.13/site-packages"
    os.makedirs(site)
    with zipfile.ZipFile(official(world)) as z:
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
    refused(world, 7, "nothing in it runs on sm80", "--env", env, "--gpu", "sm80")
    refused(world, 7, "it has no PTX that runs on sm90", "--env", env, "--gpu", "sm90+ptx")
    assert state(env) == after
    image = world.path("image")
    os.makedirs(f"{image}/opt")
    shutil.move(env, f"{image}/opt/conda")
    assert slim(world, "--env", image, "--gpu", "sm90").returncode == 0


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
    assert set(state(env)) == set(before), "nothing is left behind"


def test_two_at_once_leave_whole_files(world):
    """A library that another process cut meanwhile was replaced by an empty file."""
    for turn in range(6):
        env, cache, site = installed(world, f"both{turn}")
        both = [subprocess.Popen(world.command("slim", "--env", env, "--gpu", gpu), cwd=world.dir, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for gpu in ("sm90", "sm80" if turn % 2 else "sm90")]
        done = [p.communicate()[1] for p in both]
        codes = [p.returncode for p in both]
        assert 0 in codes and not set(codes) - {0, 7, 8}, done
        assert all(c == 0 or "is being cut by another process" in text or "cannot be cut" in text for c, text in zip(codes, done)), done
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
    refused(world, 7, "there is nothing to cut", "--env", env, "--gpu", "sm90")
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
    refused(world, 7, "a link leads to 'torch/lib/", "--env", env, "--gpu", "sm90")
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
    refused(world, 2, "no GPU to cut for", wheel, *out)
    refused(world, 2, "names a form of code", wheel, "--gpu", "sm90a", *out)
    refused(world, 2, "has no GPU target", wheel, "--profile", "cpu-avx2", *out)
    refused(world, 7, "nothing in 'torch-2.9.1", wheel, "--gpu", "sm75", *out)
    refused(world, 7, "has no PTX that runs on sm90", wheel, "--gpu", "sm90+ptx", *out)
    done = cut(world, wheel, "--profile", "sm90-avx512", "--out", world.path("one"))[0]["wheel"]
    refused(world, 7, "is made for 'cu128.sm90' already", done, "--gpu", "sm90", *out)
    refused(world, 2, "not a version: '../x'", wheel, "--gpu", "sm90", "--cuda", "../x", *out)
    refused(world, 2, "not a version: '../../x'", "--release", "../../x", "--pin", "torch==2.9.1")
    refused(world, 2, "does not take 'native'", wheel, "--profile", "native", *out)
    assert "sm9-avx2" not in refused(world, 3, "option '--gpu': unknown GPU target 'sm9'", wheel, "--gpu", "sm9", *out).stderr
    refused(world, 2, "not a directory", "--env", world.path("nowhere"), "--gpu", "sm90")
    data = open(wheel, "rb").read()
    for name, bad in (("short", data[: len(data) // 2]), ("changed", data.replace(b"\x50\xed\x55\xba", b"\x50\xed\x55\xbb")), ("hole", data[:5000] + bytes(64) + data[5064:])):
        path = world.path(name, os.path.basename(wheel))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        open(path, "wb").write(bad)
        if bad != data:
            refused(world, 5, os.path.basename(wheel), path, "--gpu", "sm90", *out)
    assert not os.path.exists(world.path("refused")) or not os.listdir(world.path("refused"))


def test_a_release_for_the_platform(world):
    """What is not in the store and may not be fetched is named."""
    for words, machine in ((("--profile", "sm90-armv9"), "aarch64"), (("--profile", "sm90-avx2"), "x86_64"), (("--profile", "sm90-avx2", "--platform", "aarch64-linux"), "aarch64"), (("--gpu", "sm90"), os.uname().machine)):
        refused(world, 4, f"-cp313-cp313-manylinux_2_28_{machine}.whl'", "--release", "2.15.0", *words, "--python", "3.13", "--offline")
    refused(world, 2, "unknown value 'arm'", "--release", "2.15.0", "--gpu", "sm90", "--platform", "arm")


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


if __name__ == "__main__":
    sys.exit(main([v for k, v in sorted(globals().items()) if k.startswith("test_")]))
