#!/usr/bin/env python3
"""What others say of a wheel that ptbuild made, and what uv makes of an index.

usage: test_installers.py PTBUILD VENV_BIN
"""
import os
import re
import subprocess
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
from toy import main, record  # noqa: E402
from wheelsite import NAMES, Server, clean_env, index, make_mixed, make_others, make_three, make_wheel, venv, versions  # noqa: E402

TOOLS = sys.argv.pop(2)


def tool(world, name, *args, **more):
    return subprocess.run([os.path.join(TOOLS, name), *args], capture_output=True, text=True, timeout=300, env=clean_env(HOME=world.dir, **more))


def built(world):
    result = world.build("setup-py-env")
    assert result.returncode == 0, result.stderr
    return record(result)["wheel"]


def test_twine(world):
    result = tool(world, "twine", "check", built(world))
    assert result.returncode == 0 and "PASSED" in result.stdout, result.stdout
    # the stand-in has no long description; nothing else may be to say
    said = [line for line in result.stdout.splitlines() if line.startswith(("WARNING", "ERROR"))]
    assert all("long_description" in line for line in said), said


def test_check_wheel_contents(world):
    result = tool(world, "check-wheel-contents", built(world))
    assert result.returncode == 0 and ": OK" in result.stdout, result.stdout


def test_bill_of_materials(world):
    """Against the schema of CycloneDX itself."""
    with zipfile.ZipFile(built(world)) as z:
        bill = [n for n in z.namelist() if n.endswith(".cdx.json")]
        assert len(bill) == 1, bill
        z.extract(bill[0], world.path("bill"))
    script = (
        "import sys\n"
        "from cyclonedx.schema import SchemaVersion\n"
        "from cyclonedx.validation.json import JsonStrictValidator\n"
        "wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read())\n"
        "sys.exit(str(wrong) if wrong else 0)\n"
    )
    result = tool(world, "python", "-c", script, world.path("bill", bill[0]))
    assert result.returncode == 0, result.stderr


def test_wheel_unpack(world):
    result = tool(world, "python", "-m", "wheel", "unpack", "-d", world.path("unpacked"), built(world))
    assert result.returncode == 0, result.stderr


def test_auditwheel(world):
    wheel = built(world)
    result = tool(world, "auditwheel", "show", wheel, COLUMNS="1000")
    tag = os.path.basename(wheel).split("-")[-1][: -len(".whl")]
    assert f'platform tag: "{tag}"' in " ".join(result.stdout.split()), result.stdout


def uv(world, python, url, *args):
    return tool(world, "uv", "pip", "install", "--no-config", "--no-cache", "--python", python, "--index-url", url, *args)


def site(world):
    folder = world.path("wheels")
    if not os.path.isdir(folder):
        os.mkdir(folder)
        make_three(folder, "cpu.avx2")
        make_three(folder, "cpu.avx512")
        index(world.ptbuild, folder)
    return folder


def test_uv_picks_the_three(world):
    python = venv(world.path("Müller's uv ✓"))
    with Server(site(world)) as server:
        result = uv(world, python, f"{server.url}/cpu-avx2/", *NAMES)
        assert result.returncode == 0, result.stderr
        assert versions(python, *NAMES) == [f"{v}+cpu.avx2" for v in NAMES.values()]
        assert any(a.endswith(".whl.metadata") for a in server.asked), server.asked
        result = uv(world, python, f"{server.url}/simple/", "--reinstall", "torchaudio==2.6.0+cpu.avx512")
        assert result.returncode == 0, result.stderr
    assert versions(python, "torch", "torchaudio") == ["2.6.0+cpu.avx512"] * 2


def test_uv_installs_the_built_wheel(world):
    python = venv(world.path("venv"))
    folder = os.path.dirname(built(world))
    index(world.ptbuild, folder)
    with Server(folder) as server:
        result = uv(world, python, f"{server.url}/cpu-avx2/", "--no-deps", "torch")
    assert result.returncode == 0, result.stderr
    assert versions(python, "torch")[0].endswith("+cpu.avx2")


def test_uv_refuses_a_changed_wheel(world):
    folder = world.path("changed")
    os.mkdir(folder)
    path = make_wheel(folder, "torch", "2.6.0+cpu.avx2")
    index(world.ptbuild, folder)
    with zipfile.ZipFile(path, "a") as z:
        z.writestr("torch/more.py", "")
    python = venv(world.path("venv2"))
    with Server(folder) as server:
        result = uv(world, python, f"{server.url}/cpu-avx2/", "torch")
    assert result.returncode != 0 and "ash mismatch" in result.stderr, result.stderr


def test_uv_passes_over_yanked(world):
    folder = world.path("yanked")
    os.mkdir(folder)
    make_wheel(folder, "torch", "2.6.0+cpu.avx2")
    open(make_wheel(folder, "torch", "2.7.0+cpu.avx2") + ".yanked", "w").close()
    index(world.ptbuild, folder)
    python = venv(world.path("venv3"))
    with Server(folder) as server:
        result = uv(world, python, f"{server.url}/simple/", "torch")
    assert result.returncode == 0 and versions(python, "torch") == ["2.6.0+cpu.avx2"], result.stderr


def test_uv_with_the_line_of_the_index(world):
    """Beside a default index that has newer versions of all three."""
    folder, others = world.path("mixed"), world.path("others")
    os.mkdir(folder)
    os.mkdir(others)
    make_mixed(folder)
    make_others(others)
    index(world.ptbuild, folder)
    python = venv(world.path("venv4"))
    taken = ["2.6.0+debian", "0.21.0+cpu.avx2", "2.6.0+cpu.avx2", "2.0"]
    with Server(folder) as server, Server(others) as rest:
        env = clean_env(HOME=world.dir, UV_NO_CONFIG="1", UV_NO_CACHE="1", UV_DEFAULT_INDEX=rest.url, PATH=TOOLS + ":" + os.environ["PATH"])
        for place in (server.url, folder):
            command = [world.ptbuild, "install", place, "--uv", "--python", python, "--cache", world.path("store"), "--", "--reinstall"]
            result = subprocess.run(command, capture_output=True, text=True, timeout=300, env=env)
            assert result.returncode == 0, result.stderr
            assert versions(python, *NAMES, "numpy") == taken, result.stderr


def site_of_variants(world):
    """Eight wheels of torch and of torchvision as variants, and a plain one of each."""
    folder = world.path("varied")
    if os.path.isdir(folder):
        return folder
    os.mkdir(folder)
    for label in ("cpu.avx2", "cpu.avx512", "cu130.sm80.avx2", "cu128.sm75.avx2", "cu128.sm80.avx2", "cu128.sm90.avx2", "cu128.sm120.avx2", "cu130.sm90a.avx512"):
        make_wheel(folder, "torch", f"2.6.0+{label}", marked=True)
        make_wheel(folder, "torchvision", f"0.21.0+{label}", [f"torch==2.6.0+{label}"], marked=True)
    make_wheel(folder, "torch", "2.6.0")
    make_wheel(folder, "torchvision", "0.21.0", ["torch==2.6.0"])
    result = subprocess.run([world.ptbuild, "index", folder, "--variants"], capture_output=True, text=True, timeout=120, env=clean_env())
    assert result.returncode == 0, result.stderr
    return folder


def labels_taken(target):
    """Of what was installed there; torchvision has followed its torch."""
    taken = [open(os.path.join(target, name, "__init__.py")).read().split("'")[1] for name in ("torch", "torchvision")]
    labels = {version.partition("+")[2] for version in taken}
    assert len(labels) == 1, taken
    return labels.pop()


def choose(world, server, target, before=(), **env):
    command = [*before, os.path.join(TOOLS, "uv"), "pip", "install", "-q", "--no-cache", "--target", target, "--index-url", f"{server.url}/variants/simple/", "torchvision"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, env=clean_env(HOME=world.dir, **env))
    assert result.returncode == 0, result.stderr
    return labels_taken(target)


def forced(driver, gpu):
    return {"UV_PREVIEW_FEATURES": "wheel-variants", **({"NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION": driver, "NV_VARIANT_PROVIDER_FORCE_SM_ARCH": gpu} if driver else {})}


def test_uv_chooses_variants(world):
    """Twelve machines; the processor is this one, which has AVX2 at least."""
    avx512 = all(f" {f} " in open("/proc/cpuinfo").read() for f in ("avx512f", "avx512dq", "avx512vl", "avx512bw"))
    cpu = "cpu.avx512" if avx512 else "cpu.avx2"
    machines = {
        ("", ""): {cpu},
        ("11.8", "8.0"): {cpu},
        ("12.2", "8.0"): {"cu128.sm80.avx2"},
        ("11.8", "7.5"): {cpu},
        ("12.0", "7.5"): {"cu128.sm75.avx2"},
        ("12.4", "8.6"): {"cu128.sm80.avx2"},
        ("13.0", "8.9"): {"cu130.sm80.avx2", "cu128.sm80.avx2"},
        ("12.8", "9.0"): {"cu128.sm90.avx2"},
        ("13.0", "9.0"): {"cu130.sm90a.avx512"} if avx512 else {"cu128.sm90.avx2"},
        ("13.0", "12.0"): {"cu128.sm120.avx2"},
        ("13.0", "12.1"): {"cu128.sm120.avx2"},
        ("12.8", "10.0"): {cpu},
    }
    with Server(site_of_variants(world)) as server:
        for (driver, gpu), wanted in machines.items():
            taken = choose(world, server, world.path(f"on-{driver}-{gpu}"), **forced(driver, gpu))
            assert taken in wanted, (driver, gpu, taken, wanted)


# What every processor of x86-64 says, which the recorded machines leave out.
FLAGS = "fpu vme de pse tsc msr pae mce cx8 apic sep mtrr pge mca cmov pat pse36 clflush mmx fxsr sse sse2 ht syscall nx lm constant_tsc rep_good nopl cpuid lahf_lm"
# Recorded machines (tests/data/machines), the CUDA of their drivers, and the wheel that is theirs.
RECORDED = {
    "nehalem-x5570": ("", ""),
    "sandy-bridge-gtx1080": ("12.2", ""),
    "haswell-4770-titan-x": ("12.2", "cpu.avx2"),
    "skylake-sp-v100": ("12.2", "cpu.avx512"),
    "cascade-lake-t4": ("12.4", "cu128.sm75.avx2"),
    "zen3-7763-a10": ("12.4", "cu128.sm80.avx2"),
    "ice-lake-sp-a100": ("12.2", "cu128.sm80.avx2"),
    "ice-lake-sp-a100-old-driver": ("11.4", "cpu.avx512"),
    "sapphire-rapids-h100": ("12.2", "cu128.sm90.avx2"),
    "emerald-rapids-vm-h200": ("13.0", "cu130.sm90a.avx512"),
    "zen5-9950x-rtx5090": ("12.8", "cu128.sm120.avx2"),
    "emerald-rapids-b200": ("12.8", "cpu.avx512"),
}


def recorded(world, name):
    """The machine's /proc/cpuinfo, and the compute capability of its GPUs."""
    with open(os.path.join(os.path.dirname(HERE), "data", "machines", name + ".yaml"), encoding="utf-8") as f:
        text = f.read()
    cpu = {key: re.search(rf'^  {key}: "?([^"\n]*)', text, re.M)[1] for key in ("name", "vendor", "family", "model", "stepping", "flags")}
    path = world.path(f"{name}.cpuinfo")
    with open(path, "w", encoding="utf-8") as f:
        lines = {"processor": 0, "vendor_id": cpu["vendor"], "cpu family": cpu["family"], "model": cpu["model"], "model name": cpu["name"], "stepping": cpu["stepping"], "flags": f"{FLAGS} {cpu['flags']}"}
        f.write("".join(f"{key}\t: {value}\n" for key, value in lines.items()) + "\n")
    gpu = re.search(r'capability: "([^"]*)"', text)
    return path, gpu[1] if gpu else ""


def test_uv_chooses_variants_on_recorded_machines(world):
    """uv reads /proc/cpuinfo; below AVX2 the plain wheel is left."""
    with Server(site_of_variants(world)) as server:
        for name, (driver, wanted) in RECORDED.items():
            cpuinfo, gpu = recorded(world, name)
            seen = ["bwrap", "--dev-bind", "/", "/", "--ro-bind", cpuinfo, "/proc/cpuinfo"]
            taken = choose(world, server, world.path(f"on-{name}"), seen, **forced(driver, gpu))
            assert taken == wanted, (name, driver, gpu, taken, wanted)


def test_others_take_the_plain_wheel(world):
    """uv without the preview feature, and pip, which knows no variants."""
    with Server(site_of_variants(world)) as server:
        assert choose(world, server, world.path("by-plain-uv")) == ""
        target = world.path("by-pip")
        command = ["-m", "pip", "install", "-q", "--no-cache-dir", "--isolated", "--disable-pip-version-check", "--target", target, "--index-url", f"{server.url}/variants/simple/", "torchvision"]
        result = tool(world, "python", *command)
        assert result.returncode == 0 and labels_taken(target) == "", result.stderr


if __name__ == "__main__":
    main(
        [
            test_twine,
            test_check_wheel_contents,
            test_bill_of_materials,
            test_wheel_unpack,
            test_auditwheel,
            test_uv_picks_the_three,
            test_uv_installs_the_built_wheel,
            test_uv_refuses_a_changed_wheel,
            test_uv_passes_over_yanked,
            test_uv_with_the_line_of_the_index,
            test_uv_chooses_variants,
            test_uv_chooses_variants_on_recorded_machines,
            test_others_take_the_plain_wheel,
        ]
    )
