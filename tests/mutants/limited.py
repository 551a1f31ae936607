"""Runs a program that may hang or use all memory, such as one with a planted bug."""

import os
import selectors
import signal
import subprocess

HANGS = 124  # The exit status timeout(1) has for it.


def run(command, cwd, environment, silence_seconds, most_bytes):
    """(exit status, all output). Ends a program that writes nothing for this long; the status is then HANGS."""
    bounded = ["sh", "-c", f'ulimit -c 0; ulimit -v {most_bytes >> 10}; exec "$@"', "sh"] + command
    with subprocess.Popen(bounded, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, start_new_session=True) as process:
        try:
            written, is_silent = _read(process.stdout, silence_seconds)
        finally:
            _end(process.pid)  # Processes that it started must not outlive it.
        status = process.wait()
    return HANGS if is_silent else status, written.decode(errors="replace")


def _read(pipe, silence_seconds):
    written = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while selector.select(silence_seconds):
            part = os.read(pipe.fileno(), 1 << 16)
            if not part:
                return written, False
            written += part
    return written, True


def _end(group):
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass
