"""scripts/fit_operation_rates.py: what it fits to one device holds on another, and the table has what it fits."""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import fit_operation_rates as fit  # noqa: E402


def rows_of(device, operation, arithmetic):
    return [row for row in fit.read_ours(ROOT / "traces" / "operations")
            if row["key"] == (operation, arithmetic) and row["device"] == device]


class OperationRatesTest(unittest.TestCase):
    def test_products_of_an_h200_follow_from_those_of_an_h100(self):
        for arithmetic in ("fp32", "tf32"):
            rates = fit.fit(rows_of("h100-sxm5-80gb", "product", arithmetic))
            self.assertLess(fit.error(rates, rows_of("h200-sxm5-141gb", "product", arithmetic)), 0.15, arithmetic)

    def test_the_table_is_what_it_fits(self):
        lines = fit.TABLE.read_text().splitlines()
        for arithmetic in ("fp32", "fp64", "tf32"):
            both = rows_of("h100-sxm5-80gb", "product", arithmetic) + rows_of("h200-sxm5-141gb", "product", arithmetic)
            found = [line for line in lines if line.startswith(f"RATE(product, {arithmetic}, hopper, ")]
            self.assertEqual(len(found), 1)
            numbers = [float(x) for x in found[0].split(", ")[3:6]]
            for fitted, written in zip(fit.fit(both), numbers):
                self.assertAlmostEqual(fitted / written, 1, delta=0.05, msg=arithmetic)

    def test_devices_belong_to_the_family_that_their_names_begin_with(self):
        self.assertEqual(fit.family_of("gb200"), "blackwell")
        self.assertEqual(fit.family_of("rtx-6000-ada"), "ada")
        self.assertEqual(fit.family_of("rtx-a6000"), "ampere")
        self.assertEqual(fit.family_of("v100-sxm2-32gb"), "")


if __name__ == "__main__":
    unittest.main()
