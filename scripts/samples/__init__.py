"""Simulates training loops and writes what a profiler would have recorded. See scripts/make_samples.py."""
