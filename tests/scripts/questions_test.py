"""Questions of people at a shell: each is answered, or its message leads to the answer in one further try, and the answer has the
numbers that are computed from the raw recording. FORETRACE names the program. --write writes the transcript anew."""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.dont_write_bytecode = True

import questions  # noqa: E402

FORETRACE = os.environ.get("FORETRACE", "")
TRANSCRIPT = pathlib.Path(__file__).with_name("questions.txt")
LISTS = {"A new user": questions.NEW_USER, "Users of similar tools": questions.USERS, "A buyer": questions.BUYER}
LEAST_ANSWERED = 38    # of the first forty
LEAST_OF_BUYERS = 10
TOLERANCE = 0.005      # of a number, besides the half of its last shown digit
NUMBER = r"([-+]?[\d,]*\.?\d+(?: (?:ns|us|ms|s|min|h|days|B|kB|MB|GB|TB|%|USD|Wh|kWh|MWh)(?!\w))?)"
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "min": 60, "h": 3600, "days": 86400, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
         "kWh": 1e3, "MWh": 1e6}


def value(text):
    """A number with its unit, and the half of its last shown digit."""
    number, _, unit = text.replace(",", "").partition(" ")
    factor = UNITS.get(unit, 1)
    return float(number) * factor, factor / 2 / 10 ** len(number.partition(".")[2])


def agrees(text, expected):
    found, half = value(text)
    low, high = expected if isinstance(expected, tuple) else (expected * (1 - TOLERANCE), expected * (1 + TOLERANCE))
    return low - half <= found <= high + half


class Shell:
    """A folder with the files of the questions, and the program."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        questions.write_inputs(self.folder.name)
        self.ask(f"check {questions.WORKERS} --baseline baseline.json --bless")

    def ask(self, command):
        words = [os.path.abspath(FORETRACE), *shlex.split(command)]
        done = subprocess.run(words, cwd=self.folder.name, capture_output=True, text=True,
                              env={**os.environ, "XDG_CACHE_HOME": self.folder.name + "/cache"})
        return done.returncode, " ".join(done.stdout.split()), done.stderr.strip()


def failure_of(asked, shell):
    """Why a question is not answered, or an empty text; and the parts of the answer that were looked at."""
    code, out, error = shell.ask(asked.first)
    if asked.further and not asked.led:    # One question in two commands.
        code, more, error = shell.ask(asked.further)
        out += " " + more
    elif asked.further:
        if code != 2 or asked.led not in error:
            return f"the first try does not lead to {asked.led!r}: [{code}] {error}", []
        code, out, error = shell.ask(asked.further)
    elif asked.led:
        return ("" if code == 2 and asked.led in error else f"[{code}] {error}"), []
    if code not in asked.codes or not out:
        return f"[{code}] {error}", []
    parts = []
    for pattern, expected in asked.answer:
        found = re.search(pattern.replace("#", NUMBER), out)
        if not found:
            return f"there is no {pattern!r} in {out[:2000]}", parts
        parts.append(found[0])
        if callable(expected):
            expected = expected(*(value(group)[0] for group in found.groups()))
        if len(found.groups()) < len(expected) or not all(map(agrees, found.groups(), expected)):
            return f"{pattern!r}: found {found[0]!r}, expected {expected}", parts
    return "", parts


def transcript(asked, parts):
    tries = [f"    $ foretrace {command}\n" for command in (asked.first, asked.further) if command]
    return asked.words + "\n" + "".join(tries) + "".join(f"    {part}\n" for part in parts)


@unittest.skipUnless(FORETRACE, "needs FORETRACE")
class Questions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shell = Shell()

    @classmethod
    def tearDownClass(cls):
        cls.shell.folder.cleanup()

    def failures(self, asked):
        return {one.words or one.first: why for one in asked if (why := failure_of(one, self.shell)[0])}

    def check(self, asked, number, least):
        failures = self.failures(asked)
        at_once = sum(not one.further for one in asked if one.words not in failures)
        print(f"{len(asked) - len(failures)} of {len(asked)} answered, {at_once} of them at once")
        for words, why in failures.items():
            print(f"  {words} {why}")
        self.assertEqual(len(asked), number)
        self.assertGreaterEqual(len(asked) - len(failures), least)

    def test_new_users_and_users_of_similar_tools(self):
        self.check(questions.NEW_USER + questions.USERS, 40, LEAST_ANSWERED)

    def test_buyers(self):
        self.check(questions.BUYER, 10, LEAST_OF_BUYERS)

    def test_words_lead_to_an_answer(self):
        self.assertEqual(self.failures(questions.WORDS), {})

    def test_the_transcript_is_that_of_today(self):
        found = "\n".join(f"{title}\n\n" + "\n".join(transcript(one, failure_of(one, self.shell)[1]) for one in asked)
                          for title, asked in LISTS.items())
        if "--write" in sys.argv:
            TRANSCRIPT.write_text(found)
        self.assertEqual(found, TRANSCRIPT.read_text(), "questions_test.py --write writes it anew")


if __name__ == "__main__":
    unittest.main(argv=[word for word in sys.argv if word != "--write"])
