"""The parts of scripts/ground_truth.py."""
