"""The units of all modules at once: torch's BuildExtension gives ninja those of one, links it, and goes on to the next."""
import os
import re
import subprocess
import sys


class Enough(BaseException):
    """Raised in the place of running ninja."""


def together(build, extensions):
    """In a child, of which nothing but files remains: the status of a ninja that has the units of all modules."""
    real, rules, outputs, units, place = subprocess.run, {}, set(), [], None

    def run(command, *args, **options):
        if command[0] != "ninja" or "cwd" not in options:
            return real(command, *args, **options)
        raise Enough(command, options["cwd"])

    subprocess.run = run
    for extension in (e for e in extensions if not e.optional):
        try:
            build(extension)
            return 0  # without ninja
        except Enough as e:
            command, where = e.args
        with open(f"{where}/build.ninja") as f:
            text = f.read()
        made = set(re.findall("^build (.*?): ", text, re.M))
        # The same object of two modules differs by the flags: the later one is compiled when its turn comes.
        if place not in (None, where) or outputs & made:
            continue
        place = where
        outputs |= made
        rules.update(re.findall("^(rule .*)\n((?:  .*\n)+)", text, re.M))
        flags = "".join(f"  {line}\n" for line in re.findall("^[a-z_]+ = .*", text, re.M))
        units += (f"{unit}\n{flags}" for unit in re.findall("^build .*", text, re.M))
    with open(f"{place}/build.ninja", "w") as f:
        f.writelines(f"{rule}\n{body}" for rule, body in rules.items())
        f.writelines(units)
    readable = real(["ninja", "-n"], cwd=place, stdout=subprocess.DEVNULL).returncode == 0
    return real(command, cwd=place).returncode if readable else 0


def ahead(build, extensions):
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        if os.waitpid(child, 0)[1]:
            raise RuntimeError("ninja has failed")
        return
    status = 0
    try:
        status = together(build, extensions)
    except Exception as e:
        print(f"ptbuild: one module after the other: {e!r}", flush=True)
    finally:
        os._exit(status)


def modules(distribution):
    base = distribution.cmdclass.get("build_ext")
    torch = sys.modules.get("torch.utils.cpp_extension")
    if not torch or not isinstance(base, type) or not issubclass(base, torch.BuildExtension):
        return

    class build_ext(base):
        def build_extension(self, ext):
            if self.use_ninja and not self.parallel and ext is self.extensions[0] and len(self.extensions) > 1:
                ahead(super().build_extension, self.extensions)
            super().build_extension(ext)

    distribution.cmdclass["build_ext"] = build_ext
