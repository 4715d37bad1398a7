"""``Conversation`` cannot hold a history that the Messages API would refuse."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midturn_core.conversation import Conversation, ConversationChange
from midturn_core.errors import ConversationError
from midturn_core.model.messages import (
    AssistantBlock,
    AssistantMessage,
    ImageBlock,
    Message,
    Outcome,
    TextBlock,
    ThinkingBlock,
    ToolUse,
    ToolUseResult,
    UserMessage,
    UserPart,
)
from midturn_core.pictures import read_picture
from tests.support.picture_files import png

PICTURE = read_picture(png(), "shot.png")


def result(use: ToolUse, content: str = "ok") -> ToolUseResult:
    return ToolUseResult(use.id, use.name, Outcome.SUCCEEDED, content)


def test_neighbouring_user_texts_become_one_message() -> None:
    conversation = Conversation()
    conversation.add_user_text("one")
    conversation.add_user_text("two", "three")
    assert conversation.messages == (
        UserMessage((TextBlock("one"), TextBlock("two"), TextBlock("three"))),
    )


def test_results_come_first_and_in_call_order_before_any_text() -> None:
    conversation = Conversation()
    conversation.add_user_text("read")
    first, second = ToolUse("a", "Read"), ToolUse("b", "Read")
    conversation.add_assistant([first, second])
    conversation.add_results([result(first), result(second)], ["also this"])
    assert conversation.messages[-1] == UserMessage(
        (result(first), result(second), TextBlock("also this"))
    )


@pytest.mark.parametrize("order", [["b", "a"], ["a"], ["a", "b", "c"], ["a", "a"], []])
def test_results_that_do_not_answer_the_calls_are_refused(order: list[str]) -> None:
    conversation = Conversation()
    conversation.add_user_text("read")
    conversation.add_assistant([ToolUse("a", "Read"), ToolUse("b", "Read")])
    with pytest.raises(ConversationError):
        conversation.add_results([result(ToolUse(name, "Read")) for name in order])
    assert len(conversation.pending) == 2


def test_text_cannot_come_between_a_call_and_its_result() -> None:
    conversation = Conversation()
    conversation.add_user_text("read")
    conversation.add_assistant([ToolUse("a", "Read")])
    with pytest.raises(ConversationError):
        conversation.add_user_text("hello")


def test_the_model_cannot_open_a_conversation_or_speak_twice() -> None:
    conversation = Conversation()
    with pytest.raises(ConversationError):
        conversation.add_assistant([TextBlock("hi")])
    conversation.add_user_text("hello")
    conversation.add_assistant([TextBlock("hi")])
    with pytest.raises(ConversationError):
        conversation.add_assistant([TextBlock("hi again")])


def test_what_the_service_would_refuse_in_a_message_is_dropped() -> None:
    conversation = Conversation()
    conversation.add_user_text("hello")
    kept = conversation.add_assistant(
        [
            ThinkingBlock("unsigned", ""),
            ThinkingBlock("signed", "sig"),
            TextBlock(""),
            TextBlock(" \n"),
            ToolUse("a", "Read"),
        ]
    )
    assert kept == AssistantMessage((ThinkingBlock("signed", "sig"), ToolUse("a", "Read")))


def test_a_message_of_nothing_but_thinking_leaves_no_trace() -> None:
    conversation = Conversation()
    conversation.add_user_text("hello")
    assert conversation.add_assistant([ThinkingBlock("hm", "sig"), TextBlock("")]) is None
    assert conversation.awaits_model


def test_a_repeated_call_id_gets_a_new_one() -> None:
    conversation = Conversation()
    for _ in range(2):
        conversation.add_user_text("go")
        message = conversation.add_assistant([ToolUse("call_0", "Read"), ToolUse("call_0", "Read")])
        assert message is not None
        conversation.close_pending("skipped")
    ids = [
        use.id
        for message in conversation.messages
        if isinstance(message, AssistantMessage)
        for use in message.tool_uses
    ]
    assert len(set(ids)) == 4


def test_open_calls_can_be_closed_with_one_sentence() -> None:
    conversation = Conversation()
    conversation.add_user_text("go")
    conversation.add_assistant([ToolUse("a", "Read"), ToolUse("b", "Read")])
    assert conversation.close_pending("stopped") == 2
    assert conversation.close_pending("stopped") == 0
    assert conversation.awaits_model


def test_compaction_needs_a_summary_and_replaces_everything() -> None:
    conversation = Conversation()
    conversation.add_user_text("go")
    conversation.add_assistant([ToolUse("a", "Read")])
    with pytest.raises(ConversationError):
        conversation.compact("  ")
    conversation.compact("summary")
    assert conversation.messages == (UserMessage((TextBlock("summary"),)),)


def test_pictures_stand_after_the_text_they_belong_to_and_after_results() -> None:
    conversation = Conversation()
    conversation.add_user_text("look", PICTURE, "and", "read")
    conversation.add_assistant([ToolUse("a", "Read")])
    answer = result(ToolUse("a", "Read"))
    conversation.add_results([answer], ["this too", PICTURE])
    first, _, last = conversation.messages
    assert first.blocks == (TextBlock("look"), PICTURE, TextBlock("and"), TextBlock("read"))
    assert last.blocks == (answer, TextBlock("this too"), PICTURE)


BLOCKS = st.lists(
    st.one_of(
        st.builds(TextBlock, st.sampled_from(["", " ", "words"])),
        st.builds(ThinkingBlock, st.just("hm"), st.sampled_from(["", "sig"])),
        st.builds(ToolUse, st.sampled_from(["a", "b"]), st.just("Read")),
    ),
    max_size=4,
)
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("user"), st.sampled_from(["", "hello", PICTURE])),
        st.tuples(st.just("assistant"), BLOCKS),
        st.tuples(st.just("results"), st.sampled_from(["", "more", PICTURE])),
        st.tuples(st.just("close"), st.just("")),
        st.tuples(st.just("compact"), st.sampled_from(["", "summary"])),
        st.tuples(st.just("clear"), st.just("")),
    ),
    max_size=25,
)


@given(OPERATIONS)
def test_no_sequence_of_operations_makes_an_invalid_history(
    operations: list[tuple[str, UserPart | list[AssistantBlock]]],
) -> None:
    changes: list[ConversationChange] = []
    conversation = Conversation(changes.append)
    for name, argument in operations:
        with contextlib.suppress(ConversationError):
            perform(conversation, name, argument)
        check(conversation.messages)
    replayed = Conversation()
    replayed.replay(changes)
    assert replayed.messages == conversation.messages


def perform(
    conversation: Conversation, name: str, argument: UserPart | list[AssistantBlock]
) -> None:
    if isinstance(argument, list):
        conversation.add_assistant(argument)
    elif name == "user":
        conversation.add_user_text(argument)
    elif name == "results":
        conversation.add_results([result(use) for use in conversation.pending], [argument])
    elif name == "close":
        conversation.close_pending("closed")
    elif name == "compact" and isinstance(argument, str):
        conversation.compact(argument)
    else:
        conversation.clear()


def check(messages: tuple[Message, ...]) -> None:
    """The rules of the service, written down a second time."""
    ids: list[str] = []
    for index, message in enumerate(messages):
        assert isinstance(message, AssistantMessage) == bool(index % 2)
        assert message.blocks
        assert all(b.text.strip() for b in message.blocks if isinstance(b, TextBlock))
        if isinstance(message, AssistantMessage):
            assert all(b.signature for b in message.blocks if isinstance(b, ThinkingBlock))
            assert not isinstance(message.blocks[-1], ThinkingBlock)
            ids += [use.id for use in message.tool_uses]
        else:
            previous = messages[index - 1] if index else None
            wanted = (
                [use.id for use in previous.tool_uses]
                if isinstance(previous, AssistantMessage)
                else []
            )
            head = message.blocks[: len(wanted)]
            assert [b.tool_use_id for b in head if isinstance(b, ToolUseResult)] == wanted
            said = message.blocks[len(wanted) :]
            assert all(isinstance(b, TextBlock | ImageBlock) for b in said)
    assert len(ids) == len(set(ids))
