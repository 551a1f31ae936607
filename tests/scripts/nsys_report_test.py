"""A report of Nsight Systems is exported by nsys, a stand-in here, where that is allowed, and refused by name elsewhere."""

import json
import os
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FORETRACE = os.environ.get("FORETRACE")
SAMPLE = os.path.join(ROOT, "traces", "gpt-a100-launch-bound.pt.trace.json.gz")
# Writes its arguments, then does what the test asks for.
NSYS = """#!/bin/sh
printf '%s\\n' "$@" > "$CALLS"
while [ "$1" != --output ]; do shift; done
[ -n "$FAILS" ] && { echo "Processing"; echo "$FAILS" >&2; exit 3; }
[ -n "$SILENT" ] && exit 0
[ -n "$ENDLESS" ] && { while :; do cat "$DATABASE"; done >> "$2"; }
cp "$DATABASE" "$2"
"""


class NsysReport(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        for name in ("bin", "tmp", "job"):
            os.mkdir(self.path(name))
        self.report = self.path("job", "-a report's.nsys-rep")
        with open(self.report, "w", encoding="utf-8") as file:
            file.write("NVTX report")
        with open(self.path("bin", "nsys"), "w", encoding="utf-8") as file:
            file.write(NSYS)
        os.chmod(self.path("bin", "nsys"), 0o755)
        self.environment = {"PATH": self.path("bin") + ":/usr/bin:/bin", "TMPDIR": self.path("tmp"), "HOME": self.path(),
                            "CALLS": self.path("calls"), "DATABASE": self.path("report.sqlite")}
        subprocess.run([FORETRACE, "convert", SAMPLE, self.path("report.sqlite")], check=True, capture_output=True)

    def path(self, *names):
        return os.path.join(self.folder.name, *names)

    def run_program(self, *arguments, text=None, **changes):
        done = subprocess.run([FORETRACE, *arguments], capture_output=True, text=True, check=False, input=text,
                              env=self.environment | changes, cwd=self.path("job"))
        self.assertEqual(os.listdir(self.path("tmp")), [], "nothing stays behind")
        return done

    def called(self):
        return os.path.exists(self.path("calls"))

    def test_its_database_is_read(self):
        for command in ("info", "predict", "doctor"):
            done = self.run_program(command, "--", "-a report's.nsys-rep")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("report.sqlite", done.stdout)
        with open(self.path("calls"), encoding="utf-8") as file:
            words = file.read().splitlines()
        self.assertEqual(words[:5], ["export", "--type", "sqlite", "--force-overwrite", "true"])
        self.assertEqual(words[-1], os.path.realpath(self.report))
        answers = [json.loads(self.run_program("predict", "--with", "amp", "--format", "json", path).stdout)
                   for path in (self.report, self.path("report.sqlite"))]
        self.assertEqual(answers[0]["predicted"], answers[1]["predicted"])
        self.assertEqual(answers[0]["inputs"][0]["path"], self.report)

    def test_what_nsys_says_is_the_error(self):
        done = self.run_program("info", self.report, FAILS="The report was made by a later version.")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("report's.nsys-rep: cannot be exported by", done.stderr)
        self.assertIn("The report was made by a later version.", done.stderr)
        self.assertIn("it wrote no database", self.run_program("info", self.report, SILENT="1").stderr)

    def test_errors_of_the_database_name_the_report(self):
        done = self.run_program("info", self.report, DATABASE="/dev/null")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("report's.nsys-rep: ", done.stderr)
        self.assertNotIn("report.sqlite", done.stderr)

    def test_it_writes_no_more_than_the_limit(self):
        done = self.run_program("info", "--max-unpacked", "64MB", self.report, ENDLESS="1")
        self.assertIn("it writes more than 64 MB (--max-unpacked)", done.stderr)

    def test_no_program_runs_where_none_may(self):
        refused = "an Nsight Systems report; export it first: nsys export --type sqlite"
        self.assertIn(refused, self.run_program("info", "--no-run", self.report).stderr)
        self.assertIn(refused, self.run_program("info", self.report, PATH="bin:/usr/bin:/bin").stderr)
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": "info", "arguments": {"trace": "-a report's.nsys-rep"}}}
        answer = self.run_program("mcp", "--root", self.path("job"), text=json.dumps(call) + "\n").stdout
        self.assertIn("Nsight Systems report", answer)
        self.assertFalse(self.called())


if __name__ == "__main__":
    unittest.main()
