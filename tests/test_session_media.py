"""Media and numbers that cross a run: what went in is what is read and sent."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path

import duckdb
import pandas as pd
import pytest
from PIL import Image

import nbdurable as nb
from nbdurable.blocks import Block, FileBlock, ImageBlock
from nbdurable.models.base import Finish
from nbdurable.models.scripted import ScriptedModel, calls
from nbdurable.stores.base import Store
from nbdurable.stores.duckdb import DuckDBStore


def noise(size: int, seed: int = 1) -> bytes:
    """Return a PNG of noise, so large that it is kept beside its entry."""
    pixels = random.Random(seed).randbytes(size * size * 3)
    out = io.BytesIO()
    Image.frombytes("RGB", (size, size), pixels).save(out, format="PNG")
    return out.getvalue()


def sent_parts(model: ScriptedModel) -> tuple[Block, ...]:
    (result,) = (r for m in model.requests[-1].messages for r in m.tool_results)
    return result.content


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chats.duckdb"


# B31
@pytest.mark.parametrize("size", [8, 200], ids=["inline", "beside the entry"])
def test_an_image_that_a_tool_returns_is_in_the_prompt_also_after_reopening(
    path: Path, size: int
) -> None:
    drawn = Image.open(io.BytesIO(noise(size)))

    def draw() -> list[object]:
        """Draw."""
        return ["Here:", drawn]

    model = ScriptedModel(calls(("draw", {})), "Nice.")
    with nb.open("s", store=path, model=model, tools=[draw]) as chat:
        chat.run("Draw.", show=None)
        first = sent_parts(model)
    model = ScriptedModel("Very nice.")
    with nb.open("s", store=path, model=model) as chat:
        chat.run("And?", show=None)

        text, image = sent_parts(model)
        assert sent_parts(model) == first
        assert text.type == "text"
        assert isinstance(image, ImageBlock)
        seen = Image.open(io.BytesIO(image.data))
        assert seen.tobytes() == drawn.tobytes()


# B31
def test_bytes_frames_and_figures_that_a_tool_returns_survive(path: Path) -> None:
    plt = pytest.importorskip("matplotlib.figure")
    blob = random.Random(2).randbytes(100_000)

    def measure() -> list[object]:
        """Measure."""
        figure = plt.Figure()
        figure.subplots().plot([1, 2, 1])
        return [blob, pd.DataFrame({"x": [1, 2], "y": [None, 0.5]}), figure]

    model = ScriptedModel(calls(("measure", {})), "ok")
    with nb.open("s", store=path, model=model, tools=[measure]) as chat:
        chat.run("Measure.", show=None)
    model = ScriptedModel("ok")
    with nb.open("s", store=path, model=model) as chat:
        chat.run("And?", show=None)

        file, frame, figure = sent_parts(model)
        assert isinstance(file, FileBlock)
        assert file.data == blob
        assert getattr(frame, "text", "") == "x,y\n1,\n2,0.5"
        assert isinstance(figure, ImageBlock)
        assert figure.data.startswith(b"\x89PNG")


# B31
def test_numbers_that_json_cannot_hold_are_null_in_a_result(store: Store) -> None:
    def measure() -> dict[str, object]:
        """Measure."""
        return {"best": float("inf"), "mean": float("nan"), "n": 2**60}

    model = ScriptedModel(calls(("measure", {})), "ok")
    chat = nb.open("s", store=store, model=model, tools=[measure])

    chat.run("Go.", show=None)

    (part,) = sent_parts(model)
    assert json.loads(getattr(part, "text", "")) == {"best": None, "mean": None, "n": 2**60}


# B48 B61 case 40
def test_the_bytes_of_an_image_are_kept_once_for_all_forks(path: Path) -> None:
    data = noise(830)  # 2 MB
    model = ScriptedModel("A lot of noise.")
    with nb.open("s", store=path, model=model) as chat:
        chat.run("What is this?", nb.image(data), show=None)
        chat.run("And this, again?", nb.image(data), show=None)
        with chat.fork("one") as one, chat.fork("two") as two:
            two.run("Still there?", show=None)

            sent = [b for m in model.requests[-1].messages for b in m.blocks if b.type == "image"]
            assert [block.data for block in sent] == [data, data]
            assert [e.n for e in one.path()] == [1, 2, 3, 4]
        payloads = [e for s in ("s", "one", "two") for e in chat.image.store.load_entries(s)]

    with duckdb.connect(str(path), read_only=True) as con:
        kept = con.execute("select octet_length(data) from nbd.blobs").fetchall()
    assert kept == [(len(data),)]
    assert max(len(entry.payload) for entry in payloads) < 2_000


# B33
def test_large_integers_and_nested_nulls_reach_a_tool_and_come_back_exactly(store: Store) -> None:
    seen: list[object] = []

    def keep(n: int, tree: dict[str, object]) -> dict[str, object]:
        """Keep."""
        seen.append((n, tree))
        return {"n": n, "tree": tree}

    value = {"a": [None, {"b": None, "ключ": "ö\u2028"}], "big": -(2**63) - 1}
    model = ScriptedModel(calls(("keep", {"n": 2**53 + 1, "tree": value})), "ok")
    chat = nb.open("s", store=store, model=model, tools=[keep])

    chat.run("Keep.", show=None)

    (part,) = sent_parts(model)
    assert seen == [(2**53 + 1, value)]
    assert json.loads(getattr(part, "text", "")) == {"n": 2**53 + 1, "tree": value}


# B33
def test_a_key_that_comes_twice_is_read_alike_everywhere(store: Store) -> None:
    seen: list[int] = []

    def keep(n: int) -> int:
        """Keep."""
        seen.append(n)
        return n

    model = ScriptedModel(calls(("keep", '{"n": 1, "n": 2}')), "ok")
    chat = nb.open("s", store=store, model=model, tools=[keep])

    chat.run("Keep.", show=None)

    assert seen == [2]
    (call,) = chat[2].message.tool_calls  # type: ignore[attr-defined]
    assert call.arguments == {"n": 2}
    for entry in store.load_entries("s"):
        text = json.dumps(json.loads(entry.payload), ensure_ascii=False, separators=(",", ":"))
        assert entry.payload == text


# B31 B33
def test_what_the_store_holds_is_what_duckdb_reads(path: Path) -> None:
    class Big(nb.CustomEntry):
        kind = "test-big"
        count: int = 0
        inner: object = None

    with nb.open("s", store=DuckDBStore(path), model=ScriptedModel()) as chat:
        chat.append(Big(count=2**60 + 1, inner={"a": [None, None]}))
        chat.image.store.close()
    with duckdb.connect(str(path), read_only=True) as con:
        ((count, inner),) = con.execute(
            "select payload->>'$.fields.count', payload->>'$.fields.inner' from nbd.entries"
        ).fetchall()

    assert count == str(2**60 + 1)
    assert json.loads(inner) == {"a": [None, None]}


# B26 B64 case 33
@pytest.mark.parametrize("cost", [float("nan"), float("inf"), float("-inf")])
def test_a_cost_that_is_no_number_is_unknown_everywhere_and_the_answer_is_kept(
    store: Store, cost: float
) -> None:
    model = ScriptedModel(("Paid for.", Finish(cost_usd=cost)), "More.", price_usd=0.4)
    chat = nb.open("s", store=store, model=model, budget_usd=1.0)

    run = chat.run("one", show=None)

    ((_, end),) = store.load_runs("s")
    assert run.text == "Paid for."
    assert end is not None
    assert (run.cost, end.cost_usd, run.events[-1].cost_usd) == (None, None, None)
    assert chat[2].message.reply.cost_usd is None  # type: ignore[attr-defined]
    assert chat.settings.budgets[0].spent_usd == pytest.approx(0.4)
