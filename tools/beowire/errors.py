# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The error that a person is meant to read.

Every failure that a user can fix is a `BeowireError`: what happened, and what to do about it.
Anything else that escapes is a defect of the program and keeps its traceback.
"""


class BeowireError(Exception):
    """A failure with its fix.

    `what` states what went wrong in one sentence; `fix` names the command or change that helps
    and is empty when nothing can be done; `code` is the exit status of the command.
    """

    def __init__(self, what: str, fix: str = "", code: int = 1) -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix
        self.code = code

    def __str__(self) -> str:
        return f"{self.what}\n  {self.fix}" if self.fix else self.what
