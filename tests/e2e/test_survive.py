"""Builds that survive: stopped by a person, failing once, changed inputs, and too little memory, each in a tree that goes on."""

import glob
import json
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import time
from collections import Counter

from toy import HERE, TOP, host_python, main, record

LIMIT = os.path.join(TOP, "ci", "memory-limited")


def behaving(*modes):
    """The toy with a launcher before each compiler."""

    def change(files):
        files["launch.py"] = open(os.path.join(HERE, "launch.py"), "rb").read()
        launcher = " ".join(["python3", "-IS", "${CMAKE_SOURCE_DIR}/launch.py", *modes])
        files["CMakeLists.txt"] += f'\nset_property(TARGET torch_toy PROPERTY RULE_LAUNCH_COMPILE "{launcher}")\n'.encode()

    return change


def pin(world, name, *modes, memory=""):
    world.pin("setup-py-env", behaving(*modes), name)
    with open(world.release(name), "a") as f:
        f.write(memory)


def words(name, *more):
    return ["build", "--profile", "cpu-avx2", "--release", f"2.9.1-{name}", "--json", *more]


def tree_of(world):
    trees = [t for t in glob.glob(world.path("cache", "build", "*")) if os.path.exists(os.path.join(t, "tree.json"))]
    return max(trees, key=os.path.getmtime)


def compiled(tree):
    with open(os.path.join(tree, "src", "compiled")) as f:
        return Counter(f.read().split())


def processes(word):
    """Those whose command line has the word."""
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            text = open(path, "rb").read().decode(errors="replace")
        except OSError:
            continue
        if word in text:
            found.append(path + ": " + text.replace("\0", " ")[:200])
    return found


def wait_for(path, seconds=120):
    end = time.monotonic() + seconds
    while not glob.glob(path):
        assert time.monotonic() < end, f"no {path} after {seconds} s"
        time.sleep(0.05)


def stopped(world, p, sig):
    p.send_signal(sig)
    _, err = p.communicate(timeout=120)
    assert p.returncode == 130, f"exit {p.returncode}: {err[-1000:]}"
    assert not processes("sleep(3456)"), processes("sleep(3456)")
    return err


def test_stopped_failed_and_finished(world):
    pin(world, "stops", "unit3=blocks", "unit5=blocks", "unit7=fails")
    p = world.start(*words("stops", "--jobs", "1"))
    wait_for(world.path("cache", "build", "*", "src", "unit3.blocked"))
    wait_for(world.path("cache", "build", "*", "src", "blocking"))
    said = stopped(world, p, signal.SIGINT)
    tree = tree_of(world)
    before = compiled(tree)
    assert before and set(before.values()) == {1}, before
    os.remove(os.path.join(tree, "src", "blocking"))

    p = world.start(*words("stops", "--jobs", "1"))
    wait_for(os.path.join(tree, "src", "blocking"))
    stopped(world, p, signal.SIGTERM)

    failed = world.run(*words("stops", "--jobs", "1"))
    assert failed.returncode == 6, failed.stderr[-2000:]
    assert "unit7.cpp:7:1: error: what the test wants" in failed.stderr, failed.stderr[-2000:]
    assert "in unit 'CMakeFiles/torch_toy.dir/unit7.cpp.o'" in failed.stderr, failed.stderr[-2000:]
    assert len(failed.stderr.splitlines()) < 40, f"{len(failed.stderr.splitlines())} lines"
    log = re.search(r"the whole log is '([^']+)'", failed.stderr).group(1)
    assert "unit7.cpp:7:1: error" in open(log).read()

    # The command of the message, as it stands.
    line = re.search(r"build this unit alone with: (ptbuild shell .*)", failed.stderr).group(1)
    command = shlex.split(line)
    command[0] = world.ptbuild
    alone = subprocess.run(command, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    assert alone.returncode == 0, alone.stderr[-2000:]
    assert compiled(tree)["unit7"] == 1

    shown = world.run("shell", f"pytorch-python{host_python().replace('.', '')}-cpu-avx2", "--", "sh", "-c", "read x; echo $PWD $x $MAX_JOBS; exit 4", input="typed\n")
    assert shown.stdout == "/ptbuild/src typed 1\n", shown
    assert shown.returncode == 6 and "ended with status 4" in shown.stderr, shown

    done = world.run(*words("stops", "--jobs", "1", "--keep"))
    assert done.returncode == 0, done.stderr[-2000:]
    assert record(done)["record"]["build"]["resumed"]
    again = {unit: n for unit, n in compiled(tree).items() if n > 1}
    assert not again, f"compiled twice: {again}"
    assert sum(compiled(tree).values()) == 10


def test_shell_on_a_terminal(world):
    """Job control works there: Ctrl-C stops what runs in the shell, not the shell."""
    command = world.command("shell", f"pytorch-python{host_python().replace('.', '')}-cpu-avx2")
    pid, fd = pty.fork()
    if pid == 0:
        os.execv(command[0], command)

    def until(word):
        text, end = "", time.monotonic() + 300
        while word not in text:
            assert time.monotonic() < end and select.select([fd], [], [], 300)[0], text
            text += os.read(fd, 4096).decode(errors="replace")
        return text

    until("[ptbuild /ptbuild/src]$ ")
    os.write(fd, b"sleep 3000 || echo stopped=$?; echo in $PWD with $MAX_JOBS\n")
    time.sleep(1)
    os.write(fd, b"\x03")
    until("[ptbuild /ptbuild/src]$ ")
    os.write(fd, b"echo still here, $MAX_JOBS job; exit 5\n")
    until("still here, 1 job")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(fd)


def test_a_changed_input_is_told(world):
    old = tree_of(world)
    p = world.start(*words("stops", "--set", "USE_MKLDNN=OFF", "--set", "USE_NUMA=ON"))
    told = []
    for line in p.stderr:
        told.append(line)
        if "stays in" in line:
            break
    p.terminate()
    p.communicate(timeout=120)
    told = "".join(told)
    assert "new build tree, because inputs changed" in told, told
    assert re.search(r"cmake USE_MKLDNN: \S+ → OFF", told), told
    assert f"the old build tree stays in '{old}'" in told, told


def test_sources_changed_by_hand(world):
    """Such a wheel is made, says so, and is given to no build that asks for the sources as they are."""
    pin(world, "edited", "unit7=fails")
    failed = world.run(*words("edited", "--jobs", "1"))
    assert failed.returncode == 6, failed.stderr[-2000:]
    variant = f"pytorch-python{host_python().replace('.', '')}-cpu-avx2"
    tree = tree_of(world)
    for command in (["true"], ["ninja", "-C", "build", "-k", "0"]):
        world.run("shell", variant, "--", *command)
        assert not os.path.exists(os.path.join(tree, "changed")), command
    shown = world.run("shell", variant, "--", "sh", "-c", "echo '// a word' >> csrc/toy.cpp")
    assert shown.returncode == 0 and os.path.exists(os.path.join(tree, "changed")), shown.stderr
    done = world.run(*words("edited", "--jobs", "1"))
    assert done.returncode == 0 and "changed by hand" in done.stderr, done.stderr[-2000:]
    item = record(done)
    assert "changed by hand" in " ".join(item["record"]["notes"]), item["record"]["notes"]
    assert world.run("verify", item["wheel"]).returncode == 0 and world.run("cache", "verify").returncode == 0
    # Not from the store: the sources as they are fail as they did.
    again = world.run(*words("edited", "--jobs", "1"))
    assert again.returncode == 6 and "unit7.cpp:7:1: error" in again.stderr, again.stderr[-2000:]
    assert world.run(*words("edited", "--keep")).returncode == 0
    world.run("shell", variant, "--", "sh", "-c", "echo '// a word' >> csrc/toy.cpp")
    hit = world.run(*words("edited"))
    assert record(hit)["store_hit"] and "without your changes" in hit.stderr, hit.stderr[-2000:]


def test_shell_without_a_tree(world):
    name = f"pytorch-python{host_python().replace('.', '')}-cpu-avx512"
    none = world.run("shell", name)
    assert none.returncode == 3, none.stderr
    assert f"no kept build tree for '{name}'" in none.stderr and "--keep" in none.stderr, none.stderr
    assert world.run("shell").returncode == 2


def can_limit():
    return subprocess.run([LIMIT, "300M", "true"], capture_output=True).returncode == 0


def limited(world, name, *more):
    """Builds with 1 GiB of memory; where no limit can be made the units die like killed ones instead."""
    command = world.command(*words(name, *more))
    if can_limit():
        command = [LIMIT, "1G", *command]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=world.dir)


def hungry(*units):
    return [f"{u}=eats:600" if can_limit() else f"{u}=alone:1" for u in units]


SMALL = "  memory:\n    compile: 100M\n    link: 100M\n"


def test_too_little_memory_lowers_the_jobs(world):
    """Nobody knows that some units need 600 MB: two of them at once are killed, one at a time is not."""
    pin(world, "hungry", *hungry("unit2", "unit3", "unit4"), memory=SMALL)
    done = limited(world, "hungry", "--jobs", "4")
    assert done.returncode == 0, done.stderr[-3000:]
    r = record(done)["record"]["build"]
    assert [(x["from"], x["to"]) for x in r["reductions"]][:1] == [(4, 2)] and r["reductions"][-1]["to"] == 1, r["reductions"]
    assert r["jobs"] == 1
    for x in r["reductions"]:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", x["at"]) and x["after"] > 0 and "kill" in x["why"].lower(), x
    assert "memory ran short at" in done.stderr and "from 2 jobs at once to 1" in done.stderr, done.stderr


def test_known_heavy_units_come_first_and_one_at_a_time(world):
    """The release says which units are heavy, and that none fits beside an ordinary one: they never meet, and the others go two at a time."""
    table = SMALL.replace("compile: 100M", "compile: 300M") + '    heavy:\n      - {units: "*unit[246].cpp.o", bytes: 650M, why: "they eat"}\n'
    pin(world, "known", *(hungry("unit2", "unit4", "unit6") if can_limit() else []), memory=table)
    done = limited(world, "known", "--jobs", "2", "--keep")
    assert done.returncode == 0, done.stderr[-3000:]
    r = record(done)["record"]["build"]
    assert r["reductions"] == [] and r["jobs"] == 2, r
    if can_limit():
        assert r["pools"]["heavy"] == 1 and r["pools"]["heavy_first"], r["pools"]
        assert r["memory"] <= 1 << 30, r["memory"]
        assert set(list(compiled(tree_of(world)))[:3]) == {"unit2", "unit4", "unit6"}, compiled(tree_of(world))


def test_memory_too_small_for_one(world):
    pin(world, "huge", "unit2=eats:1100" if can_limit() else "unit2=alone:0", memory=SMALL)
    done = limited(world, "huge", "--jobs", "2")
    assert done.returncode == 8, f"exit {done.returncode}: {done.stderr[-2000:]}"
    assert "does not fit into memory even with one job at a time" in done.stderr and "unit2.cpp.o" in done.stderr, done.stderr[-2000:]


def test_tree_that_cannot_go_on(world):
    """Whatever a kill left of the configuration: the same command gets through, and what was compiled is not compiled again."""

    def no_ninja(build):
        os.remove(os.path.join(build, "build.ninja"))

    def no_compiler(build):
        [path] = glob.glob(os.path.join(build, "CMakeFiles", "*", "CMakeCXXCompiler.cmake"))
        open(path, "w").close()
        os.remove(os.path.join(build, "build.ninja"))

    def cut_cache(build):
        path = os.path.join(build, "CMakeCache.txt")
        os.truncate(path, os.path.getsize(path) * 2 // 3)

    def cut_object(build):
        for path in glob.glob(os.path.join(build, "CMakeFiles", "torch_toy.dir", "unit*.o")):
            os.truncate(path, 10)

    for i, damage in enumerate([no_ninja, no_compiler, cut_cache, cut_object]):
        world.clear()
        pin(world, f"damaged{i}", "unit9=blocks")
        p = world.start(*words(f"damaged{i}", "--jobs", "1"))
        wait_for(world.path("cache", "build", "*", "src", "blocking"))
        p.kill()
        p.communicate(timeout=120)
        tree = tree_of(world)
        os.remove(os.path.join(tree, "src", "blocking"))
        damage(os.path.join(tree, "src", "build"))
        done = world.run(*words(f"damaged{i}", "--jobs", "1"))
        assert done.returncode == 0, (damage.__name__, done.stderr[-3000:])
        print(damage.__name__, "anew" if "beginning from scratch" in done.stderr else "went on")


def test_a_check_that_was_killed(world):
    """The compiler dies in a check of CMake's, or what CMake asks is too large: no wheel without the feature, and the same command makes the right one."""
    check = """
include(CheckCXXSourceCompiles)
set(CMAKE_REQUIRED_FLAGS "-wrapper sh,${CMAKE_SOURCE_DIR}/wrapper.sh")
check_cxx_source_compiles("int main() { return 0; }" HAS_FEATURE)
execute_process(COMMAND python3 -c "import os; x = b'x' * ((2 << 30) * os.path.exists('eats'))" WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} RESULT_VARIABLE failed)
set(FAILED "${failed}" CACHE INTERNAL "")
"""

    def change(files):
        files["wrapper.sh"] = b'[ -e "$0.lives" ] || kill -9 $$\nexec "$@"\n'
        files["CMakeLists.txt"] += check.encode()

    world.pin("setup-py-env", change, "checked")
    first = world.run(*words("checked"))
    assert first.returncode == 6 and "a program was killed while CMake tried what there is" in first.stderr, (first.returncode, first.stderr[-2000:])
    src = os.path.join(tree_of(world), "src")
    open(os.path.join(src, "wrapper.sh.lives"), "w").close()
    if can_limit():
        open(os.path.join(src, "eats"), "w").close()
        large = limited(world, "checked")
        assert large.returncode == 8 and "killed a process for memory while it was configured" in large.stderr, (large.returncode, large.stderr[-2000:])
        os.remove(os.path.join(src, "eats"))
    again = world.run(*words("checked", "--keep"))
    assert again.returncode == 0, again.stderr[-2000:]
    cache = open(os.path.join(src, "build", "CMakeCache.txt")).read()
    assert "HAS_FEATURE:INTERNAL=1\n" in cache and "FAILED:INTERNAL=0\n" in cache, cache


if __name__ == "__main__":
    main(
        [
            test_stopped_failed_and_finished,
            test_shell_on_a_terminal,
            test_a_changed_input_is_told,
            test_sources_changed_by_hand,
            test_shell_without_a_tree,
            test_too_little_memory_lowers_the_jobs,
            test_known_heavy_units_come_first_and_one_at_a_time,
            test_memory_too_small_for_one,
            test_a_check_that_was_killed,
            test_tree_that_cannot_go_on,  # clears the store
        ]
    )
