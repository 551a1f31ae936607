#!/usr/bin/env python3
"""From an empty repository to a red pull request that names the file and the line: the commands of docs/ci.md, and the steps of the
workflow for GitHub run as its runner runs them. A program that replays recordings stands in for the training."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    import yaml
except ImportError:
    yaml = None

ROOT = pathlib.Path(__file__).resolve().parents[2]
CI = ROOT / "scenarios" / "ci"
MANUAL = ROOT / "docs" / "ci.md"
BUILD = pathlib.Path(os.environ["FORETRACE"]).resolve().parent
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from planted_regressions import new_syncs_in_forward

# Stands in for `foretrace collect -- python train.py`, which needs a GPU.
TRAIN = "import subprocess\nWAITS = False\nsubprocess.run(['foretrace', 'convert', RECORDINGS[WAITS], 'run.ftrace', '--quiet'], check=True)\n"
RECORD = "foretrace collect -o run.ftrace --steps 5-15 -- python train.py"
COMMENTS = "#!/bin/sh\ncase \"$*\" in *--paginate*) echo \"$KNOWN\" ;; *) echo \"$*\" >> \"$POSTED\" ;; esac\n"


def shell(command, folder, **environment):
    done = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", command], cwd=folder, capture_output=True, text=True, check=False,
                          env={**os.environ, **environment})
    return done.returncode, done.stdout + done.stderr


@unittest.skipUnless(yaml, "needs the yaml module")
class FirstGate(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.home = pathlib.Path(temporary.name)
        self.repository = self.home / "project"
        self.release = self.home / "foretrace.tar.gz"
        recordings = [self.home / "quick.pt.trace.json.gz", self.home / "slow.pt.trace.json.gz"]
        for recording, path in zip(new_syncs_in_forward(), recordings):
            recording.retime()
            recording.write(path)
        self.train = TRAIN.replace("RECORDINGS", repr([str(path) for path in recordings]))
        parts = self.home / "release"
        subprocess.run(["cmake", "--install", BUILD, "--prefix", parts / "foretrace", "--component", "program"], check=True, capture_output=True)
        subprocess.run(["tar", "-czf", self.release, "-C", parts, "foretrace/bin"], check=True)

    def do(self, command):
        status, printed = shell(command, self.repository, CI=str(CI), GIT_CONFIG_GLOBAL="/dev/null", GIT_AUTHOR_NAME="a",
                                GIT_AUTHOR_EMAIL="a@b", GIT_COMMITTER_NAME="a", GIT_COMMITTER_EMAIL="a@b")
        self.assertEqual(status, 0, f"{command}\n{printed}")

    def pull_request(self):
        """Runs the steps of the workflow. Returns the exit status of the first that fails, and what they print."""
        workflow = yaml.safe_load((self.repository / ".github" / "workflows" / "foretrace.yml").read_text())
        path = self.home / "path"
        path.write_text("")
        status, printed = 0, ""
        for step in workflow["jobs"]["training-step"]["steps"]:
            folder = self.repository / step.get("uses", "none")
            if not step.get("uses", "./").startswith("./"):
                continue
            steps, given = [step], {}
            if "uses" in step:
                action = yaml.safe_load((folder / "action.yml").read_text())
                given = {name: one.get("default", "") for name, one in action["inputs"].items()}
                given |= {name: str(value).lower() if isinstance(value, bool) else value for name, value in step["with"].items()}
                steps = [one for one in action["runs"]["steps"] if "run" in one and "if" not in one]
            for one in steps:
                filled = {name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda match: given[match[1]], value) for name, value in one.get("env", {}).items()}
                command = one["run"].replace(RECORD, f"{sys.executable} train.py")
                code, said = shell(command, self.repository, **filled, GITHUB_ACTION_PATH=str(folder), GITHUB_PATH=str(path), GITHUB_ACTIONS="true",
                                   GITHUB_OUTPUT=str(self.home / "output"), GITHUB_STEP_SUMMARY=str(self.home / "summary"),
                                   GITHUB_WORKSPACE=str(self.repository), PATH=":".join([*path.read_text().split(), os.environ["PATH"]]))
                status, printed = status or code, printed + said
        return status, printed

    def test_a_pull_request_becomes_red_where_the_line_is(self):
        self.repository.mkdir()
        (self.repository / "train.py").write_text(self.train)
        shutil.copy(self.release, self.repository / "foretrace-0.0.0-linux-none.tar.gz")
        self.do("git init -q -b main . && git add train.py && git commit -qm 'a training'")
        commands = re.findall(r"^    \$ (.*)$", MANUAL.read_text().partition("## From an empty repository")[2].partition("\n## ")[0], re.MULTILINE)
        self.assertGreater(len(commands), 5)
        for command in commands:
            self.do(command.replace(f".foretrace/bin/{RECORD}", f"PATH=$PWD/.foretrace/bin:$PATH {sys.executable} train.py"))
        self.assertLess((self.repository / "ci" / "baseline.json").stat().st_size, 200_000)
        status, printed = self.pull_request()
        self.assertEqual(status, 0, printed)
        self.do("git checkout -qb slower && sed -i 's/WAITS = False/WAITS = True/' train.py && git commit -qam 'waits'")
        status, printed = self.pull_request()
        self.assertEqual(status, 1, printed)
        self.assertIn("::error file=train.py,line=88,", printed)
        self.assertIn("train.py:88", (self.repository / "foretrace.md").read_text())

    def test_a_comment_is_posted_once_and_then_replaced(self):
        stand_in = self.home / "gh"
        stand_in.write_text(COMMENTS)
        stand_in.chmod(0o700)
        (self.home / "answer.md").write_text("slower\n")
        for known, posted in (("", "api repos/a/b/issues/7/comments -F"), ("42", "api --method PATCH repos/a/b/issues/comments/42 -F")):
            (self.home / "posted").write_text("")
            status, printed = shell(f"sh {CI}/action/comment.sh answer.md a/b 7", self.home, PATH=f"{self.home}:{os.environ['PATH']}", KNOWN=known,
                                    POSTED=str(self.home / "posted"))
            self.assertEqual(status, 0, printed)
            self.assertTrue((self.home / "posted").read_text().startswith(posted), (self.home / "posted").read_text())

    def test_another_release_is_not_installed(self):
        for release, checksum, message in ((self.release, "0" * 64, "has another sha256"), (self.home / "none", "", "there is no release file"),
                                           ("https://localhost/x.tar.gz", "", "needs its sha256")):
            status, printed = shell(f"sh {CI}/setup/install.sh {release} '{checksum}' folder", self.home)
            self.assertEqual(status, 2)
            self.assertIn(message, printed)
            self.assertFalse((self.home / "folder").exists())


if __name__ == "__main__":
    unittest.main()
