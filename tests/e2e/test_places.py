"""Names and languages of a user's machine: places with spaces and letters beyond ASCII, and locales whose rules differ (the Turkish i, a decimal comma, encodings other than UTF-8).
The wheel and the words stay the same."""

import glob
import hashlib
import os
import re
import shutil
import subprocess
import tempfile

from toy import World, debian13, host_python, main, record

ODD = "Müller's Räder ✓ $HOME;"
DEBIAN = debian13()
LOCALES = (("de_DE", "UTF-8"), ("tr_TR", "UTF-8"), ("tr_TR", "ISO-8859-9"), ("ja_JP", "EUC-JP"))
ERA = "setup-py-env"


def sha256(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def differing(world, done):
    """What differs between a build and the plain one: of their records."""

    def flat(value, at=""):
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
        if items is None:
            return {at: value}
        return {k: v for key, inner in items for k, v in flat(inner, f"{at}/{key}").items()}

    one, other = flat(record(done)["record"]), flat(record(world.build(ERA))["record"])
    return [(k, one.get(k), other.get(k)) for k in sorted(one.keys() | other.keys()) if one.get(k) != other.get(k)]


def odd_world(world):
    """A world of which every path has such letters, HOME as well."""
    top = world.path(ODD)
    os.makedirs(top, exist_ok=True)
    tempfile.tempdir = top
    try:
        return World(world.ptbuild)
    finally:
        tempfile.tempdir = None


def plain_wheel(world):
    """What is built in a plain place; kept for the next test."""
    if not world.wheels():
        done = world.build(ERA)
        assert done.returncode == 0, done.stderr
    return sha256(os.path.join(world.out, world.wheels()[0]))


def test_places_with_odd_names(world):
    odd = odd_world(world)
    env = {**os.environ, "HOME": odd.path("Zuhause"), "TMPDIR": odd.dir}
    env.pop("XDG_CACHE_HOME", None)
    done = odd.build(ERA, env=env)
    assert done.returncode == 0, done.stderr
    wheel = record(done)["wheel"]
    assert sha256(wheel) == plain_wheel(world), differing(world, done)
    again = odd.build(ERA, env=env)
    assert again.returncode == 0, again.stderr
    for words in (["verify", wheel], ["cache", "verify"], ["cache", "info"], ["doctor", "--profile", "cpu-avx2", "--release", f"2.9.1-{ERA}"]):
        said = odd.run(*words, env=env)
        assert said.returncode == 0, (words, said.stderr)
    # Without --cache and --out the store is below HOME and the wheel below the current directory.
    own = subprocess.run([odd.ptbuild, "--profiles", odd.profiles, "--profile", "cpu-avx2", "--release", f"2.9.1-{ERA}"], capture_output=True, text=True, cwd=odd.dir, env=env, timeout=600)
    assert own.returncode == 0 and os.path.isdir(odd.path("Zuhause", ".cache", "ptbuild")), own.stderr
    odd.close()


def test_a_hint_of_an_odd_place_can_be_pasted(world):
    odd = odd_world(world)

    def broken(files):
        name = next(n for n in files if n.endswith(".cpp"))
        files[name] += b"\n#error broken on purpose\n"

    odd.pin(ERA, broken)
    done = odd.build(ERA)
    assert done.returncode == 6 and "broken on purpose" in done.stderr, done.stderr
    line = re.search(r"alone with: ptbuild (shell .*)", done.stderr).group(1)
    pasted = subprocess.run(["sh", "-c", f'exec "$PTBUILD" {line}'], capture_output=True, text=True, env={**os.environ, "PTBUILD": odd.ptbuild}, cwd=odd.dir, timeout=300)
    assert pasted.returncode == 6 and "broken on purpose" in pasted.stdout + pasted.stderr, pasted
    refused = odd.build(ERA, "--sandbox", "none")
    assert refused.returncode == 7 and "no build without a sandbox in" in refused.stderr and "leave --sandbox none out" in refused.stderr, refused.stderr
    odd.close()


def test_a_root_with_an_odd_name(world):
    """The Debian 13 root mounted at another place, in which a small extension goes the whole way."""
    if not os.path.isdir(DEBIAN) or os.geteuid() != 0:
        print("    needs a Debian 13 root, and root")
        return
    odd = odd_world(world)
    root = odd.path("Wurzel ✓")
    os.makedirs(root)
    path = odd.release(ERA)
    with open(path) as f:
        text = f.read()
    with open(path, "w") as f:
        f.write(text.replace(f'pythons: ["{host_python()}"]', 'pythons: ["3.13"]'))
    words = odd.command("doctor", "--profile", "cpu-avx2", "--release", f"2.9.1-{ERA}", "--root", root)
    mounted = ["unshare", "--mount", "--propagation", "private", "sh", "-c", 'mount --bind "$1" "$2" && shift 2 && exec "$@"', "sh", DEBIAN, root]
    done = subprocess.run([*mounted, *words], capture_output=True, text=True, cwd=odd.dir, timeout=600)
    assert done.returncode == 0 and "test extension built" in done.stdout, done.stdout + done.stderr
    odd.close()


def test_a_world_is_a_whole_system(world):
    """What Debian's scripts would have made is in it: names of services, time zones, a locale, localhost."""
    if not os.path.isdir(DEBIAN):
        print("    needs a Debian 13 root")
        return
    asks = """if True:
        import datetime, locale, socket, zoneinfo
        summer = datetime.datetime(2025, 7, 1)
        print(socket.getservbyname("http"), socket.getprotobyname("tcp"), socket.gethostbyname("localhost"),
              zoneinfo.ZoneInfo("Europe/Berlin").utcoffset(summer), locale.setlocale(locale.LC_ALL, "C.UTF-8"))"""
    box = ["bwrap", "--ro-bind", DEBIAN, "/", "--proc", "/proc", "--dev", "/dev", "--unshare-net", "--unshare-user", "--clearenv"]
    done = subprocess.run([*box, "/usr/bin/python3", "-c", asks], capture_output=True, text=True)
    assert done.stdout.split() == ["80", "6", "127.0.0.1", "2:00:00", "C.UTF-8"], done.stdout + done.stderr


def locales(world):
    """Their names, made where localedef and its sources are there; C and POSIX are everywhere, a name without a locale as well."""
    where = world.path("locales")
    os.makedirs(where, exist_ok=True)
    names = ["C", "POSIX", "xx_XX.UTF-8"]
    for language, charset in LOCALES:
        name = f"{language}.{charset}"
        made = shutil.which("localedef") and subprocess.run(
            ["localedef", "--no-archive", "-i", language, "-f", charset, os.path.join(where, name)], capture_output=True, check=False
        )
        if made and os.path.isdir(os.path.join(where, name)):
            names.append(name)
    return where, names


def timeless(text):
    """Without the estimates: they follow the builds that this machine made, and the memory and disk that are free."""
    shown, lines = re.subn(r"(?m)^  (?:time|disk) .*\n(?:    .*\n)*", "", text)
    assert lines == 2, text
    return shown


def test_locales(world):
    plain = plain_wheel(world)
    where, names = locales(world)
    print("    " + " ".join(names))
    # glibc's newlocale() loses the list that it makes of LOCPATH.
    with open(world.path("lsan"), "w", encoding="utf-8") as f:
        f.write("leak:argz_add_sep\n")
    glibc = {"LOCPATH": where, "LSAN_OPTIONS": f"suppressions={world.path('lsan')}:print_suppressions=0"}
    plan = timeless(world.run("plan", "--profile", "cpu-avx2", "--release", f"2.9.1-{ERA}").stdout)
    unknown = world.run("plan", "--profile", "CPU-AVXI2").stderr
    for name in names:
        env = {k: v for k, v in os.environ.items() if not k.startswith("LC_")} | {"LANG": name, "LC_ALL": name, "LANGUAGE": "de"} | glibc
        shutil.rmtree(world.path("cache", "objects", "wheel"))
        for tree in glob.glob(world.path("cache", "build", "*")):
            shutil.rmtree(tree)
        done = world.build(ERA, "--metadata-rev", "1", env=env)
        assert done.returncode == 0, (name, done.stderr)
        assert not record(done)["store_hit"] and sha256(record(done)["wheel"]) == plain, name
        assert timeless(world.run("plan", "--profile", "cpu-avx2", "--release", f"2.9.1-{ERA}", env=env).stdout) == plan, name
        assert world.run("plan", "--profile", "CPU-AVXI2", env=env).stderr == unknown, name
        assert world.run("verify", record(done)["wheel"], env=env).returncode == 0, name


if __name__ == "__main__":
    main([test_places_with_odd_names, test_a_hint_of_an_odd_place_can_be_pasted, test_a_root_with_an_odd_name, test_a_world_is_a_whole_system, test_locales])
