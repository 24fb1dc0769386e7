"""Builds without a sandbox, which lie where the sandbox's paths are: one at a time, killed, gone on with, and elsewhere when that place cannot be had."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

from test_survive import behaving, compiled, processes, wait_for
from toy import main, record, remove_place

PLACE = "/ptbuild"
USER = 12321


def beside_the_place():
    """A directory that a tree can be renamed from to the place: on many machines /tmp is a file system of its own."""
    for parent in (tempfile.gettempdir(), "/var/tmp", "/"):
        tried = tempfile.mkdtemp(prefix="ptbuild-e2e-", dir=parent)
        there = f"{PLACE}-{os.path.basename(tried)}"
        try:
            os.rename(tried, there)
        except OSError:
            os.rmdir(tried)
            continue
        os.rmdir(there)
        return parent
    raise AssertionError(f"no directory can be renamed to {PLACE}")


def light(name, *modes):
    return lambda world: world.pin("setup-py-env", behaving(*modes), name)


def words(name, *more):
    return ["build", "--profile", "cpu-avx2", "--release", f"2.9.1-{name}", "--json", "--sandbox", "none", *more]


def ok(done):
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr[-2000:]}"
    return record(done)


def plan(world, name, *before):
    command = [*before, *world.command("plan", "--profile", "cpu-avx2", "--release", f"2.9.1-{name}", "--json", "--sandbox", "none")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=world.dir)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def home_of_place():
    with open(f"{PLACE}/.ptbuild/tree") as f:
        return f.read()


def killed(world, name, *more):
    """A build that is killed while it compiles: its process, and what it left running."""
    p = world.start(*words(name, "--jobs", "1", *more))
    wait_for(f"{PLACE}/src/blocking")
    p.kill()
    p.communicate(timeout=120)
    end = time.monotonic() + 120
    while processes("sleep(3456)"):
        assert time.monotonic() < end, processes("sleep(3456)")
        time.sleep(0.1)


def test_a_killed_build_goes_on_there(world):
    light("first", "unit4=blocks")(world)
    light("second")(world)
    killed(world, "first")
    home = home_of_place()
    assert home.startswith(world.path("cache", "build") + "/") and os.listdir(home) == [], home
    before = compiled(PLACE)
    assert before, "nothing was compiled before the kill"
    item = ok(world.run(*words("first", "--jobs", "1", "--keep")))
    assert item["record"]["build"]["resumed"], item
    again = {unit: n for unit, n in compiled(home).items() if n > 1}
    assert not again, f"compiled twice: {again}"
    assert not os.path.exists(f"{PLACE}/src") and not os.path.exists(f"{PLACE}/.ptbuild/tree")


def test_a_kept_tree_has_a_shell_there(world):
    variant = plan(world, "first")["variant"]
    shown = world.run("shell", variant, "--", "sh", "-c", "pwd; echo $PWD $TMPDIR $HOME; test -w $TMPDIR; test -f compiled; exit 4")
    assert shown.stdout == "/ptbuild/src\n/ptbuild/src /ptbuild/tmp /ptbuild/home\n" and shown.returncode == 6, shown
    assert not os.path.exists(f"{PLACE}/src")


def test_a_killed_build_makes_room(world):
    shutil.rmtree(world.cache)
    killed(world, "first")
    home = home_of_place()
    ok(world.run(*words("second", "--out", world.path("second"))))
    assert compiled(home) and os.path.exists(os.path.join(home, "tree.json")), os.listdir(home)
    item = ok(world.run(*words("first", "--jobs", "1")))
    assert item["record"]["build"]["resumed"], item
    # The shell finds what a kill left there, too.
    shutil.rmtree(world.cache)
    killed(world, "first")
    variant = plan(world, "first")["variant"]
    shown = world.run("shell", variant, "--", "pwd")
    assert shown.stdout == "/ptbuild/src\n", shown
    # A store that is gone takes its tree with it.
    shutil.rmtree(world.cache)
    killed(world, "first")
    shutil.rmtree(world.cache)
    done = world.run(*words("second", "--out", world.path("second")))
    ok(done)
    assert "does not exist any more" in done.stderr and not os.path.exists(f"{PLACE}/src"), done.stderr


def test_a_failed_build_names_its_tree(world):
    light("fails", "unit2=fails")(world)
    failed = world.run(*words("fails", "--jobs", "1"))
    assert failed.returncode == 6, failed.stderr[-2000:]
    log = failed.stderr.split("the whole log is '")[1].split("'")[0]
    assert log.startswith(world.path("cache", "build")) and "unit2.cpp:7:1: error" in open(log).read(), log
    assert not os.path.exists(f"{PLACE}/src")


def test_two_at_once(world):
    """Of two stores, so that nothing else holds them apart."""
    light("slow", "unit4=blocks")(world)
    p = world.start(*words("slow", "--jobs", "1"))
    wait_for(f"{PLACE}/src/blocking")
    other = subprocess.Popen(world.command(*words("second", "--out", world.path("other")), cache=world.path("other-store")), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=world.dir)
    said = []
    for line in other.stderr:
        said.append(line)
        if "waiting for" in line:
            break
    assert f"waiting for '{PLACE}/.ptbuild/lock', held by process {p.pid}" in said[-1], said
    p.send_signal(signal.SIGINT)
    p.communicate(timeout=120)
    assert p.returncode == 130 and not processes("sleep(3456)"), processes("sleep(3456)")
    out, err = other.communicate(timeout=300)
    assert other.returncode == 0, err
    # The one that was stopped went home.
    item = ok(world.run(*words("slow", "--jobs", "1")))
    assert item["record"]["build"]["resumed"], item
    assert json.loads(out)[0]["record"]["verified"]["errors"] == 0


def doctor(world, before, after=()):
    command = [*before, *world.command("doctor", "--profile", "cpu-avx2", "--release", "2.9.1-second", "--json", "--sandbox", "none"), *after]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=world.dir)
    checks = json.loads(done.stdout)
    checks = checks[0] if isinstance(checks, list) else checks
    return next(c for c in checks["checks"] if c["name"] == "paths")


def mounted(options, *more):
    """Runs a command with another file system at the place, which nobody else sees."""
    return ["unshare", "--mount", "sh", "-ec", f'mkdir -p {PLACE}; mount -t tmpfs -o {options} none {PLACE}; {"; ".join(more) or ":"}; exec "$@"', "sh"]


def test_elsewhere(world):
    """A place that others may write, and one where somebody keeps something: the build lies in the store, has another key, and doctor tells it."""
    fine = plan(world, "second")
    line = doctor(world, [])
    assert not fine["elsewhere"] and line["level"] == "ok" and f"'{PLACE}'" in line["text"], line
    for before, why, fix in (
        (mounted("mode=0777"), "others may write in", "chmod go-w"),
        (mounted("mode=0755", f"echo mine >{PLACE}/notes"), "ptbuild did not make: 'notes'", "empty"),
        (mounted("mode=0755", f"chown {USER} {PLACE}"), f"owned by user {USER}", "chown 0"),
    ):
        line = doctor(world, before)
        assert line["level"] == "warning" and why in line["text"] and "not be byte-identical" in line["text"] and fix in line["fix"], line
        other = plan(world, "second", *before)
        assert other["elsewhere"] and other["compile_key"] != fine["compile_key"] and other["output_key"] != fine["output_key"]
    command = world.command(*words("second", "--out", world.path("elsewhere")), cache=world.path("elsewhere-store"))
    done = subprocess.run([*mounted("mode=0755", f"echo mine >{PLACE}/notes"), "sh", "-c", f'"$@" && cat {PLACE}/notes >&2 && ls -A {PLACE} >&2', "sh", *command], capture_output=True, text=True, timeout=600, cwd=world.dir)
    item = ok(done)
    assert done.stderr.endswith("mine\nnotes\n") and f"(tree {world.path('elsewhere-store')}" in done.stderr, done.stderr
    here = ok(world.run(*words("second", "--out", world.path("second"))))["record"]
    assert item["record"]["pack_key"] != here["pack_key"] and item["record"]["sha256"] != here["sha256"]


def test_on_another_file_system(world):
    """As a cache mount of a container: the tree of a failed build waits there, and is gone on with."""
    light("apart", "unit2=fails")(world)
    assert "on another file system than the store" in doctor(world, mounted("mode=0755"))["text"]
    command = world.command(*words("apart", "--jobs", "1", "--out", world.path("apart")), cache=world.path("apart-store"))
    shell = world.command("shell", plan(world, "apart")["variant"], cache=world.path("apart-store"))
    script = 'shell=$1; shift; "$@" >&2 && exit 9; eval "$shell -- pwd" >&2; ls -A /ptbuild/.ptbuild/trees >&2; "$@"; ls -A /ptbuild /ptbuild/.ptbuild/trees >&2'
    done = subprocess.run([*mounted("mode=0755", f"touch {PLACE}/buildah-cache-lockfile"), "sh", "-c", script, "sh", " ".join(f"'{w}'" for w in shell), *command], capture_output=True, text=True, timeout=600, cwd=world.dir)
    item = ok(done)
    assert item["record"]["build"]["resumed"], done.stderr
    assert "\n/ptbuild/src\n" in done.stderr and "the whole log is '/ptbuild/.ptbuild/trees/" in done.stderr, done.stderr
    assert done.stderr.endswith("/ptbuild:\n.ptbuild\nbuildah-cache-lockfile\n\n/ptbuild/.ptbuild/trees:\n"), done.stderr
    assert not os.path.exists(f"{PLACE}/src")


def test_a_user_without_the_place(world):
    """Who is not root and has no such directory builds elsewhere, and is told how to come by one."""
    remove_place()
    if os.path.exists(PLACE):
        return
    os.chmod(world.dir, 0o755)
    os.mkdir(world.path("user"))
    os.chown(world.path("user"), USER, USER)
    as_user = ["setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups"]
    if subprocess.run([*as_user, world.ptbuild, "--version"], capture_output=True).returncode:
        return  # the program lies where this user cannot go
    line = doctor(world, as_user, ["--cache", world.path("user", "store"), "--out", world.path("user", "dist")])
    assert line["level"] == "warning" and f"'{PLACE}' is not there and cannot be made" in line["text"], line
    assert f"install -d -o {USER} {PLACE}" in line["fix"], line
    command = world.command(*words("second", "--out", world.path("user", "dist")), cache=world.path("user", "store"))
    done = subprocess.run([*as_user, *command], capture_output=True, text=True, timeout=600, cwd=world.path("user"))
    item = ok(done)
    assert item["record"]["verified"]["errors"] == 0 and not os.path.exists(PLACE), done.stderr


def prepare(world):
    """These need the place, which only root can make where it is not."""
    if os.getuid() != 0 or plan_is_elsewhere(world):
        print("[  PASSED  ] 0 test(s): they need root, and '/ptbuild' for themselves.")
        world.close()
        raise SystemExit(0)


def plan_is_elsewhere(world):
    light("second")(world)
    return plan(world, "second")["elsewhere"]


if __name__ == "__main__":
    if os.getuid() == 0:
        tempfile.tempdir = beside_the_place()
    try:
        main(
            [
                test_a_killed_build_goes_on_there,
                test_a_kept_tree_has_a_shell_there,
                test_a_killed_build_makes_room,
                test_a_failed_build_names_its_tree,
                test_two_at_once,
                test_elsewhere,
                test_on_another_file_system,
                test_a_user_without_the_place,
            ],
            prepare,
        )
    finally:
        remove_place()
