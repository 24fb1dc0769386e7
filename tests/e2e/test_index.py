"""An index of wheels as pip sees it: over a web server and as files, into an environment at an awkward path that is moved afterwards."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import urllib.parse
import urllib.request
import zipfile

from toy import main
from wheelsite import NAMES, Server, clean_env, index, make_mixed, make_others, make_three, make_wheel, venv, versions


def setup(world):
    """The directory and the environment that all tests share; made by the first."""
    folder = world.path("wheels")
    if not os.path.isdir(folder):
        os.mkdir(folder)
        make_three(folder, "cpu.avx2")
        make_three(folder, "cpu.avx512")
        make_wheel(folder, "torch", "2.6.0")
        index(world.ptbuild, folder)
        assert not [n for n in os.listdir(folder) if n.startswith(".ptbuild")], os.listdir(folder)
    return folder


def pip(world, python, *args):
    command = [python, "-m", "pip", "--isolated", "--disable-pip-version-check", "--no-cache-dir", *args]
    return subprocess.run(command, capture_output=True, text=True, env=clean_env(), timeout=300)


def install(world, python, url, *args):
    result = pip(world, python, "install", "--index-url", url, *args)
    assert result.returncode == 0, result.stdout + result.stderr
    return result


def awkward(world):
    """An environment with spaces and letters that are not ASCII in its path."""
    path = world.path("Müller's größte Umgebung ✓")
    if not os.path.isdir(path):
        venv(path)
    return path


def test_pip_picks_the_three_that_belong_together(world):
    folder = setup(world)
    python = os.path.join(awkward(world), "bin", "python")
    with Server(folder) as server:
        install(world, python, f"{server.url}/cpu-avx2/", "torch", "torchvision", "torchaudio")
    assert versions(python, *NAMES) == [f"{v}+cpu.avx2" for v in NAMES.values()]
    asked = server.asked
    assert "/cpu-avx2/torchvision/" in asked
    assert not any("avx512" in a for a in asked), asked


def test_the_environment_is_moved(world):
    old = awkward(world)
    new = world.path("moved – ganz woanders")
    os.rename(old, new)
    # its own link to the interpreter goes on, so no file of it names the old place that matters
    assert versions(os.path.join(new, "bin", "python"), *NAMES) == [f"{v}+cpu.avx2" for v in NAMES.values()]


def test_metadata_is_read_before_wheels(world):
    folder = setup(world)
    python = os.path.join(world.path("moved – ganz woanders"), "bin", "python")
    with Server(folder) as server:
        install(world, python, f"{server.url}/cpu-avx512/", "--dry-run", "--ignore-installed", "torchvision")
    assert any(a.endswith(".whl.metadata") for a in server.asked), server.asked


def test_another_profile_replaces_all_three(world):
    folder = setup(world)
    python = os.path.join(world.path("moved – ganz woanders"), "bin", "python")
    with Server(folder) as server:
        install(world, python, f"{server.url}/cpu-avx512/", "--upgrade", "--force-reinstall", *NAMES)
    assert versions(python, *NAMES) == [f"{v}+cpu.avx512" for v in NAMES.values()]


def test_a_companion_on_the_stable_abi_goes_with_every_later_torch(world):
    """It pins none; the other one has its torch alone, and wins where the first does not take it."""
    for torch, want in (("2.13.0", "0.28.0"), ("2.14.0", "0.29.2"), ("2.15.0", "0.29.2")):
        folder = world.path(f"abi-{torch}")
        os.mkdir(folder)
        make_wheel(folder, "torch", f"{torch}+cpu.avx2")
        make_wheel(folder, "torchvision", "0.28.0+cpu.avx2", ["torch==2.13.0+cpu.avx2"])
        make_wheel(folder, "torchvision", "0.29.2+cpu.avx2", ["torch (>=2.14.0)", "numpy", "scipy>=9; extra == 'scipy'"])
        index(world.ptbuild, folder)
        with open(os.path.join(folder, "cpu-avx2", "constraints.txt"), encoding="utf-8") as f:
            assert f.read() == f"torch=={torch}+cpu.avx2\ntorchvision=={want}+cpu.avx2\n", torch


def test_index_keeps_companions_of_several_torches(world):
    """The last word of a label says the torch: the wheels lie beside that torch, and the one that fits is chosen."""
    folder = world.path("torches")
    os.mkdir(folder)
    for torch in ("2.11.0", "2.13.0"):
        make_wheel(folder, "torch", f"{torch}+cpu.avx2")
        word = "" if torch == "2.11.0" else ".torch" + torch.replace(".", "")
        make_wheel(folder, "torchaudio", f"2.11.0+cpu.avx2{word}", [f"torch=={torch}+cpu.avx2"])
    index(world.ptbuild, folder)
    with open(os.path.join(folder, "cpu-avx2", "constraints.txt"), encoding="utf-8") as f:
        assert f.read() == "torch==2.13.0+cpu.avx2\ntorchaudio==2.11.0+cpu.avx2.torch2130\n"
    assert not os.path.exists(os.path.join(folder, "cpu-avx2-torch2130"))


def test_index_of_all(world):
    folder = setup(world)
    python = os.path.join(world.path("moved – ganz woanders"), "bin", "python")
    with Server(folder) as server:
        install(world, python, f"{server.url}/simple/", "--force-reinstall", "torchaudio==2.6.0+cpu.avx2")
    assert versions(python, "torch", "torchaudio") == ["2.6.0+cpu.avx2", "2.6.0+cpu.avx2"], "the companion pins its torch"


def test_as_files(world):
    folder = setup(world)
    python = os.path.join(world.path("moved – ganz woanders"), "bin", "python")
    install(world, python, f"file://{folder}/cpu-avx2", "--force-reinstall", *NAMES)
    assert versions(python, *NAMES) == [f"{v}+cpu.avx2" for v in NAMES.values()]


def test_a_later_revision_is_preferred(world):
    folder = world.path("revisions")
    os.mkdir(folder)
    make_wheel(folder, "torch", "2.6.0+cpu.avx2")
    later = make_wheel(folder, "torch", "2.6.0+cpu.avx2", build="2")
    index(world.ptbuild, folder)
    python = os.path.join(world.path("moved – ganz woanders"), "bin", "python")
    with Server(folder) as server:
        report = install(world, python, f"{server.url}/cpu-avx2/", "--dry-run", "--quiet", "--ignore-installed", "--report", "-", "torch")
    item = json.loads(report.stdout)["install"][0]
    assert item["download_info"]["url"].endswith("-2-py3-none-any.whl"), item
    assert item["download_info"]["archive_info"]["hash"] == "sha256=" + hashlib.sha256(open(later, "rb").read()).hexdigest()


def test_variants(world):
    """The same wheels without their labels; uv's choice among them is a matter of tests/slow/test_installers.py."""
    folder = world.path("varied")
    os.mkdir(folder)
    for label in ("cpu.avx2", "cpu.avx", "cu128.sm80.sm90.avx512"):
        make_wheel(folder, "torch", f"2.6.0+{label}", marked=True)
        make_wheel(folder, "torchvision", f"0.21.0+{label}", [f"torch==2.6.0+{label}"], marked=True)
    make_wheel(folder, "torch", "2.6.0+debian", marked=True)
    make_wheel(folder, "torchaudio", "2.6.0+cpu.avx2", ["torch==2.6.0+debian"], marked=True)
    make_wheel(folder, "torch", "2.6.0")
    result = subprocess.run([world.ptbuild, "index", folder, "--variants", "--json"], capture_output=True, text=True, env=clean_env())
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)["variants"]
    left = dict(line.split(": ", 1) for line in told["left"])
    assert len(told["made"]) == 4 and told["plain"] == ["torch-2.6.0-py3-none-any.whl"], told
    assert left["torch-2.6.0+cpu.avx-py3-none-any.whl"] == "no level of processors says 'avx'", left
    assert left["torchaudio-2.6.0+cpu.avx2-py3-none-any.whl"] == "it requires torch==2.6.0+debian, which is not a variant", left
    made = os.path.join(folder, "variants")
    variants = json.load(open(os.path.join(made, "torchvision-0.21.0-variants.json")))["variants"]
    assert variants == {
        "cpu.avx2": {"x86_64": {"level": ["v3"]}},
        "cu128.sm80.sm90.avx512": {"nvidia": {"sm_arch": ["80_real", "90_real"], "cuda_version_lower_bound": ["12.0"]}, "x86_64": {"level": ["v4"]}},
    }, variants
    wheel = os.path.join(made, "torchvision-0.21.0-py3-none-any-cpu.avx2.whl")
    with zipfile.ZipFile(wheel) as z:
        assert list(json.loads(z.read("torchvision-0.21.0.dist-info/variant.json"))["variants"]) == ["cpu.avx2"]
        assert b"Requires-Dist: torch==2.6.0\n" in z.read("torchvision-0.21.0.dist-info/METADATA")
    page = json.load(open(os.path.join(made, "simple", "torch", "index.json")))
    assert "torch-2.6.0-variants.json" in [f["filename"] for f in page["files"]], page
    assert ">torch-2.6.0-variants.json</a>" in open(os.path.join(made, "simple", "torch", "index.html")).read()
    checked = subprocess.run([world.ptbuild, "verify", *(os.path.join(made, f) for f in told["made"])], capture_output=True, text=True, env=clean_env())
    assert checked.returncode == 0, checked.stdout + checked.stderr
    python = os.path.join(world.path("moved – ganz woanders"), "bin", "python")
    with Server(folder) as server:
        install(world, python, f"{server.url}/variants/simple/", "--force-reinstall", "torch")
    assert versions(python, "torch") == ["2.6.0"], "pip knows no variants"

    # again: the same bytes, and nothing of a wheel that is gone
    before = open(wheel, "rb").read()
    os.unlink(os.path.join(folder, "torch-2.6.0+cu128.sm80.sm90.avx512-py3-none-any.whl"))
    os.unlink(os.path.join(folder, "torchvision-0.21.0+cu128.sm80.sm90.avx512-py3-none-any.whl"))
    again = subprocess.run([world.ptbuild, "index", folder, "--variants"], capture_output=True, text=True, env=clean_env())
    assert again.returncode == 0 and open(wheel, "rb").read() == before, again.stderr
    assert not [f for f in os.listdir(made) if "cu128" in f]

    # a directory of that name that is somebody else's stays
    other = world.path("varied-not")
    os.makedirs(os.path.join(other, "variants"))
    open(os.path.join(other, "variants", "mine"), "w").close()
    make_wheel(other, "torch", "2.6.0+cpu.avx2", marked=True)
    refused = subprocess.run([world.ptbuild, "index", other, "--variants"], capture_output=True, text=True, env=clean_env())
    assert refused.returncode == 7 and "was not made by" in refused.stderr, refused.stderr
    assert os.listdir(os.path.join(other, "variants")) == ["mine"]

    # wheels of other makers are not taken apart; the others, but for what requires them, are there
    shutil.rmtree(os.path.join(other, "variants"))
    make_wheel(other, "torch", "2.6.0+cpu.avx2")
    make_wheel(other, "apple", "1.0+cpu.avx2", ["torch==2.6.0+cpu.avx2"], marked=True)
    refused = subprocess.run([world.ptbuild, "index", other, "--variants"], capture_output=True, text=True, env=clean_env())
    assert refused.returncode == 2 and "torch-2.6.0+cpu.avx2-py3-none-any.whl: ptbuild did not pack it" in refused.stderr, refused.stderr
    assert not os.path.exists(os.path.join(other, "variants"))
    make_wheel(other, "torch", "2.6.0+cpu.avx512", marked=True)
    result = subprocess.run([world.ptbuild, "index", other, "--variants", "--json"], capture_output=True, text=True, env=clean_env())
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)["variants"]
    assert told["made"] == ["torch-2.6.0-py3-none-any-cpu.avx512.whl"] and sorted(told["left"]) == [
        "apple-1.0+cpu.avx2-py3-none-any.whl: it requires torch==2.6.0+cpu.avx2, which is not a variant",
        "torch-2.6.0+cpu.avx2-py3-none-any.whl: ptbuild did not pack it",
    ], told
    assert sorted(f for f in os.listdir(os.path.join(other, "variants")) if "apple" in f) == []


def test_yanked_wheels_are_passed_over(world):
    folder = world.path("yanked")
    os.mkdir(folder)
    make_wheel(folder, "torch", "2.6.0+cpu.avx2")
    newer = make_wheel(folder, "torch", "2.7.0+cpu.avx2")
    open(newer + ".yanked", "w").write("wrong results on Tuesdays\n")
    index(world.ptbuild, folder)
    python = os.path.join(world.path("moved – ganz woanders"), "bin", "python")
    with Server(folder) as server:
        install(world, python, f"{server.url}/simple/", "--force-reinstall", "torch")
        assert versions(python, "torch") == ["2.6.0+cpu.avx2"]
        result = install(world, python, f"{server.url}/simple/", "--force-reinstall", "torch==2.7.0+cpu.avx2")
    assert "wrong results on Tuesdays" in result.stdout + result.stderr


def test_a_changed_wheel_is_not_installed(world):
    folder = world.path("changed")
    shutil.copytree(setup(world), folder)
    path = os.path.join(folder, "torch-2.6.0+cpu.avx2-py3-none-any.whl")
    data = open(path, "rb").read()
    open(path, "wb").write(data.replace(b"__version__", b"__verzion__"))
    python = os.path.join(world.path("moved – ganz woanders"), "bin", "python")
    with Server(folder) as server:
        result = pip(world, python, "install", "--index-url", f"{server.url}/cpu-avx2/", "--force-reinstall", "torch")
    assert result.returncode != 0 and "THESE PACKAGES DO NOT MATCH THE HASHES" in result.stderr, result.stderr


def test_json_pages(world):
    folder = setup(world)
    with Server(folder) as server:
        page = json.load(urllib.request.urlopen(f"{server.url}/simple/torch/index.json"))
        root = json.load(urllib.request.urlopen(f"{server.url}/simple/index.json"))
        assert [p["name"] for p in root["projects"]] == sorted(NAMES)
        assert page["meta"]["api-version"] >= "1.1" and page["name"] == "torch"
        assert page["versions"] == ["2.6.0", "2.6.0+cpu.avx2", "2.6.0+cpu.avx512"]
        for f in page["files"]:
            url = urllib.parse.urljoin(f"{server.url}/simple/torch/index.json", f["url"])
            data = urllib.request.urlopen(url).read()
            assert len(data) == f["size"] and hashlib.sha256(data).hexdigest() == f["hashes"]["sha256"]
            metadata = urllib.request.urlopen(url + ".metadata").read()
            assert hashlib.sha256(metadata).hexdigest() == f["core-metadata"]["sha256"] == f["dist-info-metadata"]["sha256"]


def mixed(world):
    """The index, and the newer wheels that another one has."""
    folder, others = world.path("mixed"), world.path("others")
    if not os.path.isdir(folder):
        os.mkdir(folder)
        os.mkdir(others)
        make_mixed(folder)
        make_others(others)
        index(world.ptbuild, folder)
    return folder, others


TAKEN = ["2.6.0+debian", "0.21.0+cpu.avx2", "2.6.0+cpu.avx2"]


def test_the_line_beside_newer_versions(world):
    """What the index prints for pip, with another index as the default one that has newer versions of all three."""
    folder, others = mixed(world)
    doc = json.loads(subprocess.run([world.ptbuild, "index", folder, "--json"], check=True, capture_output=True).stdout)
    assert doc["missing"] == [] and doc["indexes"] == ["simple", "cpu-avx2", "debian"], doc
    line = [i["pip"] for i in doc["installs"] if i["index"] == "cpu-avx2"][0].split()
    assert line[:2] == ["pip", "install"] and line[3].startswith("file:///"), line
    python = venv(world.path("beside"))
    with Server(folder) as server, Server(others) as rest:
        words = [w.replace(f"file://{folder}", server.url) for w in line[2:]]
        result = pip(world, python, "install", "--index-url", rest.url, *words)
        assert result.returncode == 0, result.stdout + result.stderr
        assert versions(python, *NAMES, "numpy") == [*TAKEN, "2.0"]
        # without the versions it is the other index's torch, which is what the line is for
        names = pip(world, python, "install", "--dry-run", "--ignore-installed", "--index-url", rest.url, *words[:2], *NAMES)
        assert "torch-9.9.9" in names.stdout, names.stdout


def test_install_chooses(world):
    folder, others = mixed(world)
    python = venv(world.path("chosen"))
    env = {**os.environ, "PIP_INDEX_URL": "", "PIP_CONFIG_FILE": os.devnull, "PIP_NO_CACHE_DIR": "1", "NO_PROXY": "127.0.0.1"}

    def install(place, *words):
        return subprocess.run([world.ptbuild, "install", place, "--python", python, "--cache", world.path("store"), *words], capture_output=True, text=True, timeout=300, env=env)

    with Server(folder) as server, Server(others) as rest:
        env["PIP_INDEX_URL"] = rest.url
        shown = install(server.url, "--print", "--json")
        assert shown.returncode == 0, shown.stderr
        doc = json.loads(shown.stdout)
        assert doc["directory"] == "cpu-avx2" and doc["url"] == f"{server.url}/cpu-avx2/", doc
        # pip passes over an index without TLS that is not named so
        assert doc["command"][-5:-3] == ["--trusted-host", server.url.removeprefix("http://")], doc
        assert "--trusted-host" not in install(server.url, "--print", "--uv").stdout + install(folder, "--print").stdout
        result = install(server.url)
        assert result.returncode == 0, result.stdout + result.stderr
        assert versions(python, *NAMES, "numpy") == [*TAKEN, "2.0"]
        # pip's own failure is told with the line
        result = install(folder, "--", "no-such-thing")
        assert result.returncode == 8 and "pip ended with exit status 1" in result.stderr and "no-such-thing" in result.stderr, result.stderr
    assert install(world.dir).returncode == 2


def test_install_names_the_gpu_that_is_not_used(world):
    """Of a machine that a file describes."""
    folder = world.path("for-gpus")
    os.mkdir(folder)
    for label in ("cpu.avx2", "cu130.sm120.avx2"):
        make_wheel(folder, "torch", f"2.9.1+{label}")
    index(world.ptbuild, folder)
    machine = {"platform": "x86_64-linux", "cpu": {"flags": "avx avx2 fma f16c xsave pni ssse3 sse4_1 sse4_2 popcnt movbe bmi1 bmi2 abm"}, "glibc": "2.41", "pythons": "3.13"}
    gpu = {"gpus": [{"name": "GeForce RTX 5090", "capability": "12.0"}], "driver_cuda": "12.8", "driver": "570.86.16"}
    for more, warned in ((gpu, True), ({**gpu, "driver_cuda": "13.0", "driver": "580.95.05"}, False), ({}, False)):
        path = world.path("machine.json")
        with open(path, "w") as f:
            json.dump({**machine, **more}, f)
        result = run_command(world, "install", folder, "--print", "--machine", path)
        said = result.stderr.decode()
        assert result.returncode == 0 and ("does not use the GPU 'GeForce RTX 5090': cu130-sm120-avx2: its driver is 570.86.16" in said) is warned, said
    machine["cpu"]["flags"] = "avx"
    with open(path, "w") as f:
        json.dump(machine, f)
    result = run_command(world, "install", folder, "--print", "--machine", path)
    assert result.returncode == 7 and f"'ptbuild detect --machine {path}'" in result.stderr.decode(), result.stderr


def test_arm_machines_get_the_wheels_for_them(world):
    """By platform, instruction set and GPU; a wheel variant of them cannot be expressed, which is told."""
    folder = world.path("for-arm")
    os.mkdir(folder)
    arm = ("cpu.armv8.2", "cpu.armv9", "cu130.sm90.armv9")
    for label in (*arm, "cpu.avx2"):
        platform = "x86_64" if label == "cpu.avx2" else "aarch64"
        make_wheel(folder, "torch", f"2.11.0+{label}", marked=True, python=f"cp313-cp313-manylinux_2_28_{platform}")
    result = subprocess.run([world.ptbuild, "index", folder, "--variants", "--json"], capture_output=True, text=True, env=clean_env())
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)["variants"]
    assert told["made"] == ["torch-2.11.0-cp313-cp313-manylinux_2_28_x86_64-cpu.avx2.whl"], told
    assert sorted(line.split(": ", 1)[1] for line in told["left"]) == [f"no level of processors says '{isa}'" for isa in ("armv8_2", "armv9", "armv9")], told

    old = {"platform": "aarch64-linux", "glibc": "2.41", "pythons": "3.13", "cpu": {"flags": "fp asimd aes pmull sha1 sha2 crc32 atomics fphp asimdhp asimdrdm lrcpc dcpop asimddp"}}
    new = {**old, "cpu": {"flags": old["cpu"]["flags"] + " jscvt fcma sve sve2 frint i8mm bf16"}}
    gpu = {"gpus": [{"name": "NVIDIA GH200 480GB", "capability": "9.0"}], "driver_cuda": "13.0", "driver": "580.95.05"}
    other = {**old, "platform": "x86_64-linux", "cpu": {"flags": "avx avx2 fma f16c xsave pni ssse3 sse4_1 sse4_2 popcnt movbe bmi1 bmi2 abm"}}
    path = world.path("arm-machine.json")
    for machine, name in ((old, "cpu-armv8-2"), (new, "cpu-armv9"), ({**new, **gpu}, "cu130-sm90-armv9"), ({**old, **gpu}, "cpu-armv8-2"), (other, "cpu-avx2")):
        with open(path, "w") as f:
            json.dump(machine, f)
        result = run_command(world, "install", folder, "--print", "--machine", path)
        assert result.returncode == 0 and os.path.join(folder, name) in result.stdout.decode(), (name, result)


def test_install_without_pip_hints_what_works(world):
    """The environment of another tool has no pip; what the hint says is run."""
    folder = world.path("for-any")
    os.mkdir(folder)
    make_wheel(folder, "torch", "2.6.0+cpu.avx2")
    index(world.ptbuild, folder)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", world.path("bare")], check=True)
    python = world.path("bare/bin/python")
    words = (folder, "--python", python, "--", "--no-deps")
    result = run_command(world, "install", *words)
    assert result.returncode == 8 and f"'{python}' has no pip" in result.stderr.decode(), result.stderr
    hint = result.stderr.decode().partition("hint: ")[2].splitlines()[0]
    assert ("--uv" in hint) == (shutil.which("uv") is not None) or "install uv" in hint, hint
    run = hint.partition("run: ")[2]
    if subprocess.run([python, "-c", "import ensurepip"], capture_output=True).returncode == 0:
        assert run == f"{python} -m ensurepip", hint
        subprocess.run(run, shell=True, check=True, capture_output=True)
        result = run_command(world, "install", *words)
        assert result.returncode == 0 and versions(python, "torch") == ["2.6.0+cpu.avx2"], result.stderr


def test_install_refuses(world):
    """No directory for this machine or this Python: each says why."""
    folder = world.path("elsewhere")
    os.mkdir(folder)
    for label, tags in (("cu128.sm90.avx2", "cp313-cp313-manylinux_2_28_x86_64"), ("cpu.armv9", "cp313-cp313-manylinux_2_28_aarch64"), ("cpu.avx2", "cp399-cp399-manylinux_2_28_x86_64")):
        make_wheel(folder, "torch", f"2.6.0+{label}", python=tags)
    index(world.ptbuild, folder)
    result = run_command(world, "install", folder)
    assert result.returncode == 7, result.stderr
    said = result.stderr.decode()
    for words, code in (((folder, "dist"), 2), ((folder, "dist", "--", "--dry-run"), 2), ((folder, "--", "--dry-run"), 7), (("--", "--dry-run"), 2)):
        result = run_command(world, "install", *words)
        assert result.returncode == code and (b"after --" in result.stderr) == ("dist" in words), (words, result.stderr)
    assert "cpu-armv9: it is x86_64-linux, not aarch64-linux" in said and "it has no NVIDIA GPU" in said and "not 3.99" in said, said


def test_what_is_missing_is_told(world):
    folder = world.path("incomplete")
    os.mkdir(folder)
    make_wheel(folder, "torchvision", "0.21.0+cpu.avx2", ["torch==2.6.0+debian"])
    result = run(world, os.fsencode(folder), b"--json")
    doc = json.loads(result.stdout)
    assert doc["missing"] == ["torch==2.6.0+debian, which 'torchvision-0.21.0+cpu.avx2-py3-none-any.whl' requires"] and doc["installs"] == [], doc
    assert b"cpu-avx2/ is not complete: it lacks torch==2.6.0+debian" in result.stderr, result.stderr
    result = run_command(world, "install", folder)
    assert result.returncode == 7 and b"cpu-avx2: it lacks torch==2.6.0+debian, which" in result.stderr, result.stderr
    # a torch is there, and the line is not for all: that is told where the line is
    make_wheel(folder, "torch", "2.7.0+cpu.avx2")
    index(world.ptbuild, folder)
    result = run_command(world, "install", folder, "--print", "--json")
    doc = json.loads(result.stdout)
    assert doc["install"] == ["torch==2.7.0+cpu.avx2"] and doc["missing"][0].startswith("torch==2.6.0+debian, which") and doc["missing"][1:] == ["torchvision for torch==2.7.0+cpu.avx2"], doc
    assert b"'cpu-avx2' lacks torchvision for torch==2.7.0+cpu.avx2" in result.stderr and b"run 'ptbuild index' again" in result.stderr, result.stderr


def test_pins_that_no_wheel_meets_are_reported(world):
    """Also of a wheel without a label; of a pin without one, a torch for another accelerator does not count."""
    folder = world.path("pins")
    os.mkdir(folder)
    make_wheel(folder, "rtx", "1.0", ["ExecuTorch==1.4.1+cpu", "other==1+x; sys_platform == 'win32'"])
    make_wheel(folder, "torchvision", "0.21.0+cpu", ["torch==2.6.0"])
    make_wheel(folder, "torch", "2.6.0+cu124")
    result = run(world, os.fsencode(folder), b"--json")
    missing = json.loads(result.stdout)["missing"]
    assert [m.split(",")[0] for m in missing] == ["executorch==1.4.1+cpu", "torch==2.6.0"], missing
    assert "torch 2.6.0+cu124" in missing[1], missing
    make_wheel(folder, "torch", "2.6.0+cpu")
    result = run(world, os.fsencode(folder), b"--json")
    doc = json.loads(result.stdout)
    assert [m.split(",")[0] for m in doc["missing"]] == ["executorch==1.4.1+cpu"], doc
    assert "torch==2.6.0+cpu" in doc["installs"][0]["pip"], doc


def test_install_obeys_requires_python(world):
    folder = world.path("accepts")
    os.mkdir(folder)
    make_wheel(folder, "torch", "2.6.0+cpu.avx2", accepts=">=3.99")
    index(world.ptbuild, folder)
    result = run_command(world, "install", folder, "--print")
    assert result.returncode == 7 and b"requires Python >=3.99" in result.stderr, result
    # each project must fit
    make_wheel(folder, "torchvision", "0.21.0+cpu.avx2", ["torch==2.6.0+cpu.avx2"])
    index(world.ptbuild, folder)
    assert run_command(world, "install", folder, "--print").returncode == 7
    make_wheel(folder, "torch", "2.6.0+cpu.avx2", accepts=">=3.8,!=3.8.99")
    index(world.ptbuild, folder)
    result = run_command(world, "install", folder, "--print")
    assert result.returncode == 0 and b"torch==2.6.0+cpu.avx2" in result.stdout, result


def test_no_yanked_torch_is_taken(world):
    """pip takes a yanked wheel where another one pins it."""
    folder = world.path("yanked torch")
    os.mkdir(folder)
    open(make_wheel(folder, "torch", "2.6.0+cpu.avx2") + ".yanked", "w").write("wrong results\n")
    make_wheel(folder, "torchvision", "0.21.0+cpu.avx2", ["torch==2.6.0+cpu.avx2"])
    index(world.ptbuild, folder)
    result = run_command(world, "install", folder, "--print")
    assert result.returncode == 7 and b"it lacks torch==2.6.0+cpu.avx2, which 'torchvision-0.21.0+cpu.avx2-py3-none-any.whl' requires: it is yanked" in result.stderr, result


def test_the_last_wheel_is_gone_or_yanked(world):
    """Pages name no wheel that is not there; a directory that never had one is refused."""
    folder = world.path("emptied")
    os.mkdir(folder)
    wheel = make_wheel(folder, "torch", "2.6.0+cpu.avx2", marked=True)
    index(world.ptbuild, folder, "--variants")
    with open(wheel + ".yanked", "w") as f:
        f.write("wrong results\n")
    index(world.ptbuild, folder)
    result = run_command(world, "install", folder, "--print")
    assert result.returncode == 7 and b"cpu-avx2: all of its wheels are yanked" in result.stderr, result.stderr
    os.unlink(wheel)
    result = run(world, os.fsencode(folder), b"--variants", b"--json")
    doc = json.loads(result.stdout)
    assert result.returncode == 0 and (doc["wheels"], doc["projects"], doc["indexes"], doc["variants"]["made"]) == (0, 0, ["simple"], []), (doc, result.stderr)
    assert f"no wheel is left in '{folder}'".encode() in result.stderr, result.stderr
    left = [os.path.join(d, f) for d, _, files in os.walk(folder) for f in files if b"torch" in open(os.path.join(d, f), "rb").read() or "torch" in f.replace(".yanked", "")]
    assert left == [] or left == [wheel + ".yanked"], left
    assert not os.path.exists(os.path.join(folder, "cpu-avx2")) and json.load(open(os.path.join(folder, "simple", "index.json")))["projects"] == []
    result = run_command(world, "install", folder, "--print")
    assert result.returncode == 7, result.stderr


def test_a_directory_of_this_machine_is_no_address(world):
    for address in ("http://127.0.0.1:1/", f"file://{world.dir}/"):
        result = run_command(world, "install", address, "--print", "--cache", world.path("asked"))
        assert result.returncode == 4 and b"; for a directory of this machine: 'ptbuild install DIR'" in result.stderr, result.stderr


def test_a_listing_is_not_trusted(world):
    """What a server sends goes into the installer's command line: pins and names alone, whatever else it would like."""
    folder = world.path("hostile")
    os.mkdir(folder)
    make_wheel(folder, "torch", "2.6.0+cpu.avx2")
    index(world.ptbuild, folder)
    path = os.path.join(folder, "simple", "ptbuild.json")
    with open(path) as file:
        good = json.load(file)
    assert run_command(world, "install", folder, "--print").returncode == 0
    changes = [("install", [word]) for word in ("--index-url=http://127.0.0.1/", "-r/etc/passwd", "torch", "torch==", "torch==2.6.0 --pre", "torch==2.6.0;x", "/tmp/torch==2.6.0", "torch @ file:///x==1", "-torch==2.6.0", "torch==2.6.0\n-r x", "torch==-r")]
    changes += [("name", name) for name in ("../cpu-avx2", "..", "", "-x", "cpu/avx2", "a b", 5, None)]
    changes += [("wheels", "torch"), ("wheels", [5]), ("install", {"a": 1}), ("install", [None]), ("label", 5), ("label", None), ("wheels", None)]
    for key, value in changes:
        bad = json.loads(json.dumps(good))
        bad["directories"][0][key] = value
        with open(path, "w") as file:
            json.dump(bad, file)
        result = run_command(world, "install", folder, "--print")
        assert result.returncode == 5 and result.stdout == b"" and b"ptbuild.json" in result.stderr, (key, value, result)
    for text in ("[]", "{}", '{"directories": 1}', '{"directories": [1]}', '{"directories": [[]]}', "x"):
        with open(path, "w") as file:
            file.write(text)
        result = run_command(world, "install", folder, "--print")
        assert result.returncode == 5 and result.stdout == b"", (text, result)


def run_command(world, *args):
    return subprocess.run([world.ptbuild, *args], capture_output=True, timeout=600, cwd=world.dir)


def run(world, *args):
    command = [os.fsencode(world.ptbuild), b"index", *args]
    return subprocess.run(command, capture_output=True, timeout=600, cwd=world.dir)


def test_a_directory_that_is_not_utf8(world):
    folder = os.fsencode(world.path("dist-")) + b"\xff"
    os.mkdir(folder)
    make_wheel(os.fsdecode(folder), "torch", "2.6.0+cpu.avx2")
    result = run(world, folder, b"--json")
    assert result.returncode == 0, result.stderr
    doc = json.loads(result.stdout)
    assert doc["dir"].endswith("/dist-\ufffd") and doc["wheels"] == 1, doc
    assert os.path.isfile(folder + b"/simple/torch/index.json")


def test_a_url_that_is_not_utf8(world):
    folder = os.fsencode(setup(world))
    before = open(folder + b"/simple/torch/index.json", "rb").read()
    result = run(world, folder, b"--base-url", b"https://files.example.org/\xff")
    assert result.returncode == 2 and b"--base-url is not UTF-8: 'https://files.example.org/\\xff'" in result.stderr, result.stderr
    assert open(folder + b"/simple/torch/index.json", "rb").read() == before


if __name__ == "__main__":
    main(
        [
            test_pip_picks_the_three_that_belong_together,
            test_the_environment_is_moved,
            test_metadata_is_read_before_wheels,
            test_another_profile_replaces_all_three,
            test_a_companion_on_the_stable_abi_goes_with_every_later_torch,
            test_index_of_all,
            test_index_keeps_companions_of_several_torches,
            test_as_files,
            test_a_later_revision_is_preferred,
            test_variants,
            test_yanked_wheels_are_passed_over,
            test_a_changed_wheel_is_not_installed,
            test_json_pages,
            test_the_line_beside_newer_versions,
            test_install_chooses,
            test_install_names_the_gpu_that_is_not_used,
            test_arm_machines_get_the_wheels_for_them,
            test_install_without_pip_hints_what_works,
            test_install_refuses,
            test_what_is_missing_is_told,
            test_pins_that_no_wheel_meets_are_reported,
            test_install_obeys_requires_python,
            test_no_yanked_torch_is_taken,
            test_the_last_wheel_is_gone_or_yanked,
            test_a_directory_of_this_machine_is_no_address,
            test_a_listing_is_not_trusted,
            test_a_directory_that_is_not_utf8,
            test_a_url_that_is_not_utf8,
        ]
    )
