"""A matrix of variants of the stand-in: one that fails does not stop the others, and the exit code is that of the worst."""

import glob
import json
import os

from toy import host_python, main

MATRIX = """\
note: CPU, a GPU without a toolkit, and a Mac
release: 2.9.1-setup-py-env
pythons: ["{python}"]
rows:
  - {{gpus: [mps]}}
  - {{gpus: [cpu], isas: [avx2]}}
  - {{gpus: [sm90], toolkits: ["12.8"], isas: [avx2]}}
"""

# A host with another toolkit has the wrong one (7), a host with none lacks it (8).
NO_TOOLKIT = 7 if glob.glob("/usr/local/cuda*/bin/nvcc") + glob.glob("/usr/bin/nvcc") else 8


def matrix(world):
    path = world.path("both.yaml")
    with open(path, "w") as f:
        f.write(MATRIX.format(python=host_python()))
    return path


def variants(items):
    return [i["variant"] for i in items]


def test_a_failure_stops_nothing_else(world):
    name = "pytorch-python" + host_python().replace(".", "")
    result = world.run("build", "--matrix", matrix(world), "--json")
    assert result.returncode == NO_TOOLKIT, f"exit {result.returncode}: {result.stderr[-2000:]}"
    assert "1 of 2 variants of matrix" in result.stderr, result.stderr
    items = json.loads(result.stdout)
    assert variants(items) == [f"{name}-cpu-avx2", f"{name}-cuda12_8-sm90-avx2"], variants(items)
    assert "left out of the matrix: 1 for aarch64-darwin" in result.stderr, result.stderr
    assert "one variant of PyTorch is for CUDA: it compiles all its units; variants not counted: 1\n" in result.stderr, result.stderr
    assert [i.get("store_hit") for i in items] == [False, None]
    assert "12.8" in items[1]["error"]["message"] and items[1]["error"]["exit_code"] == NO_TOOLKIT, items[1]
    assert len(world.wheels()) == 1
    assert os.path.exists(items[0]["wheel"])


def test_again_only_the_failure_is_left(world):
    result = world.run("build", "--matrix", matrix(world))
    assert result.returncode == NO_TOOLKIT, result.stderr
    assert "0 built, 1 from the store, 1 failed" in result.stdout, result.stdout
    assert "12.8" in result.stdout.partition("  failed ")[2], result.stdout


def test_only_chooses(world):
    result = world.run("build", "--matrix", matrix(world), "--only", "*-cpu-*")
    assert result.returncode == 0, result.stderr
    assert "0 built, 1 from the store, 0 failed" in result.stdout, result.stdout


def test_nothing_matches(world):
    result = world.run("build", "--matrix", matrix(world), "--only", "*-sm80-*")
    assert result.returncode == 3 and "no variant of matrix" in result.stderr, result.stderr


if __name__ == "__main__":
    main([test_a_failure_stops_nothing_else, test_again_only_the_failure_is_left, test_only_chooses, test_nothing_matches])
