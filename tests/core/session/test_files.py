"""Pictures as files of a session: kept privately, found again, and missed without harm."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from midturn_core.conversation import Conversation
from midturn_core.errors import SessionError
from midturn_core.model.messages import ImageBlock, TextBlock, ToolUse, UserMessage
from midturn_core.pictures import read_picture
from midturn_core.queue.attachments import AttachmentRef
from midturn_core.session.files import files_folder
from midturn_core.session.store import Resumed, Session, SessionStore
from tests.support.picture_files import gif, jpeg, png, webp

CONTENTS = {"a.png": png(), "b.gif": gif(), "c.jpg": jpeg(), "d.webp": webp()}


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    return SessionStore(tmp_path / "sessions")


def kept(session: Session, name: str) -> ImageBlock:
    found = session.files.find(session.files.keep(read_picture(CONTENTS[name], name)))
    assert isinstance(found, ImageBlock)
    return found


def session_with_pictures(store: SessionStore, workspace: Path) -> Session:
    session = store.create(workspace)
    conversation = Conversation(session.record_change)
    conversation.add_user_text("one", kept(session, "a.png"), "two", kept(session, "b.gif"))
    conversation.add_assistant([ToolUse("t", "Read")])
    conversation.close_pending("done")
    conversation.add_user_text(kept(session, "c.jpg"), "three", kept(session, "d.webp"))
    session.close()
    return session


def history(resumed: Resumed) -> Conversation:
    conversation = Conversation()
    conversation.replay(resumed.changes)
    return conversation


def test_pictures_come_back_where_they_stood(store: SessionStore, tmp_path: Path) -> None:
    session = session_with_pictures(store, tmp_path)
    resumed = store.resume(store.find(session.id), tmp_path)
    first, _, last = history(resumed).messages
    assert isinstance(first, UserMessage) and isinstance(last, UserMessage)
    assert [said(block) for block in first.blocks] == ["one", "a.png", "two", "b.gif"]
    assert [said(block) for block in last.blocks[1:]] == ["c.jpg", "three", "d.webp"]
    assert resumed.warnings == ()


def said(block: object) -> str:
    if isinstance(block, ImageBlock):
        assert block.data == CONTENTS[block.name]
        return block.name
    assert isinstance(block, TextBlock)
    return block.text


def test_the_log_holds_references_and_the_files_are_the_users_alone(
    store: SessionStore, tmp_path: Path
) -> None:
    session = session_with_pictures(store, tmp_path)
    folder = files_folder(session.log.path)
    assert len(list(folder.iterdir())) == 4
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
    assert session.log.path.stat().st_size < 2_000


def test_the_same_picture_is_kept_once(store: SessionStore, tmp_path: Path) -> None:
    session = store.create(tmp_path)
    refs = [session.files.keep(read_picture(png(), name)) for name in ("a.png", "b.png", "a.png")]
    assert len({ref.file_id for ref in refs}) == 1
    assert len(list(session.files.folder.iterdir())) == 1


@pytest.mark.parametrize(
    ("content", "why"), [(None, "is missing"), (b"text", "is no picture"), (b"", "is no picture")]
)
def test_a_lost_file_becomes_a_note_and_is_told(
    store: SessionStore, tmp_path: Path, content: bytes | None, why: str
) -> None:
    session = session_with_pictures(store, tmp_path)
    [file] = session.files.folder.glob("*.gif")
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)
    resumed = store.resume(store.find(session.id), tmp_path)
    message = history(resumed).messages[0]
    last = message.blocks[-1]
    assert isinstance(last, TextBlock)
    assert last.text.startswith(f"[The picture b.gif was here; its file in the session {why}")
    assert resumed.warnings == (
        "Resuming the session: 1 picture(s) are missing or damaged and were left out.",
    )


def test_a_reference_cannot_lead_out_of_the_folder(store: SessionStore, tmp_path: Path) -> None:
    session = store.create(tmp_path)
    (tmp_path / "secret.png").write_bytes(png())
    found = session.files.find(AttachmentRef("../../secret.png", "secret.png"))
    assert found == ("[The picture secret.png was here; its file in the session has no valid id.]")


def test_a_history_that_is_set_aside_keeps_its_pictures(
    store: SessionStore, tmp_path: Path
) -> None:
    session = store.create(tmp_path)
    shot = kept(session, "a.png")
    Conversation(session.record_change).add_user_text("look", shot)
    ref = AttachmentRef(shot.file_id, shot.name)
    kept_id = store.set_aside(session)
    assert session.files.find(ref) == shot, "what waits in the queue still finds it"
    resumed = store.resume(store.find(kept_id), tmp_path)
    [message] = history(resumed).messages
    assert message.blocks == (TextBlock("look"), shot)


def test_a_picture_that_cannot_be_written_is_refused_with_the_reason(
    store: SessionStore, tmp_path: Path
) -> None:
    session = store.create(tmp_path)
    store.folder.mkdir()
    session.files.folder.write_text("in the way")
    with pytest.raises(SessionError, match=r"The picture a\.png cannot be kept in the session: "):
        session.files.keep(read_picture(png(), "a.png"))
