"""Processes that tests start: waiting for events, and the signals that a process inherits."""

import signal
import time

PATIENCE = 600  # clock: seconds after which a process or a condition hangs. None takes a tenth of it on an idle machine.


def wait_until(has_happened, what="the event", every=0.002):
    end = time.monotonic() + PATIENCE  # clock: of PATIENCE
    while not has_happened():
        if time.monotonic() > end:  # clock: of PATIENCE
            raise AssertionError(f"waited {PATIENCE} s for {what}")
        time.sleep(every)  # clock: between two looks


def no_signal_ignored():
    """The preexec_fn of a process that is to be stopped: a shell in the background, or nohup, makes its children ignore signals."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
