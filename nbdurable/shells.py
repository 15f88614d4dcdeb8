"""IPython's shell, where there is one; asked for by whatever behaves otherwise in a notebook."""

from __future__ import annotations

import sys


def shell() -> object | None:
    """Return IPython's shell, or None outside it; IPython is not imported to find out."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None
