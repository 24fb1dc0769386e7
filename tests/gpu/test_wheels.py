#!/usr/bin/python3
"""Installs wheels into a clean environment and runs them on this machine's GPU.

    test_wheels.py TORCH.whl [TORCHVISION.whl] [TORCHAUDIO.whl] [options]

    --python PROGRAM     the Python to make the environment with (default: this one)
    --find-links DIR     where the packages are that the wheels require; may be repeated; without it pip asks its usual index
    --no-deps            install the wheels alone: the environment sees the machine's own packages (numpy, typing_extensions, and CUDA's libraries in the loader's path)
    --venv DIR           use and keep this directory (default: a temporary one)
    --json FILE          all results as one document
    --self-check         run the checks on the CPU: proves the script, says nothing of the wheels' GPU code
    --require NAME       a check that must not be absent (for example cudnn, "attention, flash"); may be repeated

A line a check: pass, FAIL, or absent with what is not there. Nothing is skipped in silence.
Exit status: 0 all passed; 1 a check failed, crashed, or one of --require is absent; 2 usage; 3 no GPU; 4 the wheels do not install.
"""
import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def options():
    p = argparse.ArgumentParser(usage=__doc__, add_help=True)
    p.add_argument("wheels", nargs="+")
    p.add_argument("--python", default=sys.executable)
    p.add_argument("--find-links", action="append", default=[])
    p.add_argument("--no-deps", action="store_true")
    p.add_argument("--venv")
    p.add_argument("--json")
    p.add_argument("--self-check", action="store_true")
    p.add_argument("--require", action="append", default=[])
    o = p.parse_args()
    names = {}
    for w in o.wheels:
        m = re.fullmatch(r"(torch|torchvision|torchaudio)-([^-]+)(-[^-]+)?-[^-]+-[^-]+-[^-]+\.whl", os.path.basename(w))
        if not m or not os.path.isfile(w):
            p.error(f"'{w}' is no wheel of torch, torchvision or torchaudio")
        names[m.group(1)] = os.path.abspath(w)
    if "torch" not in names:
        p.error("no torch wheel among them")
    return o, names


def clean_environment():
    """No library path and no Python path of the user's: the wheels must find everything by themselves."""
    return {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "PYTHONHOME", "CUDA_HOME", "CUDA_PATH")}


def install(o, names, venv):
    python = os.path.join(venv, "bin", "python")
    argv = [o.python, "-m", "venv", venv] + (["--system-site-packages"] if o.no_deps else [])
    pip = [python, "-m", "pip", "install", "--disable-pip-version-check", "--quiet"]
    if o.no_deps:
        pip += ["--no-deps", "--no-index", "--ignore-installed"]
    if o.find_links:
        pip += ["--no-index"] + [a for d in o.find_links for a in ("--find-links", d)]
    commands = [pip + list(names.values())]
    if not os.path.exists(python):
        commands.insert(0, argv)
    for command in commands:
        r = subprocess.run(command, env=clean_environment(), capture_output=True, text=True)
        if r.returncode:
            print(f"the wheels do not install: {' '.join(command[:6])} ...\n{(r.stdout + r.stderr)[-3000:]}")
            return None
    return python


def run_checks(o, names, python, show):
    packages = [n for n in names if n != "torch"]
    argv = [python, "-I", os.path.join(HERE, "gpu_checks.py")] + (["--self-check"] if o.self_check else []) + packages
    results, running, done, no_gpu = [], "the start", False, None
    with tempfile.TemporaryFile("w+") as errors:
        # Somewhere else than the source tree, whose torch directory must not be imported.
        with subprocess.Popen(argv, env=clean_environment(), stdout=subprocess.PIPE, stderr=errors, text=True, cwd=tempfile.gettempdir()) as child:
            for line in child.stdout:
                try:
                    item = json.loads(line)
                except ValueError:
                    continue
                running = item.get("start", running)
                no_gpu = item.get("no_gpu", no_gpu)
                done = done or bool(item.get("done"))
                if "check" in item:
                    results.append(item)
                    show(item)
        errors.seek(0)
        text = errors.read()
    if no_gpu is None and not done:
        item = {"check": running, "state": "FAIL", "detail": f"the program ended with status {child.returncode} here: {text.strip()[-1500:]}", "tolerance": None, "seconds": 0}
        results.append(item)
        show(item)
    return results, no_gpu


def show(item):
    tolerance = f" (tolerance {item['tolerance']:g})" if item["tolerance"] else ""
    print(f"{item['state']:6}  {item['check']:36} {item['detail']}{tolerance}", flush=True)


def main():
    o, names = options()
    begin = time.time()
    with tempfile.TemporaryDirectory(prefix="ptbuild-gpu-") as temp:
        python = install(o, names, o.venv or os.path.join(temp, "venv"))
        if not python:
            return 4
        results, no_gpu = run_checks(o, names, python, show)
    states = [r["state"] for r in results]
    missing = [n for n in o.require if not any(r["check"] == n and r["state"] == "pass" for r in results)]
    status = 3 if no_gpu is not None else 1 if "FAIL" in states or missing or not results else 0
    if o.json:
        with open(o.json, "w", encoding="utf-8") as f:
            document = {"schema": 1, "ok": status == 0, "status": status, "self_check": o.self_check, "wheels": {n: os.path.basename(w) for n, w in names.items()},
                        "machine": platform.platform(), "no_gpu": no_gpu, "required_but_missing": missing, "seconds": round(time.time() - begin, 1), "checks": results}
            json.dump(document, f, indent=1)
    if no_gpu is not None:
        print(f"no GPU: {no_gpu}; nothing was tested")
    for n in missing:
        print(f"required, but not passed: {n}")
    print(f"{states.count('pass')} passed, {states.count('FAIL')} failed, {states.count('absent')} absent" + (", on the CPU (--self-check)" if o.self_check else ""))
    return status


sys.exit(main())
