"""What a notebook shows of an error: the lines of the user's that led to it.

Owns which frames are left out. The one idea: an error raised on purpose says all that is to be
known in one line, which forty lines of the package's inside push off the screen.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from nbdurable.shells import shell

LEFT_OUT = "(what happened inside nbdurable is left out; %xmode Verbose, then %tb, shows it)"

_INSIDE = str(Path(__file__).parent) + os.sep
_USUAL = "Context"  # IPython's mode as long as nobody has asked for another


def lines_of(error: BaseException) -> list[str]:
    """Return an error's traceback in pieces, as IPython prints it.

    It ends where the package was called, unless ``%xmode`` asked for another form.
    """
    running: Any = shell()
    if running is None:
        return traceback.format_exception(error)
    whole, form = error.__traceback__, running.InteractiveTB
    outside = _outside(whole) if form.mode == _USUAL else None
    if outside is None:
        return list(form.structured_traceback(type(error), error, whole))
    lines = list(form.structured_traceback(type(error), error, outside))
    return [*lines[:-1], LEFT_OUT, *lines[-1:]]


def _outside(whole: TracebackType | None) -> TracebackType | None:
    """Return the frames before the first of the package; None where there is nothing to leave."""
    frames = list(_frames(whole))
    count = next((at for at, each in enumerate(frames) if _is_inside(each)), 0)
    kept: TracebackType | None = None
    for each in reversed(frames[:count]):
        kept = TracebackType(kept, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return kept


def _frames(whole: TracebackType | None) -> Iterator[TracebackType]:
    while whole is not None:
        yield whole
        whole = whole.tb_next


def _is_inside(each: TracebackType) -> bool:
    return each.tb_frame.f_code.co_filename.startswith(_INSIDE)
