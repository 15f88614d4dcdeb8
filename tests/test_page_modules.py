"""The page's modules: typed, tested under Node.js, joined without a bundler, without markup."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from nbdurable.notebook import assets

JS_TESTS = Path(__file__).with_name("js")
MODULES = sorted(assets.JS.rglob("*.js"))
MARKUP = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser"
    r"|\beval\b|new Function|srcdoc|fetch\(|XMLHttpRequest|WebSocket|import\((?!\"\.{1,2}/)"
)


def run_in_node(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a command where the page's tests are."""
    assert JS_TESTS.joinpath("node_modules").is_dir(), "run npm install in tests/js first"
    return subprocess.run(
        command, cwd=JS_TESTS, capture_output=True, text=True, timeout=100, check=False
    )


@pytest.mark.node
def test_the_modules_pass_their_tests() -> None:
    ran = run_in_node("node", "--test", "--test-reporter=tap")

    assert ran.returncode == 0, "\n".join(re.findall(r"not ok.*|\s+error: .*", ran.stdout)[:40])


@pytest.mark.node
def test_the_modules_pass_the_strict_type_checker() -> None:
    ran = run_in_node(str(JS_TESTS / "node_modules" / ".bin" / "tsc"), "-p", "tsconfig.json")

    assert ran.returncode == 0, ran.stdout


# case 43
@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.name)
def test_no_module_makes_markup_of_a_text_or_asks_a_server(module: Path) -> None:
    text = module.read_text("utf-8")

    assert not MARKUP.search(text)
    assert text.startswith("// @ts-check")


def test_a_joined_module_has_all_it_imports_and_no_import(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "a.js").write_text(
        'import { b } from "./b.js";\nexport const a = b + 1;\n', "utf-8"
    )
    (tmp_path / "b.js").write_text("export const b = 1;\nexport default { b };\n", "utf-8")
    monkeypatch.setattr(assets, "JS", tmp_path)

    assert assets.esm.__wrapped__("a.js") == "const b = 1;\n\nconst a = b + 1;\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'import { b } from "./b.js";\nconst b2 = 1;\nexport const b = 2;\n',
            "declares b, as js/b",
        ),
        ('import * as all from "./b.js";\n', "cannot be joined"),
        ('import { a } from "./a.js";\n', "imports itself through a.js"),
    ],
)
def test_what_cannot_be_joined_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "a.js").write_text(text, "utf-8")
    (tmp_path / "b.js").write_text("export const b = 1;\n", "utf-8")
    monkeypatch.setattr(assets, "JS", tmp_path)

    with pytest.raises(ValueError, match=re.escape(message)):
        assets.esm.__wrapped__("a.js")
