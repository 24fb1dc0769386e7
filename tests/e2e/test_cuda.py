"""CUDA for real, with the toolkit that this machine has: an extension with GPU code for two targets, through plan, sandbox, relocation and verification; and wheels whose GPU code is not what was asked.

Where there is no toolkit the test fails: register it where there is one (-DPTBUILD_CUDA_TEST=ON does so outright).
"""

import json
import os
import re
import subprocess
import zipfile

from toy import main
from toy_cuda import GPUS, pin, toolkit

def build(world, name, cache=None):
    off = [a for toggle in ("USE_CUSPARSELT", "USE_CUFILE", "USE_NCCL") for a in ("--set", f"{toggle}=OFF")]
    profile = "+".join(f"sm{g}" for g in GPUS) + "-avx2"
    return world.run("build", "--profile", profile, "--release", f"2.9.1-{name}", "--cuda", toolkit(), "--without", "cudnn", *off, "--json", cache=cache)


def test_gpu_code_for_two_targets(world):
    pin(world, "cuda")
    result = build(world, "cuda")
    assert result.returncode == 0, result.stderr[-3000:]
    r = json.loads(result.stdout)[0]["record"]
    label = f"cu{toolkit().replace('.', '')}." + ".".join(f"sm{g}" for g in GPUS) + ".avx2.nocudnn"
    assert re.match(re.escape(f"torch-2.9.1+{label}.own") + "[0-9a-f]{8}-cp", r["wheel"]), r["wheel"]
    assert r["build"]["device_units_checked"] == 2 and r["verified"]["errors"] == 0, r["verified"]
    assert r["used"]["ran"] and all(c["ok"] for c in r["used"]["checks"])
    checked = world.run("verify", "--json", world.path("dist", r["wheel"]))
    assert checked.returncode == 0, checked.stdout[-3000:]
    report = json.loads(checked.stdout)["wheels"][0]
    code = {f["file"]: f["code"] for f in report["gpu_code"]}
    assert set(code["torch/lib/libtoy_cuda.so"]) == {f"cubin sm_{g}" for g in GPUS} and code["torch/lib/libtoy_cuda.so"]["cubin sm_90"]["entries"] == 2, code
    with zipfile.ZipFile(world.path("dist", r["wheel"])) as z:
        names = z.namelist()
        metadata = z.read(next(n for n in names if n.endswith("/METADATA"))).decode()
        library = z.extract("torch/lib/libtoy_cuda.so", world.dir)
    assert not any("cudart" in n for n in names), names
    required = re.findall(r"(?m)^Requires-Dist: (nvidia-\S+)$", metadata)
    assert len(required) == 1 and re.match(rf"nvidia-cuda-runtime\S*>={toolkit()},<\d+$", required[0]), metadata
    assert "\nRequires-Dist: triton==3.5.1\n" in metadata, metadata
    paths = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    assert re.search(r"RPATH.*\$ORIGIN/\.\./\.\./nvidia/", paths) and "RUNPATH" not in paths, paths


def test_the_same_again_is_the_same(world):
    """GPU objects do not depend on the process or the time: another cache, so that everything is compiled once more, and the same wheel."""
    pin(world, "cuda")
    first, again = (build(world, "cuda", cache=cache) for cache in (None, world.path("other")))
    assert first.returncode == 0 and again.returncode == 0, again.stderr[-3000:]
    items = [json.loads(r.stdout)[0] for r in (first, again)]
    assert not items[1]["store_hit"], items[1]
    assert items[0]["record"]["sha256"] == items[1]["record"]["sha256"], [i["record"]["sha256"] for i in items]


def test_gpu_code_that_is_not_what_was_asked(world):
    pin(world, "defects", one="-gencode arch=compute_80,code=sm_80", two="-gencode arch=compute_75,code=[sm_75,compute_75]")
    result = build(world, "defects")
    assert result.returncode == 7, (result.returncode, result.stderr[-3000:])
    for part in ("has 1 cubin for sm_80", "[gpu-extra]", "has no code for sm_90 in 1 of 2 fat binaries", "[gpu-missing]", "has PTX for sm_75 (1)", "[gpu-ptx]", "the wheel is not kept"):
        assert part in result.stderr, f"'{part}' is not in: {result.stderr[-3000:]}"


def test_what_the_toolkit_lacks(world):
    pin(world, "lacks")
    words = ["build", "--profile", "sm90-avx2", "--release", "2.9.1-lacks", "--cuda", toolkit()]
    result = world.run(*words, "--set", "USE_CUSPARSELT=OFF", "--set", "USE_CUFILE=OFF", "--set", "USE_CUDNN=OFF", "--cuda-home", "/usr/share")
    assert result.returncode == 7 and "no CUDA toolkit in '/usr/share'" in result.stderr, result.stderr


main([test_gpu_code_for_two_targets, test_the_same_again_is_the_same, test_gpu_code_that_is_not_what_was_asked, test_what_the_toolkit_lacks])
