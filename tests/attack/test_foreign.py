#!/usr/bin/python3
"""What others have written and ptbuild shows, believes or unpacks: words for the terminal, members of wheels, signed statements.

Each case shows that the hostile bytes got as far as ptbuild (they are told of, escaped) and asserts what came of them."""

import base64
import json
import os
import pty
import re
import stat
import subprocess
import sys
import tempfile
import unittest
import zipfile

PTBUILD = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else "ptbuild"
# Escape sequences, C1 controls, marks and overrides of direction, and what is no UTF-8: none of it may reach a terminal.
HARM = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\udc80-\udcff]")
CLEAR = "\033[2J\033]0;owned\a"


def run(*args, **kw):
    got = subprocess.run([PTBUILD, *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **kw)
    return got.returncode, got.stdout.decode("utf-8", "surrogateescape")


class Case(unittest.TestCase):
    def setUp(self):
        dir = tempfile.TemporaryDirectory()
        self.addCleanup(dir.cleanup)
        self.dir = dir.name

    def path(self, name, data=None):
        path = os.path.join(self.dir, name)
        if data is not None:
            with open(path, "wb") as file:
                file.write(data if isinstance(data, bytes) else data.encode())
        return path


class Terminal(Case):
    def held(self, words, *args, status=None):
        """The escaped words are in the output, and nothing of what does harm."""
        code, text = run(*args)
        self.assertIn(words, text)
        self.assertIsNone(HARM.search(text), text)
        self.assertNotEqual(code, 0)
        if status is not None:
            self.assertEqual(code, status, text)

    def test_variant_name(self):
        self.held("\\x1b[2J\\x1b]0;owned\\x07", "plan", "pytorch-python313-cpu-" + CLEAR, status=3)

    def test_option_value(self):
        self.held("\\x1b[2J", "plan", "--profile", "sm90" + CLEAR)

    def test_bytes_that_are_not_utf8(self):
        self.held("\\xff\\x9b", "plan", os.fsdecode(b"pytorch-\xff\x9b2J"))

    def test_c1_controls_in_utf8(self):
        self.held("\\u{9b}2J", "plan", "pytorch-\u009b2J")

    def test_direction_overrides(self):
        self.held("\\u{202e}", "plan", "pytorch-\u202exva")

    def test_yaml_value(self):
        self.held("\\x1b[2J", "plan", "--profile", self.path("evil.yaml", 'isa: "x\\e[2J"\n'))

    def test_yaml_key(self):
        self.held("\\x1b[31m", "matrix", "build-pytorch/main", "--runner-map", self.path("map.yaml", '"\\e[31mrunners": []\n'), status=3)

    def test_runner_label(self):
        self.held("\\x1b[31m", "matrix", "build-pytorch/main", "--format", "github", "--runner-map", self.path("map.yaml", 'runners:\n  - {labels: ["\\e[31m"]}\n'), status=3)

    def test_list_of_variants(self):
        self.held("\\x1b[2J", "matrix", "--file", self.path("list", "pytorch-python313-cpu-" + CLEAR + "\n"), status=3)

    def test_name_of_a_wheel(self):
        self.held("?[2J", "verify", self.path(CLEAR.replace("/", "") + ".whl", "no archive, but long enough for its end"), status=5)

    def test_member_of_a_wheel(self):
        path = self.path("a-1-py3-none-any.whl")
        with zipfile.ZipFile(path, "w") as z:
            z.writestr("torch/" + CLEAR, "")
        self.held("torch/?[2J?]0;owned?", "verify", path, status=5)

    def test_metadata_of_a_wheel(self):
        path = self.path("a-1-py3-none-any.whl")
        with zipfile.ZipFile(path, "w") as z:
            z.writestr("a-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: a" + CLEAR + "\nVersion: 1\n")
        code, text = run("verify", "--notes", path)
        self.assertEqual(code, 5)
        self.assertIn("a?[2J?]0;owned?", text)
        self.assertIsNone(HARM.search(text), text)

    def test_on_a_terminal_with_colours(self):
        """Its own colours are there, foreign ones are not."""
        main, side = pty.openpty()
        with subprocess.Popen([PTBUILD, "plan", "pytorch-\033[32mgreen" + CLEAR], stdin=side, stdout=side, stderr=side, env={**os.environ, "TERM": "xterm", "NO_COLOR": ""}) as child:
            os.close(side)
            text = b""
            while True:
                try:
                    more = os.read(main, 4096)
                except OSError: # all of the other side is closed
                    break
                if not more:
                    break
                text += more
            child.wait()
        os.close(main)
        self.assertIn(b"\033[1;31merror:\033[0m", text)
        self.assertIn(b"\\x1b[32mgreen\\x1b[2J", text)
        self.assertNotIn(b"\033[32m", text)

    def test_json_has_the_bytes_as_json_writes_them(self):
        path = self.path("a-1-py3-none-any.whl")
        with zipfile.ZipFile(path, "w") as z:
            z.writestr("torch/C:\u202ex", "")
        done = subprocess.run([PTBUILD, "verify", "--json", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 5)
        self.assertNotIn(b"\033", done.stdout)
        self.assertIn("drive or a stream", json.dumps(json.loads(done.stdout)))


class Members(Case):
    def found(self, rule, words, *members, level="error"):
        path = self.path("a-1-py3-none-any.whl")
        with zipfile.ZipFile(path, "w") as z:
            for name, mode in members:
                info = zipfile.ZipInfo(name)
                info.external_attr = mode << 16
                info.create_system = 3
                z.writestr(info, "x" if not name.endswith("/") else "")
        code, text = run("verify", "--ci", path)
        lines = [line for line in text.splitlines() if f"{level}[{rule}]" in line]
        self.assertTrue(any(words in line for line in lines), text)
        self.assertEqual(code, 5)

    def test_drive(self):
        self.found("name", "drive or a stream", ("C:/windows/x.dll", stat.S_IFREG | 0o644))

    def test_stream(self):
        self.found("name", "drive or a stream", ("torch/x.py:evil.exe", stat.S_IFREG | 0o644))

    def test_setuid(self):
        self.found("mode", "mode 4755", ("torch/bin/sh", stat.S_IFREG | 0o4755))

    def test_setgid(self):
        self.found("mode", "mode 2755", ("torch/bin/sh", stat.S_IFREG | 0o2755))

    def test_sticky(self):
        self.found("mode", "mode 1777", ("torch/tmp/", stat.S_IFDIR | 0o1777))

    def test_parent(self):
        self.found("zip", "unsafe name", ("../../etc/cron.d/x", stat.S_IFREG | 0o644))

    def test_absolute(self):
        self.found("zip", "unsafe name", ("/etc/cron.d/x", stat.S_IFREG | 0o644))

    def test_backslash(self):
        self.found("zip", "backslash", ("torch\\..\\..\\x.py", stat.S_IFREG | 0o644))

    def test_link(self):
        self.found("zip", "symbolic link", ("torch/lib", stat.S_IFLNK | 0o777))

    def test_fifo(self):
        self.found("zip", "file type that its name contradicts", ("torch/pipe", stat.S_IFIFO | 0o644))

    def test_device(self):
        self.found("zip", "file type that its name contradicts", ("torch/null", stat.S_IFCHR | 0o666))

    def test_twice(self):
        with self.assertWarns(UserWarning):
            self.found("zip", "occurs twice", ("torch/x.py", stat.S_IFREG | 0o644), ("torch/x.py", stat.S_IFREG | 0o644))

    def test_case_alone(self):
        self.found("name", "is the same as", ("torch/x.py", stat.S_IFREG | 0o644), ("torch/X.py", stat.S_IFREG | 0o644), level="warning")

    def test_hidden_characters(self):
        self.found("name", "not seen", ("torch/\u202eyp.x", stat.S_IFREG | 0o644))

    def test_too_long(self):
        self.found("name", "longer than 255 bytes", ("torch/" + "x" * 256, stat.S_IFREG | 0o644))

    def test_control_characters(self):
        self.found("zip", "control bytes", ("torch/\033[2J", stat.S_IFREG | 0o644))


class Provenance(Case):
    TYPE = b"application/vnd.in-toto+json"

    def setUp(self):
        super().setUp()
        self.key, self.public = self.path("key"), self.path("key.pub")
        subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", self.key], check=True)
        subprocess.run(["openssl", "pkey", "-in", self.key, "-pubout", "-out", self.public], check=True)
        self.wheel = self.path("a-1-py3-none-any.whl")
        with zipfile.ZipFile(self.wheel, "w") as z:
            z.writestr("a.py", "")
        self.sha256 = subprocess.run(["sha256sum", self.wheel], check=True, stdout=subprocess.PIPE, text=True).stdout.split()[0]

    def statement(self):
        return {
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{"name": "a-1-py3-none-any.whl", "digest": {"sha256": self.sha256}}],
            "predicateType": "https://slsa.dev/provenance/v1",
            "predicate": {"buildDefinition": {"buildType": "urn:x-ptbuild:wheel-build:1"}},
        }

    def says(self, statement, words, beside=None):
        """The key signs the statement. `words` None: it is believed."""
        payload = json.dumps(statement).encode()
        with open(self.path("pae"), "wb") as file:
            file.write(b"DSSEv1 %d %s %d %s" % (len(self.TYPE), self.TYPE, len(payload), payload))
        subprocess.run(["openssl", "pkeyutl", "-sign", "-inkey", self.key, "-rawin", "-in", self.path("pae"), "-out", self.path("sig")], check=True)
        with open(self.path("sig"), "rb") as file:
            signature = base64.b64encode(file.read()).decode()
        self.path("a-1-py3-none-any.whl.dsse.json", json.dumps({"payload": base64.b64encode(payload).decode(), "payloadType": self.TYPE.decode(), "signatures": [{"keyid": "k", "sig": signature}]}))
        if beside is not None:
            self.path("a-1-py3-none-any.whl.intoto.json", json.dumps(beside))
        _, text = run("verify", "--ci", "--key", self.public, self.wheel)
        if words is None:
            self.assertIn("1 of 1 wheel failed verification", text) # it is no real wheel, but its signature holds
        else:
            self.assertRegex(text, "(?m)^ptbuild: error: .*" + re.escape(words))

    def test_a_good_one_is_believed(self):
        self.says(self.statement(), None)
        self.says(self.statement(), None, beside=self.statement())

    def test_a_failed_test(self):
        s = self.statement()
        s["predicateType"] = "https://in-toto.io/attestation/test-result/v0.1"
        s["predicate"]["result"] = "FAILED"
        self.says(s, "not about how the wheel was built")

    def test_a_failed_verification(self):
        s = self.statement()
        s["predicateType"] = "https://slsa.dev/verification_summary/v1"
        s["predicate"]["verificationResult"] = "FAILED"
        self.says(s, "not about how the wheel was built")

    def test_no_kind(self):
        s = self.statement()
        del s["predicateType"]
        self.says(s, "not about how the wheel was built")

    def test_another_builder(self):
        s = self.statement()
        s["predicate"]["buildDefinition"]["buildType"] = "urn:x-other:1"
        self.says(s, "not of a build by ptbuild")

    def test_a_digest_that_contradicts(self):
        s = self.statement()
        s["subject"][0]["digest"]["sha512"] = "00" * 64
        self.says(s, "other digests than sha256")

    def test_a_second_file(self):
        s = self.statement()
        s["subject"].append({"name": "a-1-py3-none-any.whl", "digest": {"sha256": "00" * 32}})
        self.says(s, "several files")

    def test_another_wheel(self):
        s = self.statement()
        s["subject"][0]["digest"]["sha256"] = "00" * 32
        self.says(s, "is about another wheel")

    def test_another_kind_of_document(self):
        s = self.statement()
        s["_type"] = "https://in-toto.io/Statement/v0.1"
        self.says(s, "not an in-toto statement about a file")

    def test_the_unsigned_file_says_something_else(self):
        other = self.statement()
        other["predicate"]["buildDefinition"]["externalParameters"] = {"variant": "another"}
        self.says(self.statement(), "has signed", beside=other)

    def test_a_password_in_the_arguments_is_warned_of(self):
        with_password = ("build", "pytorch-python313-cpu-avx2", "--offline", "--cache", self.path("s"), "--ccache-remote", "redis://me:secret@127.0.0.1:1")
        _, text = run(*with_password)
        self.assertIn("others on this machine can read the password in --ccache-remote", text)
        self.assertNotIn("secret", text)
        _, text = run(*with_password[:-2], env={**os.environ, "PTBUILD_CCACHE_REMOTE": with_password[-1]})
        self.assertNotIn("can read the password", text)
        self.assertNotIn("secret", text)


if __name__ == "__main__":
    unittest.main()
