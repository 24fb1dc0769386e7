#!/usr/bin/env python3
"""What ci/quickstart says on machines that it cannot serve, and how ci/in-root enters a root."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

import yaml

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Quickstart(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory(prefix="ptbuild-quickstart-")
        self.addCleanup(self.dir.cleanup)

    def run_with(self, **files):
        """On this machine with other files, a name without a directory being one of /etc; nothing of it can be written."""
        command = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid"]
        for name, text in files.items():
            path = os.path.join(self.dir.name, name)
            with open(path, "w") as f:
                f.write(text)
            command += ["--ro-bind", path, {"os_release": os.path.realpath("/etc/os-release"), "cpuinfo": "/proc/cpuinfo", "apt": "/usr/bin/apt-get", "uname": "/usr/bin/uname"}[name]]
            os.chmod(path, 0o755)
        done = subprocess.run([*command, "bash", os.path.join(TOP, "ci/quickstart"), os.path.join(self.dir.name, "out")], capture_output=True, text=True, timeout=600)
        self.assertNotEqual(done.returncode, 0)
        self.assertNotIn("installing", done.stderr, "it began")
        return done.stderr

    def test_ubuntu_without_debian_archive(self):
        said = self.run_with(os_release='ID=ubuntu\nVERSION_ID="24.04"\nID_LIKE=debian\n', apt="#!/bin/sh\n")
        self.assertIn("'ubuntu 24.04'", said)
        self.assertIn("PTBUILD_ARCHIVE_DEBIAN=URL", said)

    def test_a_processor_without_avx2(self):
        said = self.run_with(os_release='ID=debian\nVERSION_ID="13"\n', cpuinfo="flags\t\t: fpu sse4_2 avx\n", uname="#!/bin/sh\necho x86_64\n")
        self.assertIn("this processor has no 'avx2'", said)

    def test_an_arm_processor_without_dot_products(self):
        said = self.run_with(cpuinfo="Features\t: fp asimd aes atomics asimdhp asimdrdm\n", uname="#!/bin/sh\necho aarch64\n")
        self.assertIn("this processor has no 'asimddp'", said)

    def test_a_machine_without_a_profile(self):
        said = self.run_with(uname="#!/bin/sh\necho riscv64\n")
        self.assertIn("this machine is riscv64, and the quick start builds for x86_64 and aarch64", said)


class Scripts(unittest.TestCase):
    """What the scripts say to people who may not do something. dpkg-query, sudo and apt-get are others."""

    def setUp(self):
        self.dir = tempfile.TemporaryDirectory(prefix="ptbuild-scripts-")
        self.addCleanup(self.dir.cleanup)
        for name in ("dpkg-query", "sudo", "apt-get"):
            path = os.path.join(self.dir.name, name)
            with open(path, "w") as f:
                f.write("#!/bin/sh\necho 'E: none here' >&2\nexit 100\n")
            os.chmod(path, 0o755)

    def run_as(self, uid, *words, **env):
        """As this user number; None in `env` takes a variable away."""
        d = self.dir.name
        there = {**os.environ, "PATH": d + ":" + os.environ["PATH"], "TMPDIR": d, **env}
        command = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", d, d, "--unshare-pid", "--unshare-user", "--uid", str(uid)]
        return subprocess.run([*command, *words], capture_output=True, text=True, cwd=TOP, timeout=600, stdin=subprocess.DEVNULL,
                              env={k: v for k, v in there.items() if v is not None})

    def lib(self, uid, line):
        return self.run_as(uid, "bash", "-euo", "pipefail", "-c", ". ci/lib.sh; " + line)

    def test_the_whole_test_without_packages(self):
        # In a sandbox it would say that it can make none.
        done = subprocess.run(["unshare", "--map-user=12345", "--map-group=12345", "ci/test"], capture_output=True, text=True, cwd=TOP, timeout=600,
                              stdin=subprocess.DEVNULL, env={**os.environ, "PATH": self.dir.name + ":" + os.environ["PATH"], "TMPDIR": self.dir.name})  # fmt: skip
        self.assertEqual((done.returncode, done.stdout), (1, "0 passed, 1 failed\n"), done.stderr)
        self.assertIn("apt-get update && apt-get install -y --no-install-recommends ", done.stderr)
        self.assertIn("FAILED: packages", done.stderr)

    def test_packages_that_cannot_be_had(self):
        done = self.lib(0, "install_packages ci/packages/host.txt")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "E: none here\n.*the packages could not be had: .*network.*apt's sources")

    def test_the_lists_of_packages(self):
        """A build's own are those that the table of the world asks for: what the program reads there, a plain list adds to."""
        done = self.lib(0, "packages_in ci/packages/quickstart.txt profiles/worlds/debian13.yaml profiles/worlds/cuda12_4.yaml")
        names = done.stdout.split()
        own = ["python3-venv", "python3-pip"]  # pip: what the quick start names as the next command downloads with it
        self.assertEqual(names[:2], own, done.stderr)
        for part in ("debian13", "cuda12_4"):
            with open(os.path.join(TOP, "profiles/worlds", part + ".yaml")) as f:
                asked = yaml.safe_load(f)["packages"]
            self.assertEqual(names[2 : 2 + len(asked)], asked)
            del names[2 : 2 + len(asked)]
        self.assertEqual(names, own)

    def test_packages_of_a_part_without_any(self):
        for words, says in ((["--with", "nothing"], "no table 'profiles/worlds/nothing.yaml'"), (["--with", "cuda13_0"], "that asks for packages"), (["--with"], "--with needs a name")):
            done = self.run_as(0, "ci/install-packages", *words)
            self.assertEqual(done.returncode, 1)
            self.assertIn(says, done.stderr)

    def test_no_home(self):
        for home in (None, "", "relative"):
            done = self.run_as(12345, "ci/quickstart", HOME=home, XDG_CACHE_HOME="relative")
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stderr, "quickstart: no place for ptbuild's store: HOME is not an absolute path\n")

    def test_usage(self):
        for words in (["ci/in-root"], ["ci/in-root", "/"], ["ci/quickstart", "--help"]):
            done = self.run_as(12345, *words)
            self.assertEqual(done.returncode, 2, words)
            self.assertRegex(done.stderr, "^usage: " + words[0] + " [^\n]*\n$")


SYSTEMS = {
    "ubuntu22.04": 'ID=ubuntu\nVERSION_ID="22.04"\nID_LIKE=debian\n',
    "ubuntu24.04": 'ID=ubuntu\nVERSION_ID="24.04"\nID_LIKE=debian\n',
    "fedora": "ID=fedora\nVERSION_ID=42\n",
    "rhel": 'ID="rocky"\nVERSION_ID="9.4"\nID_LIKE="rhel centos fedora"\n',
    "arch": "ID=arch\n",
    "opensuse": 'ID="opensuse-tumbleweed"\nID_LIKE="opensuse suse"\n',
}


class Distributions(unittest.TestCase):
    """Other distributions, imitated: their os-release, and a package manager that says what is installed."""

    def setUp(self):
        self.dir = tempfile.TemporaryDirectory(prefix="ptbuild-distributions-")
        self.addCleanup(self.dir.cleanup)

    def lib(self, os_release, line, **tools):
        d = self.dir.name
        with open(os.path.join(d, "os-release"), "w") as f:
            f.write(os_release)
        os.makedirs(os.path.join(d, "bin"), exist_ok=True)
        # Without apt: what the scripts need of this machine, and the tools.
        for name in ("bash", "awk", "sed", "paste", "id", "mktemp", "cat", "head"):
            if not os.path.lexists(os.path.join(d, "bin", name)):
                os.symlink(shutil.which(name), os.path.join(d, "bin", name))
        for name, text in tools.items():
            path = os.path.join(d, "bin", name.replace("_", "-"))
            with open(path, "w") as f:
                f.write("#!/bin/sh\n" + text)
            os.chmod(path, 0o755)
        command = [shutil.which("bwrap"), "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", d, d, "--unshare-pid",
                   "--ro-bind", os.path.join(d, "os-release"), os.path.realpath("/etc/os-release"), "bash", "-euo", "pipefail", "-c", ". ci/lib.sh; " + line]
        return subprocess.run(command, capture_output=True, text=True, cwd=TOP, timeout=600, stdin=subprocess.DEVNULL, env={"PATH": os.path.join(d, "bin"), "HOME": d})

    def names(self, system, lists="ci/packages/host.txt ci/packages/quickstart.txt"):
        done = self.lib(SYSTEMS[system], f"distribution_column; packages_here {lists}")
        self.assertEqual(done.returncode, 0, done.stderr)
        column, *names = done.stdout.split()
        self.assertEqual(column, system)
        return names

    def test_names_table_has_every_package(self):
        with open(os.path.join(TOP, "ci/packages/names.tsv")) as f:
            rows = [line.split() for line in f if line.strip() and not line.startswith("#")]
        header, known = rows[0], {row[0]: row for row in rows[1:]}
        self.assertEqual(set(header[1:]), set(SYSTEMS))
        self.assertEqual({len(row) for row in rows}, {len(header)})
        asked = self.lib("ID=debian\nVERSION_ID=13\n", "packages_here ci/packages/host.txt ci/packages/quickstart.txt").stdout.split()
        self.assertIn("libzydis-dev", asked)
        self.assertEqual([name for name in asked if name not in known], [])
        for row in known.values():
            self.assertNotIn("=", row[1 + len([c for c in header[1:] if c.startswith("ubuntu")]):], row)

    def test_names_of_each_distribution(self):
        self.assertIn("libzydis-dev", self.names("ubuntu24.04"))
        self.assertFalse({"libzydis-dev", "libcurl4-openssl-dev", "bubblewrap"} & set(self.names("ubuntu22.04")), "it has them too old or not at all")
        self.assertNotIn("chromium", self.names("ubuntu24.04", "ci/packages/test.txt"))
        self.assertIn("zsh", self.names("ubuntu24.04", "ci/packages/test.txt"))
        for system, name in (("fedora", "libyaml-devel"), ("rhel", "libstdc++-static"), ("arch", "libyaml"), ("opensuse", "libopenssl-devel")):
            self.assertIn(name, self.names(system))

    def test_missing_packages_are_named_with_the_command(self):
        rpm = 'for name; do :; done\n[ "$name" != libyaml-devel ]\n'
        for system, command, tools in (("fedora", "dnf install -y", {"rpm": rpm}), ("rhel", "dnf install -y --enablerepo=crb", {"rpm": rpm}),
                                       ("opensuse", "zypper install -y", {"rpm": rpm}), ("arch", "pacman -S --needed --noconfirm", {"pacman": "echo libyaml-devel; exit 127\n"})):
            done = self.lib(SYSTEMS[system], "install_packages ci/packages/host.txt", **tools)
            self.assertEqual(done.returncode, 1, system)
            self.assertRegex(done.stderr, f"(?m)^  {command}[^\n]* libyaml-devel$")

    def test_packages_and_the_mirror_are_told_at_once(self):
        """The library of Fedora's own would be built from a Debian archive, too: --only-ptbuild asks for one as well."""
        more = {name: f'exec {shutil.which(name)} "$@"\n' for name in ("uname", "dirname", "grep", "df", "tail")}
        for words in ((), ("--only-ptbuild",)):
            done = self.lib(SYSTEMS["fedora"], " ".join(("ci/quickstart", *words)), rpm="exit 1\n", **more)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertRegex(done.stderr, r"(?m)^  dnf install -y .*\blibyaml-devel\b")
            self.assertIn(" ".join(("PTBUILD_ARCHIVE_DEBIAN=URL ci/quickstart", *words)) + "\n", done.stderr)
        done = self.lib(SYSTEMS["fedora"], "ci/quickstart", rpm="", **more)
        self.assertNotIn("packages are missing", done.stderr)
        self.assertIn("PTBUILD_ARCHIVE_DEBIAN=URL ci/quickstart\n", done.stderr)

    def test_no_pkg_config_is_told_as_that(self):
        more = {name: f'exec {shutil.which(name)} "$@"\n' for name in ("dirname", "grep", "basename")}
        done = self.lib("ID=nixos\nVERSION_ID=26.05\n", "ci/pinned-libraries", **more)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("pkg-config", done.stderr)

    def test_installed_packages_go_on(self):
        for system, tools in (("fedora", {"rpm": ""}), ("rhel", {"rpm": ""}), ("opensuse", {"rpm": ""}), ("arch", {"pacman": ""})):
            done = self.lib(SYSTEMS[system], "install_packages ci/packages/host.txt; echo on", **tools)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "on\n", ""), system)

    def test_unknown_distribution_goes_on(self):
        done = self.lib("ID=nixos\nVERSION_ID=26.05\n", "install_packages ci/packages/host.txt; echo on")
        self.assertEqual((done.returncode, done.stdout), (0, "on\n"))
        self.assertIn("'nixos 26.05'", done.stderr)
        self.assertIn("libyaml-dev", done.stderr)

    def test_ubuntu_installs_by_its_names(self):
        tools = {"dpkg_query": "exit 1\n", "apt_get": f"echo \"$@\" >>{self.dir.name}/asked\n", "sudo": '[ "$1" != -n ] || exit 0\nexec "$@"\n', "env": "shift; exec \"$@\"\n"}
        done = self.lib(SYSTEMS["ubuntu22.04"], "install_packages ci/packages/host.txt", **tools)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(self.dir.name, "asked")) as f:
            asked = f.read().split()
        self.assertIn("libhiredis-dev", asked)
        self.assertNotIn("libzydis-dev", asked)

    def test_named_archive_comes_first(self):
        done = self.lib(SYSTEMS["ubuntu24.04"], "PTBUILD_ARCHIVE_DEBIAN='file:///one file:///two' own_mirror; echo; own_mirror; echo none")
        self.assertEqual(done.stdout, "file:///one\n\nnone\n", done.stderr)


class InRoot(unittest.TestCase):
    def run_in(self, root, *command, cwd):
        return subprocess.run([os.path.join(TOP, "ci/in-root"), root, *command], capture_output=True, text=True, cwd=cwd, timeout=600)

    def test_the_directory_and_its_files_stay(self):
        with tempfile.TemporaryDirectory(prefix="in root ") as d:
            done = self.run_in("/", "sh", "-c", "pwd; id -u; echo kept >file; touch /usr/mark || echo refused", cwd=d)
            self.assertEqual(done.stdout, f"{d}\n{os.getuid()}\nrefused\n", done.stderr)
            with open(os.path.join(d, "file")) as f:
                self.assertEqual(f.read(), "kept\n")

    def test_programs_are_the_roots(self):
        with tempfile.TemporaryDirectory() as d:
            with open(os.path.join(d, "python3"), "w") as f:
                f.write("#!/bin/sh\necho mine\n")
            os.chmod(os.path.join(d, "python3"), 0o755)
            env = {**os.environ, "PATH": d + ":" + os.environ["PATH"], "PYTHONHOME": d}
            done = subprocess.run([os.path.join(TOP, "ci/in-root"), "/", "sh", "-c", "command -v python3; echo $PYTHONHOME"], capture_output=True, text=True, env=env, timeout=600)
            self.assertRegex(done.stdout, r"^/usr/(local/)?bin/python3\n\n$", done.stderr)

    def test_names_resolve_as_on_this_machine(self):
        """In a root with no such files, of two programs and their libraries."""
        with tempfile.TemporaryDirectory() as d:
            libraries = re.findall(r"(/\S+) \(0x", subprocess.run(["ldd", "/usr/bin/cat", "/usr/bin/env"], capture_output=True, text=True, check=True).stdout)
            for path in {"/usr/bin/cat", "/usr/bin/env", *libraries}:
                os.makedirs(d + os.path.dirname(path), exist_ok=True)
                shutil.copy(path, d + path)
            os.mkdir(d + "/etc")
            with open(d + "/etc/own", "w") as f:
                f.write("the root's\n")
            done = self.run_in(d, "/usr/bin/cat", "/etc/own", "/etc/hosts", "/etc/resolv.conf", cwd="/")
            want = "the root's\n"
            for name in ("/etc/hosts", "/etc/resolv.conf"):
                with open(name) as f:
                    want += f.read()
            self.assertEqual(done.stdout, want, done.stderr)

    def test_the_exit_status_stays(self):
        self.assertEqual(self.run_in("/", "sh", "-c", "exit 7", cwd="/").returncode, 7)

    def test_no_root(self):
        done = self.run_in("/nowhere", "true", cwd="/")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no root file system in '/nowhere'", done.stderr)
        self.assertIn("ptbuild world make debian13", done.stderr)


if __name__ == "__main__":
    unittest.main()
