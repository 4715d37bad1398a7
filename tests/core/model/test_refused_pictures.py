"""A picture that the endpoint refuses is left out, and nothing else is."""

from __future__ import annotations

from midturn_core.model.messages import AssistantMessage, ImageBlock, TextBlock, UserMessage
from midturn_core.pictures import read_picture
from tests.support.client_kit import ask, client_of, hear
from tests.support.messages_connection import ServerOptions
from tests.support.messages_script import Failure, Reply, Says
from tests.support.messages_server import MessagesServer
from tests.support.picture_files import gif, png
from tests.support.request_texts import kinds_in


def picture(name: str, content: bytes | None = None) -> ImageBlock:
    return read_picture(content or png(), name)


def said(text: str, *pictures: ImageBlock) -> UserMessage:
    return UserMessage((TextBlock(text), *pictures))


def answered(text: str) -> AssistantMessage:
    return AssistantMessage((TextBlock(text),))


async def test_a_picture_that_is_refused_leaves_the_next_turns_working() -> None:
    """One refusal per picture: a note stands in its place from then on, and others still go."""
    bad, good = picture("bad.png"), picture("good.gif", gif())
    script = (
        Failure(400, "invalid_request_error", "Could not process image"),
        Reply(Says("I cannot see it.")),
        Reply(Says("Hi.")),
        Reply(Says("A good one.")),
    )
    history = (said("look", bad), answered("I cannot see it."), "hi")
    with MessagesServer(*script) as server:
        async with client_of(server) as client:
            first = await hear(client, ask(history[0]))
            second = await hear(client, ask(*history))
            third = await hear(client, ask(*history, answered("Hi."), said("and this", good)))
    assert (first.text, second.text, third.text) == ("I cannot see it.", "Hi.", "A good one.")
    kinds = [kinds_in(request) for request in server.requests]
    assert kinds == [["text", "image"], ["text", "text"], ["text"], ["text", "image"]]
    note = "[The picture bad.png (PNG, 3×2, 71 B) was refused by the service.]"
    assert server.requests[1].texts == ["look", note]


async def test_a_gateway_without_pictures_costs_one_try_for_each_message_that_has_some() -> None:
    options = ServerOptions(lacks=frozenset({"image"}))
    history = (said("one", picture("a.png")), answered("1"), said("two", picture("b.gif", gif())))
    with MessagesServer(Reply(Says("Hi")), options=options) as server:
        async with client_of(server) as client:
            heard = await hear(client, ask(*history))
    assert heard.text == "Hi"
    assert len(server.requests) == 3
