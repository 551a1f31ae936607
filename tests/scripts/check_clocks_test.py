"""The check of clocks must be able to fail: each line is allowed in a test or not."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check_clocks.py"
FORBIDDEN = ["std::this_thread::sleep_for(2ms);", "usleep(1000);", "const auto begin = std::chrono::steady_clock::now();",
             "clock_gettime(CLOCK_REALTIME, &time);", "wake.wait_for(lock, std::chrono::seconds(2));", "alarm(10);",
             "time.sleep(0.1)", "began = time.monotonic()", "run(command, timeout=60)", "process.wait(5)", "reader.join(10)",
             "foretrace_run(ask, \"timeout -s KILL 1\");", "gtest_discover_tests(a DISCOVERY_TIMEOUT 60)", "subprocess.run('sleep 5')",
             "usleep(1000);  // clock:"]
ALLOWED = ["clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);", "time.process_time()", "run(command, timeout=PATIENCE)", "process.wait()",
           "usleep(1000);  // clock: the fault that is played", "time.sleep(every)  # clock: between two looks",
           "browser.wait_for(\"document.body\")", "settings.timeout = 200us;", "TIMEOUT ${test_timeout}", "HostKind::python, \"sleep\", 0, 300"]


def violations(name, *lines):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "tests", name)
        path.parent.mkdir(parents=True)
        path.write_text("".join(line + "\n" for line in lines))
        run = subprocess.run([sys.executable, str(SCRIPT), folder], capture_output=True, text=True)
        assert (run.returncode == 1) == bool(run.stdout), run
        return run.stdout.splitlines()


class CheckClocks(unittest.TestCase):
    def test_each_use_of_a_clock_is_found(self):
        found = violations("a/b.cc", *FORBIDDEN)
        self.assertEqual([int(line.split(":")[1]) for line in found], list(range(1, len(FORBIDDEN) + 1)))
        self.assertTrue(found[0].startswith("tests/a/b.cc:1: \"sleep_for(\" depends on real time: "), found[0])

    def test_events_work_and_reasons_are_allowed(self):
        self.assertEqual(violations("a/b.py", *ALLOWED), [])

    def test_benchmarks_measure_time(self):
        self.assertEqual(violations("bench/b.cc", *FORBIDDEN), [])


if __name__ == "__main__":
    unittest.main()
