"""No command replaces a file that it reads by its output, whatever the path."""

import pathlib
import tempfile
import unittest

import attacked
import written


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and "cache" not in path.parts}


class NoInputIsWritten(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.place.name)
        written.make_inputs(cls.folder)
        cls.outputs = written.outputs_in_help()

    @classmethod
    def tearDownClass(cls):
        cls.place.cleanup()

    def refused(self, arguments, *names):
        """Expects exit code 2, one line that names both paths, and no changed byte."""
        before = contents(self.folder)
        done = attacked.run(*arguments, cwd=self.folder, env=written.environment(self.folder))
        with self.subTest(" ".join(map(str, arguments))):
            self.assertEqual(before, contents(self.folder))
            self.assertEqual(2, done.returncode, done.stderr)
            self.assertEqual(1, done.stderr.count(b"\n"), done.stderr)
            for name in (b"must not be", *(str(name).encode() for name in names)):
                self.assertIn(name, done.stderr)

    def names_of(self, name):
        """The paths of a file: its name, a longer path, a symbolic and a hard link, a link to a link."""
        yield name
        yield f"./ranks/../{name}"
        for way in ("symbolic", "hard", "twice"):
            link = self.folder / f"{way}.{name.split('.', 1)[1]}"
            link.unlink(missing_ok=True)
            if way == "hard":
                link.hardlink_to(self.folder / name)
            else:
                link.symlink_to("symbolic." + name.split(".", 1)[1] if way == "twice" else name)
            yield link.name
        for way in ("symbolic", "hard", "twice"):
            (self.folder / f"{way}.{name.split('.', 1)[1]}").unlink()

    def test_every_command_with_an_output_is_known(self):
        self.assertEqual(sorted(written.INPUTS), sorted(self.outputs))

    def test_every_output_against_every_input(self):
        for command, outputs in self.outputs.items():
            for inputs in (written.INPUTS.get(command, {}), written.MORE_INPUTS.get(command, {})):
                for output in outputs:
                    for name in dict.fromkeys(inputs.values()):
                        for path in self.names_of(name):
                            self.refused(written.command_line(command, inputs, output, path), output, path)

    def test_no_two_outputs_are_one_file(self):
        for command, outputs in self.outputs.items():
            inputs = written.INPUTS.get(command, {})
            for output in outputs[1:]:
                arguments = written.command_line(command, inputs, outputs[0], "new.html")
                self.refused([*arguments, output, "./new.html"], outputs[0], output)

    def test_links_to_one_file_that_is_not_there_yet(self):
        (self.folder / "to-new").symlink_to("new.html")
        self.refused(["predict", "trace.json", "--html", "new.html", "-o", "to-new"], "to-new", "new.html")
        (self.folder / "to-new").unlink()

    def test_a_new_baseline_takes_only_the_place_of_the_old(self):
        self.refused(["check", "trace.json", "--baseline", "trace.json", "--bless"], "--baseline", "trace.json")
        self.refused(["check", "trace.json", "--baseline", "x.json", "--bless", "--scenario", "scenario.json", "-o", "x.json"], "--baseline")
        self.refused(["check", "trace.json", "--baseline", "base.json", "--bless", "--scenario", "scenario.json"], "base.json")
        done = attacked.run("check", "trace.json", "--baseline", "baseline.json", "--bless", "--no-cache", cwd=self.folder)
        self.assertEqual(0, done.returncode, done.stderr)

    def test_ranks_in_a_folder(self):
        for option in ("-o", "--html", "--perfetto"):
            self.refused(["predict", "ranks", option, "ranks/rank1.json"], "ranks/rank1.json")
            self.refused(["predict", ".", option, "ranks/rank1.json"], "ranks/rank1.json")
        done = attacked.run("info", "ranks", "-o", "ranks/said.txt", "--no-cache", cwd=self.folder)
        self.assertEqual(0, done.returncode, done.stderr)
        done = attacked.run("info", "ranks", "-o", "ranks/said.txt", "--no-cache", cwd=self.folder)
        self.assertEqual(0, done.returncode, done.stderr)
        (self.folder / "ranks" / "said.txt").unlink()

    def test_traces_are_not_written_where_they_are_read(self):
        for command in ("convert", "anonymize"):
            for out in ("ranks", "ranks/", "./ranks/../ranks", "ranks/rank*.json", "ranks/new*.ftrace", "ranks/all.ftrace"):
                to = ["--to", "kineto"] if "." not in out.rsplit("/", 1)[-1] else []
                self.refused([command, "ranks", out, *to], "OUT", out)
            self.refused([command, "ranks.tar", "ranks.tar", "--to", "kineto"], "ranks.tar")
            self.refused([command, "ranks/rank0.json", "ranks/", "--to", ".json"], "rank0.json")
            self.refused([command, "ranks/rank0.json", "ranks/rank*.json"], "rank0.json")

    def test_the_archive_of_a_member(self):
        for option in ("-o", "--html", "--perfetto"):
            self.refused(["predict", "ranks.tar:rank0.json", option, "ranks.tar"], "ranks.tar")

    def test_what_a_setting_names(self):
        self.refused(["predict", "trace.json", "--with", "faster_device:to=machine.json", "-o", "machine.json"], "machine.json")

    def test_scenarios_that_look_like_traces(self):
        scenario = '{"version": 1, "$comment": "traceEvents", "trace": "trace.json", "transforms": [{"use": "scale", "factor": 0.5}]}'
        path = self.folder / "asked.json"
        for text in (scenario, "\ufeff" + scenario):
            path.write_text(text)
            for option in ("-o", "--html"):
                self.refused(["predict", "--scenario", "asked.json", option, "trace.json"], option, "trace.json")
        path.unlink()

    def test_the_summary_of_a_step(self):
        environment = written.environment(self.folder)
        before = contents(self.folder)
        done = attacked.run("check", "trace.json", "--baseline", "base.json", "--github", cwd=self.folder,
                            env={**environment, "GITHUB_STEP_SUMMARY": "trace.json"})
        self.assertEqual(before, contents(self.folder))
        self.assertEqual(2, done.returncode, done.stderr)
        self.assertIn(b"GITHUB_STEP_SUMMARY: must not be", done.stderr)

    def test_what_is_no_input_may_be_written(self):
        for path in ("text", "amp", "other.json", "/dev/null"):
            with self.subTest(path):
                done = attacked.run("predict", "trace.json", "--with", "amp", "--format", "text", "-o", path, "--no-cache", cwd=self.folder)
                self.assertEqual(0, done.returncode, done.stderr)


if __name__ == "__main__":
    unittest.main()
