"""The demo model: plain requests become real tool uses; the history alone decides."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from midturn_core.compaction import HEADER, REQUEST
from midturn_core.conversation import Conversation
from midturn_core.interrupt import SignalSource
from midturn_core.model.client import ModelRequest, TextChunk
from midturn_core.model.demo import DemoModel, DemoSite
from midturn_core.model.demo.plan import Places, plan_for
from midturn_core.model.messages import (
    AssistantMessage,
    Outcome,
    StopReason,
    ToolUseResult,
)
from midturn_core.model.reply import Reply, ReplyReader
from midturn_core.pictures import read_picture
from midturn_core.queue.reminder import MID_TURN_INJECTION_KEY, SystemReminderFormatter
from tests.support.picture_files import png

PLACES = Places("http://127.0.0.1:1")
TODOS = [{"content": text, "status": "pending"} for text in ("look", "think")]
REMINDERS = SystemReminderFormatter("0123456789abcdef")


def calls(text: str) -> list[list[tuple[str, object]]]:
    """Per step: tool and the value of its first argument."""
    return [
        [(call.tool, next(iter(call.input.values()))) for call in step.calls]
        for step in plan_for(text, PLACES).steps
    ]


@pytest.mark.parametrize(
    ("request_text", "expected"),
    [
        ("read a.py and b.py", [[("Read", "a.py"), ("Read", "b.py")]]),
        ("Please read a.py, b.py, and c.py.", [[("Read", n) for n in ("a.py", "b.py", "c.py")]]),
        ('read @a.py and @"b c.py"', [[("Read", "a.py"), ("Read", "b c.py")]]),
        ("stop, please read a.py", [[("Read", "a.py")]]),
        ("read a.py and find needle", [[("Read", "a.py"), ("Grep", "needle")]]),
        (
            "read a.py and b.py and edit a.py: old -> new and find new, and fetch",
            [
                [
                    ("Read", "a.py"),
                    ("Read", "b.py"),
                    ("Edit", "a.py"),
                    ("Grep", "new"),
                    ("WebFetch", "http://127.0.0.1:1/"),
                ]
            ],
        ),
        ("find x and y and run ls -l", [[("Grep", "x"), ("Grep", "y"), ("Bash", "ls -l")]]),
        ("change a.py: x, y -> y, x and z", [[("Read", "a.py")], [("Edit", "a.py")]]),
        ("todo look and think, then read a", [[("TodoWrite", TODOS)], [("Read", "a")]]),
        ("find TODO in core", [[("Grep", "TODO")]]),
        ("search for 'two words'", [[("Grep", "two words")]]),
        ("find f(x) in .", [[("Grep", r"f\(x\)")]]),
        ("read a.py\n\nwhat was piped in", [[("Read", "a.py")]]),
        ("count to 3, then read a.py", [[], [("Read", "a.py")]]),
        ("explore plum", [[("Task", "look for plum")]]),
        ("explore plum and pear", [[("Task", "look for plum"), ("Task", "look for pear")]]),
        ("files **/*.py", [[("Glob", "**/*.py")]]),
        ("fetch", [[("WebFetch", "http://127.0.0.1:1/")]]),
        ("fetch 2 pages", [[("WebFetch", f"http://127.0.0.1:1/page/{n}") for n in (1, 2)]]),
        ("fetch https://example.com/x", [[("WebFetch", "https://example.com/x")]]),
        ("edit a.py: old -> new", [[("Read", "a.py")], [("Edit", "a.py")]]),
        ("change a.py replace `x = 1` with `x = 2`", [[("Read", "a.py")], [("Edit", "a.py")]]),
        ("write n.txt: hello, then bye", [[("Write", "n.txt")]]),
        ("run echo a && echo b, then c", [[("Bash", "echo a && echo b, then c")]]),
        ("read a.py, then run it", [[("Read", "a.py")], [("Bash", "it")]]),
    ],
)
def test_plain_requests(request_text: str, expected: list[list[tuple[str, object]]]) -> None:
    assert calls(request_text) == expected


def test_a_subagent_is_given_what_the_script_understands() -> None:
    [step] = plan_for("explore 'two words'", PLACES).steps
    prompt = step.calls[0].input["prompt"]
    assert calls(str(prompt)) == [[("Glob", "*")], [("Grep", "two words")]]


def test_what_is_not_understood_is_quoted_and_not_guessed() -> None:
    plan = plan_for("make it nicer", PLACES)
    assert not plan.understood
    assert "> make it nicer" in plan.steps[0].say


def test_the_tour_has_a_step_with_several_calls() -> None:
    assert max(len(step) for step in calls("tour")) >= 3


async def ask(model: DemoModel, conversation: Conversation) -> tuple[Reply, str]:
    said: list[str] = []

    class Never:
        async def wait(self) -> None:
            await asyncio.Event().wait()

    request = ModelRequest("system", conversation.messages, (), "demo", 1000)
    async for event in model.stream(request):
        if isinstance(event, TextChunk):
            said.append(event.text)
    reply = await ReplyReader(lambda _: None).read(model, request, SignalSource(), Never())
    return reply, "".join(said)


async def take_turn(model: DemoModel, conversation: Conversation, *texts: str) -> list[str]:
    """Answer every call with success until the demo stops; ``texts`` arrive at the first step."""
    answers: list[str] = []
    while True:
        reply, said = await ask(model, conversation)
        answers.append(said)
        message = conversation.add_assistant(reply.blocks)
        if reply.stop_reason is StopReason.END_TURN:
            return answers
        assert isinstance(message, AssistantMessage)
        results = [
            ToolUseResult(use.id, use.name, Outcome.SUCCEEDED, f"{use.name} worked")
            for use in message.tool_uses
        ]
        reminders = [REMINDERS.wrap(MID_TURN_INJECTION_KEY, text) for text in texts]
        conversation.add_results(results, reminders)
        texts = ()


async def test_a_turn_takes_its_steps_and_reports(tmp_path: Path) -> None:
    model = DemoModel(tmp_path, DemoSite(), rate=1e6)
    conversation = Conversation()
    conversation.add_user_text("read a.py, then find x")
    answers = await take_turn(model, conversation)
    assert len(answers) == 3
    assert "1 of 1 call(s) succeeded" in answers[-1]
    conversation.add_user_text("read b.py")
    assert len(await take_turn(model, conversation)) == 2
    await model.close()


async def test_it_says_what_was_typed_meanwhile_and_goes_on(tmp_path: Path) -> None:
    model = DemoModel(tmp_path, DemoSite(), rate=1e6)
    conversation = Conversation()
    conversation.add_user_text("read a.py, then find x")
    answers = await take_turn(model, conversation, "mind the tabs")
    assert len(answers) == 3
    assert "> mind the tabs" in answers[1]
    assert "mind the tabs" not in answers[2]
    await model.close()


async def test_a_redirect_replaces_what_was_left(tmp_path: Path) -> None:
    model = DemoModel(tmp_path, DemoSite(), rate=1e6)
    conversation = Conversation()
    conversation.add_user_text("read a.py, then find x, then run ls")
    answers = await take_turn(model, conversation, "stop, that is enough")
    assert len(answers) == 2
    await model.close()


async def test_words_alone_do_not_end_a_turn_that_has_more_to_do(tmp_path: Path) -> None:
    model = DemoModel(tmp_path, DemoSite(), rate=1e6)
    conversation = Conversation()
    conversation.add_user_text("count to 3, then read a.py")
    answers = await take_turn(model, conversation)
    assert len(answers) == 2
    assert "That was line 3." in answers[0] and "I read that." in answers[0]
    await model.close()


async def test_a_summary_lists_what_was_asked_and_is_no_request_itself(tmp_path: Path) -> None:
    model = DemoModel(tmp_path, DemoSite(), rate=1e6)
    conversation = Conversation()
    conversation.add_user_text("read a.py")
    await take_turn(model, conversation)
    conversation.add_user_text(REQUEST)
    reply, summary = await ask(model, conversation)
    assert reply.stop_reason is StopReason.END_TURN
    assert summary == "The demo was asked for:\n\n- read a.py"
    after = Conversation()
    after.add_user_text(HEADER + summary)
    after.add_user_text("read b.py")
    assert (await take_turn(model, after))[0] == "I read that."
    await model.close()


async def test_the_same_history_gives_the_same_answer(tmp_path: Path) -> None:
    model = DemoModel(tmp_path, DemoSite(), rate=1e6)
    conversation = Conversation()
    conversation.add_user_text("read a.py and b.py")
    first, second = await ask(model, conversation), await ask(model, conversation)
    assert first == second
    await model.close()


async def test_the_site_serves_its_pages_on_loopback() -> None:
    site = DemoSite()
    await site.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", int(site.host.split(":")[1]))
    writer.write(b"GET /page/2 HTTP/1.1\r\nHost: x\r\n\r\n")
    answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"Demo page 2" in answer
    assert b"Cache-Control: no-store\r\n" in answer, "fetched again, it would come at once"
    writer.close()
    await writer.wait_closed()
    await site.close()


async def test_the_demo_says_which_pictures_it_got(tmp_path: Path) -> None:
    model = DemoModel(tmp_path, DemoSite(), rate=1e6)
    conversation = Conversation()
    shot = read_picture(png(1280, 720), "shot.png")
    conversation.add_user_text("read a.py [Picture #1 shot.png 1280×720 65 B]", shot)
    first, last = await take_turn(model, conversation)
    assert first.startswith("I got, and cannot look at:\n\n- `shot.png` (PNG, 1280×720, 65 B)")
    assert first.endswith("I read that.")
    assert "shot.png" not in last
    conversation.add_user_text("[Picture #1 shot.png 1280×720 65 B]", shot)
    [only] = await take_turn(model, conversation)
    assert "`shot.png`" in only and "beyond me" not in only
    await model.close()
