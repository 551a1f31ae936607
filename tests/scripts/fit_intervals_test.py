"""scripts/fit_intervals.py: its deviations leave a tenth outside, by source, and the program has what it finds."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import fit_intervals as fit  # noqa: E402


def source(errors, other=0.0):
    return [(error, other) for error in errors]


class FitIntervalsTest(unittest.TestCase):
    def test_a_tenth_is_outside_on_each_side(self):
        errors = [i / 100 for i in range(-50, 101)]
        sides = fit.deviation([source(errors)], -1), fit.deviation([source(errors)], 1)
        self.assertAlmostEqual(sides[0] * fit.HALF_WIDTH, .35, delta=.011)
        self.assertAlmostEqual(sides[1] * fit.HALF_WIDTH, .85, delta=.011)
        self.assertAlmostEqual(fit.inside(source(errors), *sides), .8, delta=.02)

    def test_each_source_counts_once(self):
        near, far = source([.1] * 8 + [.2] * 2), source([.5] * 10)
        found = fit.deviation([near * 100] + [near] * 4 + [far], 1)
        self.assertAlmostEqual(found, fit.deviation([near] * 5 + [far], 1), delta=1e-6)

    def test_other_doubt_makes_the_deviation_less(self):
        errors = [i / 100 for i in range(100)]
        self.assertLess(fit.deviation([source(errors, .1)], 1), fit.deviation([source(errors)], 1))

    def test_the_constants_are_read_from_the_source(self):
        self.assertGreater(fit.constant("kSlower"), fit.constant("kFaster"))


if __name__ == "__main__":
    unittest.main()
