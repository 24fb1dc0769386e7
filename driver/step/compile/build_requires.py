"""What the back end of a source asks for besides [build-system] requires (PEP 517: get_requires_for_build_wheel), a line each: the requirements that this Python lacks."""

import importlib
import json
import os
import subprocess
import sys
from importlib import metadata

# setuptools answers with setup_requires alone: without the word, setup.py need not run.
SETUPTOOLS = ("setuptools.build_meta", "setuptools.build_meta:__legacy__")


def build_system():
    """Nothing of pip is imported before the back end ran: setuptools then takes distutils from elsewhere."""
    if not os.path.exists("pyproject.toml"):
        return {}
    try:
        import tomllib
    except ImportError:  # Python 3.10 and older
        read = "import json; from pip._vendor import tomli; print(json.dumps(tomli.load(open('pyproject.toml', 'rb')).get('build-system', {})))"
        return json.loads(subprocess.run([sys.executable, "-c", read], stdout=subprocess.PIPE, check=True).stdout)
    with open("pyproject.toml", "rb") as f:
        return tomllib.load(f).get("build-system", {})


def says(word):
    for name in ("setup.py", "setup.cfg"):
        try:
            with open(name, encoding="utf-8", errors="replace") as f:
                if word in f.read():
                    return True
        except FileNotFoundError:
            continue
    return False


def ask(table):
    name = table.get("build-backend", SETUPTOOLS[1])
    if name in SETUPTOOLS and not says("setup_requires"):
        return []
    sys.path[:] = [os.path.abspath(p) for p in table.get("backend-path", [])] + [p for p in sys.path if p]
    module, _, path = name.partition(":")
    backend = importlib.import_module(module)
    for part in path.split(".") if path else []:
        backend = getattr(backend, part)
    hook = getattr(backend, "get_requires_for_build_wheel", None)
    return hook({}) if hook else []


def is_met(text):
    from pip._vendor.packaging.requirements import Requirement

    wanted = Requirement(text)
    if wanted.name.lower() == "torch" or (wanted.marker and not wanted.marker.evaluate({"extra": ""})):
        return True
    try:
        return wanted.specifier.contains(metadata.version(wanted.name), prereleases=True)
    except metadata.PackageNotFoundError:
        return False


def main():
    answers = os.dup(1)
    os.dup2(2, 1)  # what a back end prints is not the answer
    sys.argv = ["setup.py", "egg_info"]
    lines = [text for text in ask(build_system()) if not is_met(text)]
    os.write(answers, "".join(f"{text}\n" for text in lines).encode())


main()
