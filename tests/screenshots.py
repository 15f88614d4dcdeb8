"""Run each notebook and photograph its page with a headless Chromium.

``screenshots.py FOLDER`` writes ``NAME.html`` and ``NAME.png`` there for each notebook.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SIZE = "1200,2600"


def browser() -> str:
    """Return the path of a Chromium, or end with a text that says what to install."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    return found or sys.exit("no Chromium was found on the path; install the package chromium")


def as_page(notebook: Path, folder: Path) -> Path:
    """Run a notebook and return its page."""
    command = [sys.executable, "-m", "nbconvert", "--execute", "--to", "html", str(notebook)]
    subprocess.run(
        [*command, "--log-level=ERROR", "--output-dir", str(folder)], check=True, timeout=300
    )
    return folder / f"{notebook.stem}.html"


def photograph(page: Path, picture: Path) -> None:
    """Take a picture of a page."""
    with tempfile.TemporaryDirectory() as profile:
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        options += ["--no-first-run", f"--user-data-dir={profile}", f"--window-size={SIZE}"]
        options += ["--disable-background-networking", "--disable-component-update"]
        target = [f"--screenshot={picture}", page.resolve().as_uri()]
        subprocess.run([browser(), *options, *target], check=True, capture_output=True, timeout=120)


def main(folder: Path) -> int:
    """Photograph all notebooks into a folder."""
    browser()
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for notebook in sorted(NOTEBOOKS.glob("*.ipynb")):
        picture = folder / f"{notebook.stem}.png"
        photograph(as_page(notebook, folder), picture)
        print(picture)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
