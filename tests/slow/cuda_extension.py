"""An extension with GPU code against an official torch for CUDA, compiled by a toolkit that is one tree of wheels, inside a root; nothing is run on a GPU.

    tests/slow/cuda_extension.py ROOT TOOLKIT TORCH_WHEEL CUOBJDUMP_WHEEL DIR

TORCH_WHEEL is one for the Python of ROOT and for the CUDA of TOOLKIT; CUOBJDUMP_WHEEL is nvidia-cuda-cuobjdump of 13.2 or newer, which reads older code as well.
DIR is made, and has what was built. Some 4 GB.
"""

import os
import shutil
import subprocess
import sys
import time
import zipfile

here = os.path.dirname(os.path.abspath(__file__))


def inside(root, words, cwd, **variables):
    env = dict(os.environ, **variables)
    return subprocess.run([f"{here}/../../ci/in-root", root, *words], cwd=cwd, env=env, capture_output=True, text=True)


def must(result, what):
    if result.returncode != 0:
        sys.exit(f"{what} failed ({result.returncode}): {result.stdout[-3000:]}\n{result.stderr[-3000:]}")
    return result.stdout


def main():
    root, toolkit, torch, cuobjdump, top = map(os.path.abspath, sys.argv[1:])
    os.makedirs(top)
    with zipfile.ZipFile(cuobjdump) as z:
        tool = z.extract(next(n for n in z.namelist() if n.endswith("/bin/cuobjdump")), top)
    os.chmod(tool, 0o755)

    # nvcc alone: a program with one of CCCL's headers, linked with the static runtime.
    with open(f"{top}/alone.cu", "w") as f:
        f.write("#include <cub/block/block_reduce.cuh>\n#include <thrust/device_vector.h>\n#include <thrust/reduce.h>\n"
                "int main() { thrust::device_vector<int> v(8, 1); return thrust::reduce(v.begin(), v.end()) - 8; }\n")
    start = time.monotonic()
    must(inside(root, [f"{toolkit}/bin/nvcc", "-std=c++17", "-arch=sm_90", "alone.cu", "-o", "alone"], top), "nvcc")
    print(f"nvcc: {time.monotonic() - start:.0f} s; {must(inside(root, [tool, '-lelf', 'alone'], top), 'cuobjdump').split()[-1]}")

    # The extension, the way its users build one.
    start = time.monotonic()
    with zipfile.ZipFile(torch) as z:
        z.extractall(f"{top}/packages")
    print(f"torch unpacked: {time.monotonic() - start:.0f} s")
    shutil.copytree(f"{here}/cuda_extension", f"{top}/source")
    variables = {"PYTHONPATH": f"{top}/packages", "CUDA_HOME": toolkit, "LD_LIBRARY_PATH": f"{toolkit}/lib64", "TORCH_CUDA_ARCH_LIST": "9.0", "MAX_JOBS": "2"}
    words = ["env", *(f"{k}={v}" for k, v in variables.items()), "python3"]
    print(must(inside(root, [*words, "-c", "import torch; print('torch', torch.__version__, 'CUDA', torch.version.cuda)"], top), "import torch").strip())
    start = time.monotonic()
    must(inside(root, [*words, "setup.py", "build_ext", "--inplace"], f"{top}/source"), "the extension")
    print(f"extension: {time.monotonic() - start:.0f} s")
    library = next(n for n in os.listdir(f"{top}/source") if n.startswith("proof.") and n.endswith(".so"))
    code = must(inside(root, [tool, "-lelf", library], f"{top}/source"), "cuobjdump")
    symbols = must(inside(root, [tool, "-symbols", library], f"{top}/source"), "cuobjdump")
    assert "sm_90.cubin" in code and "scale_kernel" in symbols and "DeviceReduce" in symbols, (code, symbols[-2000:])
    assert all("sm_90." in line for line in code.splitlines() if ".cubin" in line), code
    must(inside(root, [*words, "-c", "import torch, proof; print(proof.scale, proof.total)"], f"{top}/source"), "import of the extension")
    print(f"{library}: {code.count('.cubin')} cubins, all for sm_90; it can be imported. No GPU ran it.")


main()
