"""Hosts whose disk is thrown away: known by what they set, without asking anybody.

Owns which these are and what can be done there. The one idea: whoever keeps conversations on such a
disk is told once, as long as they can still be saved.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping

from nbdurable.errors import shown

# What a host sets, its name, what to do there, and whether a mounted disk outlives it.
_HOSTS = (
    (
        ("COLAB_RELEASE_TAG", "COLAB_GPU", "COLAB_BACKEND_VERSION"),
        "Colab, which is gone with its runtime",
        "mount Google Drive (google.colab.drive.mount) and keep the store there",
        True,
    ),
    (
        ("KAGGLE_KERNEL_RUN_TYPE", "KAGGLE_URL_BASE"),
        "Kaggle, which keeps only what a saved version of the notebook left in /kaggle/working",
        "save a version",
        False,
    ),
    (
        ("BINDER_SERVICE_HOST", "BINDER_REPO_URL", "BINDER_LAUNCH_HOST", "BINDER_REQUEST"),
        "Binder, which is gone some minutes after the last use",
        "take along what you like",
        False,
    ),
)

_told = False


def thrown_away(path: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """Return why a file will be lost with its host and what to do, or None where it will not.

    Parameters
    ----------
    path : str
        An absolute path.
    environ : mapping
        The environment.
    """
    for names, host, remedy, has_mounts in _HOSTS:
        if not any(name in environ for name in names) or (has_mounts and _is_mounted(path)):
            continue
        return (
            f"store {shown(path)} is on the disk of {host}; {remedy}, or download it, "
            "or copy it elsewhere (nbdurable copy)"
        )
    return None


def warn_once(path: str, *, stacklevel: int = 2) -> None:
    """Warn of a store whose disk is thrown away, once per process."""
    global _told
    if _told or not os.path.isabs(path):
        return
    found = thrown_away(path)
    if found is not None:
        _told = True
        warnings.warn(found, stacklevel=stacklevel + 1)


def _is_mounted(path: str) -> bool:
    """Whether a file is on a disk that somebody mounted, such as a drive."""
    folder = os.path.dirname(path)
    while os.path.dirname(folder) != folder:
        if os.path.ismount(folder):
            return True
        folder = os.path.dirname(folder)
    return False
