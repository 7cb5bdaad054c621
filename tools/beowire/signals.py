# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Signals that end a command: held back where a step must not be cut in two, never lost."""

import _thread
import contextlib
import signal
import sys
import threading
import time
from collections.abc import Iterator

ENDING = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
"""What a user or a system sends to end a command."""

_AGAIN_S = 0.01


@contextlib.contextmanager
def uninterrupted() -> Iterator[set[signal.Signals | int]]:
    """Holds back Ctrl-C and termination, for steps that must not be cut in two. What was held back
    before is told.

    Python raises KeyboardInterrupt between any two instructions, inside the standard library's
    locks too, which then stay taken; so whoever starts threads or forks does it in here.
    """
    old = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
        yield old
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)


def release(mask: set[signal.Signals | int]) -> None:
    """In a forked child, as the last step before exec, or instead of it: what was held back acts on
    it as it will after exec. A handler of Python's would raise instead, in the middle of Popen."""
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def check_interrupted() -> None:
    """A point at which a long `uninterrupted` step may end: raises what was held back."""
    received = signal.sigtimedwait(ENDING, 0)
    if received is None:
        return
    if received.si_signo == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + received.si_signo)


def never_lose_an_interruption() -> None:
    """For the main thread, once: a Ctrl-C whose KeyboardInterrupt was thrown away strikes again.

    Python does so wherever nobody could catch one: in functions that run at a fork, at the end of
    an object's life, and in weak references. It would only print that it ignored it.
    """
    main_thread = threading.get_ident()
    report = sys.unraisablehook

    def again() -> None:
        time.sleep(_AGAIN_S)
        signal.pthread_kill(main_thread, signal.SIGINT)

    def unraisable(lost: "sys.UnraisableHookArgs") -> None:
        if lost.exc_type is not KeyboardInterrupt:
            report(lost)
            return
        # Here it would be thrown away as well. The plain thread takes no lock of `threading`,
        # in whose midst this may be.
        _thread.start_new_thread(again, ())

    sys.unraisablehook = unraisable
