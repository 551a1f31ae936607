"""Where numbers come from: machine, driver, versions, commit."""

import datetime
import functools
import json
import os
import pathlib
import platform
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUERY = ("name", "driver_version", "memory.total", "power.limit", "clocks.max.sm", "clocks.max.memory")
CLOCKS = ("clocks.sm", "clocks.mem", "power.draw", "temperature.gpu")


def said_by(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True, cwd=ROOT)
        return done.stdout.strip() or None
    except (OSError, subprocess.SubprocessError):
        return None


def nvidia_smi(names):
    told = said_by("nvidia-smi", f"--query-gpu={','.join(names)}", "--format=csv,noheader", "--id=0")
    return None if told is None else dict(zip(names, (value.strip() for value in told.split(","))))


def cpu_name():
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


OF_TORCH = """
import json, sys, torch
if not torch.cuda.is_available():
    sys.exit(4)
device = torch.cuda.get_device_properties(0)
print(json.dumps({"gpu": device.name, "gpu_memory_bytes": device.total_memory,
    "multiprocessors": device.multi_processor_count, "compute_capability": f"{device.major}.{device.minor}",
    "torch": torch.__version__, "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version()}))
"""


@functools.lru_cache(maxsize=None)
def look_at_torch():
    """(facts, None), or (None, why nothing can be measured here)."""
    # In a process of its own: the campaign must not hold a context on the device that it measures.
    try:
        done = subprocess.run([sys.executable, "-c", OF_TORCH], capture_output=True, text=True, timeout=180, check=False)
    except subprocess.TimeoutExpired:
        return None, "importing torch took more than three minutes"
    if done.returncode == 4:
        return None, "torch finds no GPU"
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        return None, f"torch cannot be used ({lines[-1] if lines else 'no message'})"
    return json.loads(done.stdout.splitlines()[-1]), None


def of_torch():
    return look_at_torch()[0]


def missing():
    return look_at_torch()[1]


def facts(dry_run, argv):
    found = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
             "command": shlex.join([pathlib.Path(argv[0]).name, *argv[1:]]), "python": platform.python_version(),
             "system": platform.platform(), "cpu": cpu_name(), "cores": len(os.sched_getaffinity(0)),
             "foretrace_commit": os.environ.get("FORETRACE_COMMIT")}
    commit = said_by("git", "rev-parse", "HEAD")  # A copy without history knows only what it is told.
    if commit is not None:
        changed = said_by("git", "status", "--porcelain", "--untracked-files=no")
        found.update(foretrace_commit=commit, foretrace_changed=bool(changed))
    if dry_run:
        return {**found, "played": True}
    return {**found, **of_torch(), "nvidia_smi": nvidia_smi(QUERY), "clocks": nvidia_smi(CLOCKS)}
