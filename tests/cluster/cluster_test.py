#!/usr/bin/env python3
"""Sweeps on a real Slurm of one machine and under a real mpirun give the same bytes as one process, also when a worker is
killed in the middle. Skipped, in part or whole, where there is no Slurm or MPI. $FORETRACE is the program."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import local_slurm
from local_slurm import wait_until

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CLUSTER = ROOT / "scenarios" / "cluster"
PROGRAM = os.environ["FORETRACE"]
TRACE = ROOT / "traces" / "gpt-a100-launch-bound.pt.trace.json.gz"
SHARDS = 8

# Structures that are computed one by one, so that there is time to kill a worker.
SCENARIO = {
    "version": 1,
    "trace": str(TRACE),
    "transforms": [{"use": "scale", "where": {"kind": "kernel"}}, {"use": "prefetch"}, {"use": "scale", "where": {"kind": "host"}}],
    "sweep": {"transforms[0].factor": "0.5..1.5/30", "prefetch.buffers": [1, 2, 3, 4], "transforms[2].factor": [0.5, 1, 2]},
}


MPI = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def no_mpi():
    """The reason why no ranks can be started here, or the empty string."""
    if shutil.which("mpirun") is None:
        return "there is no mpirun (scripts/setup.sh all)"
    ran = subprocess.run(["mpirun", "--oversubscribe", "-n", "2", "true"], env=MPI, capture_output=True, text=True, check=False)
    return None if ran.returncode == 0 else "mpirun does not run here: " + ran.stderr[:200]


def processes(argument):
    """The ids of the running processes that have this argument."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and argument.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            pass  # It has ended.
    return [number for number in found if number != os.getpid()]


class Cluster(unittest.TestCase):
    def setUp(self):
        self.holder = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.holder.name)
        self.folder.chmod(0o755)
        self.scenario = self.folder / "sweep.json"
        self.scenario.write_text(json.dumps(SCENARIO))
        whole = self.folder / "whole.jsonl"
        subprocess.run([PROGRAM, "sweep", str(self.scenario), "--output", str(whole), "--quiet"], check=True, capture_output=True)
        self.expected = whole.read_bytes()
        self.assertGreater(len(self.expected.splitlines()), 300)
        self.results = self.folder / "results.jsonl"

    def tearDown(self):
        self.holder.cleanup()

    def kill_a_worker(self, shards, is_over):
        """Kills a process of the sweep that has written some answers, but not half. Returns whether there was one before `is_over()`."""
        def is_killed(number):
            with contextlib.suppress(OSError):  # It may have ended.
                if not self.is_in_first_half(number, shards):
                    return False
                os.kill(number, signal.SIGSTOP)  # It must not go on while it is looked at.
                is_early = self.is_in_first_half(number, shards)
                os.kill(number, signal.SIGKILL if is_early else signal.SIGCONT)
                return is_early

        killed = []
        wait_until(lambda: is_over() or any(is_killed(number) and not killed.append(number) for number in processes(str(self.results))),
                   "a worker to kill")
        return bool(killed)

    def is_in_first_half(self, number, shards):
        if os.readlink(f"/proc/{number}/exe") != str(pathlib.Path(PROGRAM).resolve()):
            return False
        files = [os.readlink(entry) for entry in pathlib.Path(f"/proc/{number}/fd").iterdir()]
        return any(0 < os.stat(file).st_size < len(self.expected) / shards / 2 for file in files if "results.shard-" in file)

    @unittest.skipIf(local_slurm.missing(), local_slurm.missing())
    def test_a_slurm_array_gives_the_bytes_of_one_process(self):
        with contextlib.ExitStack() as stack:
            try:
                cluster = stack.enter_context(local_slurm.Cluster())
            except OSError as error:
                self.skipTest(f"Slurm's daemons do not run here: {error}")
            environment = {**cluster.environment, "FORETRACE": PROGRAM}
            command = [CLUSTER / "slurm.sh", self.scenario, self.results, SHARDS, f"--output={self.folder}/log-%A-%a"]
            jobs = cluster.call(*command, env=environment, cwd=self.folder)
            self.assertRegex(jobs, r"^\d+ \d+$")
            killed = self.kill_a_worker(SHARDS, self.results.exists)
            cluster.wait_for_jobs()
            logs = "".join(path.read_text() for path in self.folder.glob("log-*"))
            if killed:  # Workers of a fast machine may be done before one can be caught.
                self.assertIn("continuing where it stopped", logs)
            self.assertTrue(self.results.exists(), logs)
            self.assertEqual(self.results.read_bytes(), self.expected)
            self.assertEqual(len(list(self.folder.glob(f"results.shard-*-of-{SHARDS}.jsonl"))), SHARDS)

    @unittest.skipIf(no_mpi(), no_mpi())
    def test_ranks_of_mpi_give_the_bytes_of_one_process(self):
        environment = {**MPI, "FORETRACE": PROGRAM, "MPIRUN": "mpirun --oversubscribe"}
        command = [str(CLUSTER / "mpi.sh"), "4", str(self.scenario), str(self.results)]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as first:
            killed = self.kill_a_worker(4, lambda: first.poll() is not None)
            first.communicate()
        if killed:
            self.assertNotEqual(first.returncode, 0)  # The launcher ends all ranks when one is killed.
            self.assertFalse(self.results.exists())
        again = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(self.results.read_bytes(), self.expected)

    @unittest.skipIf(no_mpi(), no_mpi())
    def test_any_name_and_any_number_of_ranks_will_do(self):
        environment = {**MPI, "FORETRACE": PROGRAM, "MPIRUN": "mpirun --oversubscribe"}
        folder = self.folder / "of v1.2"
        folder.mkdir()
        for ranks, name in (("1", "alone.jsonl"), ("2", "without an ending"), ("2", "a b.jsonl")):
            command = [str(CLUSTER / "mpi.sh"), ranks, str(self.scenario), str(folder / name)]
            run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertEqual((folder / name).read_bytes(), self.expected)


if __name__ == "__main__":
    if local_slurm.missing() and no_mpi():
        print(f"{local_slurm.missing()}; {no_mpi()}")
        sys.exit(77)
    unittest.main()
