"""Pin what Binder installs: write what the chosen packages need into ``binder/requirements.txt``.

The packages of the file's first part are chosen by hand. The second part is what pip takes up with
them, written anew by this script, so that a build of next year is the build of today.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from packaging.utils import canonicalize_name

REQUIREMENTS = Path(__file__).parent.parent / "binder" / "requirements.txt"
NEEDED = "# What these need; tests/pin_binder.py writes this part anew."


def resolved(chosen: str) -> dict[str, str]:
    """Return name and version of each package that pip would install for the chosen ones."""
    with tempfile.TemporaryDirectory() as folder:
        wanted = Path(folder, "chosen.txt")
        wanted.write_text(chosen, "utf-8")
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        options = ["--dry-run", "--ignore-installed", "--report", "-", "-r", str(wanted)]
        done = subprocess.run([*pip, *options], check=True, stdout=subprocess.PIPE)
    packages = [install["metadata"] for install in json.loads(done.stdout)["install"]]
    return {canonicalize_name(package["name"]): package["version"] for package in packages}


def main() -> int:
    """Write the second part of the file."""
    chosen = REQUIREMENTS.read_text("utf-8").partition(NEEDED)[0].rstrip()
    by_hand = {line.partition("==")[0] for line in chosen.splitlines()}
    pins = [f"{n}=={v}" for n, v in sorted(resolved(chosen).items()) if n not in by_hand]
    REQUIREMENTS.write_text("\n".join([chosen, "", NEEDED, *pins, ""]), "utf-8")
    print(f"{REQUIREMENTS}: {len(by_hand) - 1} chosen, {len(pins)} that they need")
    return 0


if __name__ == "__main__":
    sys.exit(main())
