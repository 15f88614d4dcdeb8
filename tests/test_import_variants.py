"""Exports that differ from the samples: older, newer, partial, with companions of other kinds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from importing import DATA, Talk, talks, told

import nbdurable as nb
from nbdurable.formats.report import ImportReport
from nbdurable.stores.memory import MemoryStore

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 40


def saved(value: object, name: str = "conversations.json") -> Path:
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text(json.dumps(value), "utf-8")
    return Path(name)


def loaded(path: Path, **kwargs: Any) -> tuple[Talk, ImportReport]:
    store = MemoryStore()
    report = nb.load(path, store=store, **kwargs)
    (found,) = talks(store).values()
    return found, report


def chatgpt(*messages: Any) -> dict[str, Any]:
    """A conversation of messages under one another; keys are n0, n1, and so on."""
    mapping: dict[str, Any] = {}
    for place, message in enumerate(messages):
        parent = f"n{place - 1}" if place else None
        mapping[f"n{place}"] = {"id": f"n{place}", "parent": parent, "message": message}
    return {"conversation_id": "c", "title": "T", "create_time": 1.7e9, "mapping": mapping}


def said(role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"author": {"role": role}, "content": content, **more}


def text(*parts: Any) -> dict[str, Any]:
    return {"content_type": "text", "parts": list(parts)}


def source_of(talk: Talk, key: str) -> Any:
    return json.loads(talk.stored(key).payload).get("source", {})


# -- ChatGPT -------------------------------------------------------------------------------------


# case 53
def test_null_nodes_messages_authors_and_parts_are_passed_over() -> None:
    value = chatgpt(None, said("user", text(None, "Hi.")), said("assistant", None))
    value["mapping"]["gone"] = None
    value["mapping"]["n3"] = {"parent": "n2", "message": {"author": None, "content": text("?")}}

    talk, report = loaded(saved([value]))

    assert talk.parents == {"n1": None, "n2": "n1", "n3": "n2"}
    assert [block.type for block in talk.entry("n1").blocks] == ["text"]
    assert "entry 'gone': it is no node" in told(report)
    assert talk.stored("n3").kind == "chatgpt:message"


# case 53
def test_the_oldest_exports_name_the_role_alone_and_say_content_as_text() -> None:
    value = chatgpt({"role": "user", "content": "Hi."}, {"role": "assistant", "content": ["Ho."]})

    talk, _ = loaded(saved(value))

    assert [(e.role, e.preview) for e in talk.entries] == [("user", "Hi."), ("assistant", "Ho.")]


# case 53
def test_one_conversation_that_is_no_list_is_read_too() -> None:
    talk, _ = loaded(saved(chatgpt(said("user", text("Hi.")))))

    assert (talk.id, talk.keys) == ("chatgpt:c", ["n0"])


# B37
@pytest.mark.parametrize(
    "content",
    [
        {"content_type": "reasoning_recap", "content": "Thought for 5 seconds"},
        {"content_type": "computer_output", "screenshot": {"asset_pointer": "x"}},
        {"content_type": "sonic_webpage", "url": "https://example.com", "text": "page"},
        {"content_type": "from_the_future", "parts": ["?"]},
    ],
)
def test_content_of_a_newer_kind_is_kept_whole_and_never_sent(content: dict[str, Any]) -> None:
    value = chatgpt(said("user", text("Hi.")), said("assistant", content))

    talk, _ = loaded(saved([value]))

    (block,) = talk.entry("n1").blocks
    assert json.loads(block.raw) == content
    assert [m.role for m in talk.view("n1").messages] == ["user"]


# B44
def test_a_canvas_is_a_call_of_its_tool() -> None:
    told_canvas = json.dumps({"name": "Plan", "type": "document", "content": "# Plan"})
    value = chatgpt(
        said("user", text("Write a plan.")),
        said(
            "assistant",
            {"content_type": "code", "text": told_canvas, "language": "json"},
            recipient="canmore.create_textdoc",
        ),
        {
            "author": {"role": "tool", "name": "canmore.create_textdoc"},
            "content": text("Successfully created text document with id x"),
            "metadata": {"canvas": {"textdoc_id": "x", "version": 1}},
        },
    )

    talk, _ = loaded(saved([value]))

    (call,) = talk.entry("n1").blocks
    (result,) = talk.entry("n2").blocks
    assert call.arguments == {"name": "Plan", "type": "document", "content": "# Plan"}
    assert result.call_id == call.id
    assert source_of(talk, "n2")["metadata"] == {"canvas": {"textdoc_id": "x", "version": 1}}


# B31
def test_what_was_spoken_is_read_as_text_and_its_sound_kept_by_name() -> None:
    heard = {"content_type": "audio_transcription", "text": "How far?", "direction": "in"}
    sound = {"content_type": "audio_asset_pointer", "asset_pointer": "sediment://file_1"}
    value = chatgpt(said("user", {"content_type": "multimodal_text", "parts": [heard, sound]}))

    talk, _ = loaded(saved([value]))

    spoken, kept = talk.entry("n0").blocks
    assert spoken.text == "How far?" and json.loads(kept.raw) == sound
    assert source_of(talk, "n0")["content"]["parts"] == [{"direction": "in"}, {}]


# B31
def test_a_drawn_picture_keeps_what_it_was_drawn_from() -> None:
    drawn = {
        "content_type": "image_asset_pointer",
        "asset_pointer": "file-service://file-abc",
        "metadata": {"dalle": {"prompt": "a fox", "seed": 7}},
    }
    content = {"content_type": "multimodal_text", "parts": [drawn]}
    saved([chatgpt(said("tool", content))], "export/conversations.json")
    Path("export/file-abc-fox.png").write_bytes(PNG)

    talk, _ = loaded(Path("export"))

    (result,) = talk.entry("n0").blocks
    (part,) = source_of(talk, "n0")["content"]["parts"]
    assert [block.type for block in result.content] == ["image"]
    assert part["metadata"]["dalle"]["prompt"] == "a fox"


# B70
def test_ratings_that_were_read_are_not_told_as_a_file_without_conversations() -> None:
    saved([chatgpt(said("user", text("Hi.")))], "export/conversations-000.json")
    saved(
        [{"id": "n0", "conversation_id": "c", "rating": "thumbs_down"}],
        "export/message_feedback.json",
    )

    talk, report = loaded(Path("export"))

    assert talk.said("rating") == [("n0", -1)]
    assert report.oddities == ()


# -- Claude --------------------------------------------------------------------------------------


# B37
def test_projects_and_memories_beside_claudes_conversations_are_told() -> None:
    Path("export").mkdir()
    (Path("export") / "conversations.json").write_bytes((DATA / "claude_export.json").read_bytes())
    project = {"uuid": "p", "name": "Notes", "prompt_template": "", "docs": []}
    saved([project], "export/projects.json")
    saved([{"conversations_memory": "likes tea", "account_uuid": "u"}], "export/memories.json")
    saved([{"uuid": "u", "full_name": "A", "email_address": "a@example.com"}], "export/users.json")

    report = nb.load("export", store=MemoryStore())

    assert len(report.sessions) == 3
    words = told(report)
    assert "projects.json: it holds projects of Claude and no conversation" in words
    assert "memories.json: it holds what Claude remembers and no conversation" in words
    assert "users.json: it holds an account and no conversation" in words


# B37
def test_blocks_of_a_newer_kind_and_their_extras_are_kept() -> None:
    parts = [
        {"type": "thinking", "thinking": "Hm.", "summaries": [{"summary": "Pondering"}]},
        {"type": "token_budget", "remaining": 5},
        {"type": "text", "text": "So.", "citations": [{"url": "https://example.com"}]},
    ]
    message = {"uuid": "m", "sender": "assistant", "text": "So.", "content": parts}

    talk, _ = loaded(saved([{"uuid": "c", "name": "", "chat_messages": [message]}]))

    assert [block.type for block in talk.entry("m").blocks] == ["thinking", "opaque", "text"]
    assert source_of(talk, "m")["content"] == [
        {"summaries": [{"summary": "Pondering"}]},
        {},
        {"citations": [{"url": "https://example.com"}]},
    ]


# -- Open WebUI and LibreChat --------------------------------------------------------------------


# case 62
def test_a_list_of_chats_and_one_of_them_alone_are_the_same_session() -> None:
    (value,) = json.loads((DATA / "open_webui_export.json").read_text("utf-8"))
    store = MemoryStore()
    nb.load(saved([value]), store=store)

    report = nb.load(saved(value, "chat.json"), store=store)

    assert [(s.outcome, s.entries) for s in report.sessions] == [("unchanged", 0)]


# case 62
def test_a_tree_of_messages_is_read_where_the_list_is_missing_or_null() -> None:
    value = json.loads((DATA / "librechat_export.json").read_text("utf-8"))
    listed = value.pop("messages")
    roots = [{**message, "children": []} for message in listed]
    plain, _ = loaded(saved({**value, "messages": listed}))

    for more in ({}, {"messages": None}, {"messages": []}):
        tree, _ = loaded(saved({**value, "messagesTree": roots, **more}))

        assert tree.parents == plain.parents
