"""B20: what one call of `run` or `append` is given, as entries in the tree and in the prompt."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import nbdurable as nb
from nbdurable.blocks import ImageBlock
from nbdurable.models.scripted import ScriptedModel
from nbdurable.stores.base import Store


class Remark(nb.CustomEntry):
    kind = "remark"
    text: str = ""


def opened(store: Store, *steps: object) -> nb.Session:
    return nb.open("s", store=store, model=ScriptedModel(*(steps or ("Yes.",))))  # type: ignore[arg-type]


def rows(store: Store) -> list[tuple[str | None, str]]:
    return [(entry.role or entry.kind, entry.preview) for entry in store.load_entries("s")]


# B20
def test_plain_parts_side_by_side_form_one_user_message(store: Store, tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("A note.")
    picture = Image.new("RGB", (2, 2), "red")
    frame = pd.DataFrame({"price": [3, 4]})
    chat = opened(store)

    chat.run("Look:", nb.text("all of this"), picture, notes, frame, show=None)

    assert [role for role, _ in rows(store)] == ["user", "assistant"]
    first = chat[1]
    assert isinstance(first, nb.MessageEntry)
    kinds = [block.type for block in first.blocks]
    assert kinds[:4] == ["text", "text", "image", "file"]
    assert "price" in first.text


# B20 B31
def test_an_image_survives_into_the_store_and_the_prompt(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "red.png"
    Image.new("RGB", (64, 64), "red").save(path)
    model = ScriptedModel("Red.")
    chat = nb.open("s", store=store, model=model)

    chat.run("Which colour?", nb.image(path), show=None)

    for blocks in (model.requests[0].messages[0].blocks, chat[1].blocks):  # type: ignore[attr-defined]
        (image,) = [block for block in blocks if isinstance(block, ImageBlock)]
        assert image.data == path.read_bytes()


# B20
def test_what_stands_alone_parts_the_messages_in_the_order_written(store: Store) -> None:
    chat = opened(store)

    chat.run(
        nb.meta("Be brief."),
        "One",
        "message.",
        Remark(text="aside"),
        nb.user("An example?"),
        nb.assistant("An answer."),
        "Is it?",
        show=None,
    )

    assert rows(store)[:6] == [
        ("user", "Be brief."),
        ("user", "One message."),
        ("remark", rows(store)[2][1]),
        ("user", "An example?"),
        ("assistant", "An answer."),
        ("user", "Is it?"),
    ]


# B20 B35
def test_an_ephemeral_part_parts_the_message_but_not_the_chain(store: Store) -> None:
    model = ScriptedModel("Yes.")
    chat = nb.open("s", store=store, model=model)

    chat.run("Is it?", nb.ephemeral("It rains."), "Say yes or no.", show=None)

    assert [m.text for m in model.requests[0].messages] == ["Is it?", "It rains.", "Say yes or no."]
    first, second, _ = store.load_entries("s")
    assert second.parent_id == first.id


# B20
def test_one_object_passed_twice_gives_two_entries(store: Store) -> None:
    chat = opened(store)
    same = nb.user("Again.")

    chat.append(same, same)
    chat.run("Now?", same, same, show=None)

    assert [preview for _, preview in rows(store)] == [
        *["Again."] * 2,
        "Now?",
        *["Again."] * 2,
        "Yes.",
    ]
    assert len({entry.id for entry in store.load_entries("s")}) == 6


# B20
def test_a_stored_entry_given_again_becomes_a_new_one_at_the_leaf(store: Store) -> None:
    chat = opened(store)
    (old,) = chat.append(nb.user("Is it?"))
    chat.append(nb.user("Or not?"))

    run = chat.run(old, show=None)

    (made,) = [entry for entry in run.entries if entry.id in run.input_ids]
    assert (made.id != old.id, made.n, made.parent_id) == (True, 3, chat[2].id)


# B20
def test_a_header_set_by_the_caller_is_ignored(store: Store) -> None:
    forged = replace(
        nb.user("Is it?"),
        id="forged",
        parent_id="nowhere",
        seq=99,
        n=99,
        created_at=datetime(1999, 1, 1, tzinfo=UTC),
        run_id="no-run",
    )

    run = opened(store).run(forged, show=None)

    (entry, _) = store.load_entries("s")
    assert (entry.id != "forged", entry.parent_id, entry.n) == (True, None, 1)
    assert (entry.run_id, entry.seq < 99) == (run.run_id, True)
    assert run.entries[0].created_at is not None
    assert run.entries[0].created_at.year > 1999


# B20 B4
@pytest.mark.parametrize("bad", [object(), nb.image], ids=["object", "function"])
def test_what_is_no_input_is_refused_before_anything_is_stored(store: Store, bad: object) -> None:
    chat = opened(store)

    with pytest.raises(nb.errors.EntryError, match=r"input|cannot"):
        chat.run("Look:", bad, show=None)

    assert (store.load_entries("s"), store.load_runs("s")) == ([], [])


# B20
def test_blank_input_alone_is_refused(store: Store) -> None:
    with pytest.raises(nb.errors.RunError, match="not blank"):
        opened(store).run("  \n", show=None)

    assert store.load_entries("s") == []


# -- parameters --------------------------------------------------------------------------------


# B69
def test_parameters_may_be_numbers_of_numpy(store: Store) -> None:
    model = ScriptedModel("Yes.")
    chat = nb.open("s", store=store, model=model, top_p=np.float32(0.5))

    chat.run("a", seed=np.int64(3), stop=np.array(["x", "y"]), show=None)

    (record,) = [record for record, _ in store.load_runs("s")]
    assert record.params_json == '{"seed":3,"stop":["x","y"],"top_p":0.5}'
    assert {name: type(value) for name, value in model.requests[0].params.items()} == {
        "seed": int,
        "stop": list,
        "top_p": float,
    }
