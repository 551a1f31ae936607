"""Questions that agents ask through `foretrace mcp`: each is answered by at most three calls, with the number that is computed here
from the raw recording. FORETRACE names the program, FORETRACE_CORPUS a folder with more recordings."""

import os
import pathlib
import sys
import tempfile
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).parents[1] / "scripts")]
sys.dont_write_bytecode = True

import families  # noqa: E402
import four_ranks  # noqa: E402
import inspector_logs  # noqa: E402
from asking import Agent, Refused  # noqa: E402
from raw_recording import Raw  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
FORETRACE = os.environ.get("FORETRACE", "")
CORPUS = os.environ.get("FORETRACE_CORPUS", "")
SAMPLES = ("gpt-a100-gpu-bound", "gpt-a100-launch-bound", "resnet18-v100-loader0", "input-bound-v100")
OTHERS = ("dev-pair-h100-mi300/bertsmall_h100.json.gz", "dev-pair-h100-mi300/bertsmall_mi300.json.gz", "nanogpt-8rank/rank0.json.gz",
          "hta-small/benchmark_result_2869224_1695835535_trace.json.gz")
MOST_CALLS = 3


def named(tool, name):
    """The arguments that name a recording."""
    return {"against": name} if tool == "collective" else {"trace": name, "no_cache": True}


def agrees(found, expected, tolerance):
    if isinstance(expected, str):
        return found == expected
    return found is not None and abs(found - expected) <= tolerance * abs(expected) + 1e-9


@unittest.skipUnless(FORETRACE, "needs FORETRACE")
class Agents(unittest.TestCase):
    def ask(self, path, asked_families, raw):
        """Asks all that apply. Returns how many, and what is wrong."""
        agent = Agent(FORETRACE, str(path.parent))
        asked = []
        for family in asked_families:
            expected = family.expected(raw)
            if expected is None:
                continue
            calls = [(tool, {**named(tool, path.name), **arguments}) for tool, arguments in family.calls]
            self.assertLessEqual(len(calls), MOST_CALLS)
            agent.plan(calls)
            asked.append((family, calls, expected))
        agent.ask()
        wrong = [f"{path.name}: {one}" for one in agent.against_schema]
        for family, calls, expected in asked:
            try:
                found = family.found(*map(agent.answer, calls))
            except (Refused, KeyError, IndexError, TypeError) as error:
                found = repr(error)
            if isinstance(found, str) != isinstance(expected, str) or not agrees(found, expected, family.tolerance):
                wrong.append(f"{path.name}: {family.words} found {found}, expected {expected}")
        return len(asked), wrong

    def check(self, paths, least):
        self.check_all(((path, families.FAMILIES, Raw(path)) for path in paths), least)

    def check_all(self, recordings, least):
        asked, wrong = 0, []
        for recording in recordings:
            count, failed = self.ask(*recording)
            asked, wrong = asked + count, wrong + failed
        print(f"{asked - len(wrong)} of {asked} answered")
        self.assertEqual(wrong, [], "\n".join(["", *wrong]))
        self.assertGreaterEqual(asked, least)

    def test_samples(self):
        self.check([ROOT / "traces" / f"{name}.pt.trace.json.gz" for name in SAMPLES], 100)

    def test_a_job_of_four_ranks(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name) / "ranks"
            four_ranks.write(folder)
            self.check_all([(folder, families.job_families(four_ranks), None)], 13)

    def test_logs_of_nccl_inspector(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name) / "logs"
            inspector_logs.write(folder, 16, 20)
            rows = inspector_logs.table_of(one for rank in inspector_logs.logs(16, 20) for one in rank)
            self.check_all([(folder, families.log_families({key: row for key, row in rows.items() if key[1] == "world"}), None)], 12)

    @unittest.skipUnless(CORPUS, "needs FORETRACE_CORPUS")
    def test_recordings_of_others(self):
        self.check([pathlib.Path(CORPUS) / name for name in OTHERS], 80)


if __name__ == "__main__":
    unittest.main()
