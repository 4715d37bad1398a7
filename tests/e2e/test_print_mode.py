"""``midturn -p``: what a script sees of it, on its streams and in its exit code."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from midturn_core.model.messages import JsonObject
from tests.support.messages_script import (
    Answer,
    Calls,
    Cut,
    Failure,
    Latch,
    Reply,
    Says,
)
from tests.support.messages_server import MessagesServer
from tests.support.midturn_process import (
    DEADLINE,
    ROOT,
    midturn_environment,
    run_midturn,
    run_python,
)

COMMAND = (sys.executable, "-m", "midturn_cli.main")
QUICKLY = {"retry-after-ms": "1"}


def asked(
    server: MessagesServer,
    workspace: Path,
    *arguments: str,
    stdin: bytes = b"",
    environ: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """What became of ``midturn -p`` with these arguments."""
    return run_midturn(
        "-p",
        *arguments,
        stdin=stdin,
        environ=midturn_environment(**{**server.environment(), **(environ or {})}),
        cwd=workspace,
    )


def lines_of(done: subprocess.CompletedProcess[bytes]) -> list[JsonObject]:
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_answer_alone_is_on_stdout(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("plum\n", encoding="utf-8")
    with MessagesServer(
        Reply(Says("I look."), Calls("Read", {"file_path": "a.txt"})), Reply(Says("It says plum."))
    ) as server:
        done = asked(server, tmp_path, "what is in a.txt?")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"It says plum.\n", b"")
    assert "plum" in str(server.requests[1].results[0]["content"])


def test_json_is_one_object_with_answer_and_usage(tmp_path: Path) -> None:
    with MessagesServer(Reply(Says("It is ö."), usage={"output_tokens": 7})) as server:
        done = asked(server, tmp_path, "what?", "--output-format", "json")
    [result] = lines_of(done)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (result["type"], result["ok"], result["answer"]) == ("result", True, "It is ö.")
    assert isinstance(result["usage"], dict)
    assert result["usage"]["output_tokens"] == 7


def test_stream_json_is_one_event_a_line_and_the_result_last(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("plum\n", encoding="utf-8")
    with MessagesServer(
        Reply(Says("I look."), Calls("Read", {"file_path": "a.txt"})), Reply(Says("pl", "um"))
    ) as server:
        done = asked(server, tmp_path, "what?", "--output-format", "stream-json")
    events = lines_of(done)
    kinds = [event["type"] for event in events]
    assert kinds[0] == "turn_started"
    assert kinds.index("tool_started") < kinds.index("tool_result") < kinds.index("batch_finished")
    assert "".join(str(event["text"]) for event in events if event["type"] == "text") == (
        "I look.plum"
    )
    assert kinds.count("result") == 1
    assert (kinds[-1], events[-1]["answer"]) == ("result", "plum")


@pytest.mark.parametrize("arguments", [[], ["weigh this"]])
def test_piped_text_is_one_user_message_with_the_prompt(
    tmp_path: Path, arguments: list[str]
) -> None:
    """MB-1204."""
    with MessagesServer(Reply(Says("done"))) as server:
        done = asked(server, tmp_path, *arguments, stdin=b"the plan\n")
    assert done.stdout == b"done\n"
    [request] = server.requests
    assert [message["role"] for message in request.messages] == ["user"]
    assert request.texts == ["\n\n".join([*arguments, "the plan"])]


@pytest.mark.parametrize("output", ["text", "json", "stream-json"])
@pytest.mark.parametrize(
    ("failures", "words"),
    [
        ([Failure(401, "authentication_error", "invalid x-api-key")], "refused the key"),
        ([Failure(500, "api_error", "oh no", QUICKLY)] * 6, "failed with status 500"),
    ],
    ids=["401", "500"],
)
def test_a_refused_request_is_said_and_fails(
    tmp_path: Path, failures: list[Answer], words: str, output: str
) -> None:
    """MB-1205, MB-1208."""
    with MessagesServer(*failures) as server:
        done = asked(server, tmp_path, "hi", "--output-format", output)
    check_failure(done, words, output)
    assert len(server.requests) == len(failures)


@pytest.mark.parametrize("output", ["text", "json"])
def test_a_cut_stream_is_said_and_fails(tmp_path: Path, output: str) -> None:
    """MB-1205: what had been said is no answer."""
    with MessagesServer() as server:
        server.always(Reply(Says("half of the ans"), Cut()))
        done = asked_quickly(server.environment(), tmp_path, output)
    check_failure(done, "connection was lost", output)
    assert b"half of" not in done.stdout


@pytest.mark.parametrize("output", ["text", "json"])
def test_a_service_that_is_not_there_is_said_and_fails(tmp_path: Path, output: str) -> None:
    """MB-1205."""
    with MessagesServer() as server:
        gone = server.environment()
    done = asked_quickly(gone, tmp_path, output)
    check_failure(done, f"No connection to {gone['ANTHROPIC_BASE_URL']}", output)


def asked_quickly(
    service: dict[str, str], workspace: Path, output: str
) -> subprocess.CompletedProcess[bytes]:
    """``midturn -p`` with short waits before it tries again."""
    command = str(ROOT / "tests" / "support" / "quick_midturn.py")
    words = [command, "-p", "hi", "--output-format", output]
    return run_python(words, environ=midturn_environment(**service), cwd=workspace)


def check_failure(done: subprocess.CompletedProcess[bytes], words: str, output: str) -> None:
    """One sentence with a way out of a shell's, and nothing on stdout that looks like an answer."""
    errors = done.stderr.decode()
    assert done.returncode == 1
    assert words in errors
    assert all(line.startswith("midturn: ") for line in errors.splitlines())
    assert "/retry" not in errors
    if output == "text":
        assert done.stdout == b""
        return
    result = lines_of(done)[-1]
    assert (result["ok"], result["answer"]) == (False, "")
    assert words in str(result["error"])


def test_without_a_key_nothing_is_sent_and_the_way_out_is_named(tmp_path: Path) -> None:
    with MessagesServer() as server:
        done = asked(server, tmp_path, "hi", environ={"ANTHROPIC_API_KEY": ""})
    assert (done.returncode, done.stdout, server.requests) == (1, b"", [])
    assert b"ANTHROPIC_API_KEY" in done.stderr
    assert b"midturn demo" in done.stderr


def test_json_stays_json_beside_warnings(tmp_path: Path) -> None:
    """MB-1208, MB-1102: warnings are on stderr, once each."""
    config = tmp_path / "my.toml"
    config.write_text("future_key = 1\n[ui]\nplian = true\n", encoding="utf-8")
    with MessagesServer(Reply(Says("fine"))) as server:
        done = asked(server, tmp_path, "hi", "--output-format=json", "--config", str(config))
    [result] = lines_of(done)
    assert (done.returncode, result["answer"]) == (0, "fine")
    assert done.stderr.count(b"future_key") == 1
    assert done.stderr.count(b"plian") == 1


def test_an_answer_for_a_file_is_neither_coloured_nor_changed(tmp_path: Path) -> None:
    """MB-1206: the file holds what the model said, byte by byte."""
    text = "# Title\n\n**bold** `code` [/x] [red]\tö 漢 \x1b[31mred\n"
    out = tmp_path / "out.txt"
    with MessagesServer(Reply(Says(text))) as server, out.open("wb") as file:
        code = subprocess.run(
            [*COMMAND, "-p", "hi"],
            stdin=subprocess.DEVNULL,
            stdout=file,
            env=midturn_environment(**server.environment()),
            cwd=tmp_path,
            timeout=DEADLINE,
            check=False,
        ).returncode
    assert (code, out.read_text(encoding="utf-8")) == (0, text)


def test_a_reader_that_leaves_after_one_line_ends_it_quietly(tmp_path: Path) -> None:
    """MB-1207."""
    answer = "".join(f"line {number:05} of a long answer\n" for number in range(5000))
    with MessagesServer(Reply(Says(answer))) as server:
        done = subprocess.run(
            ["sh", "-c", '"$@" | head -1', "sh", *COMMAND, "-p", "hi"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=midturn_environment(**server.environment()),
            cwd=tmp_path,
            timeout=DEADLINE,
            check=False,
        )
    assert (done.stdout, done.stderr) == (b"line 00000 of a long answer\n", b"")


def test_a_prompt_with_brackets_and_slashes_is_only_text(tmp_path: Path) -> None:
    """MB-1211."""
    prompt = "explain [/login] and [/]"
    with MessagesServer(Reply(Says("[/red] it is"))) as server:
        done = asked(server, tmp_path, prompt)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"[/red] it is\n", b"")
    assert server.requests[0].texts == [prompt]


def test_what_needs_a_question_is_denied_with_the_flag_that_allows_it(tmp_path: Path) -> None:
    with MessagesServer(
        Reply(Says("I make it."), Calls("Bash", {"command": "touch made"})),
        Reply(Says("I may not.")),
    ) as server:
        done = asked(server, tmp_path, "make it")
    assert (done.returncode, done.stdout) == (0, b"I may not.\n")
    assert b"--allow 'Bash(touch made)'" in done.stderr
    assert not (tmp_path / "made").exists()
    [result] = server.requests[1].results
    assert result["is_error"] is True
    assert "--allow" in str(result["content"])


def test_the_flag_that_was_named_allows_it(tmp_path: Path) -> None:
    with MessagesServer(
        Reply(Calls("Bash", {"command": "touch made"})), Reply(Says("Made."))
    ) as server:
        done = asked(server, tmp_path, "make it", "--allow", "Bash(touch made)")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"Made.\n", b"")
    assert (tmp_path / "made").exists()


def test_a_turn_that_runs_out_of_steps_fails(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("plum\n", encoding="utf-8")
    with MessagesServer(Reply(Calls("Read", {"file_path": "a.txt"}))) as server:
        done = asked(server, tmp_path, "hi", "--max-steps", "1", "--output-format", "json")
    [result] = lines_of(done)
    assert (done.returncode, result["ok"], result["reason"]) == (1, False, "step_limit")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)
def test_a_signal_ends_it_with_its_own_code(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    streaming = Latch()
    with MessagesServer(Reply(Says("half of it", streaming))) as server:
        process = subprocess.Popen(
            [*COMMAND, "-p", "hi"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=midturn_environment(**server.environment()),
            cwd=tmp_path,
        )
        streaming.reached.wait()
        process.send_signal(number)
        out, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == code
    assert b"Traceback" not in out + err


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b'[model]\nname = "x\n', ":2:10: "),
        (b'[permissions]\nallow = ["Read" "Grep"]\n', ":2:17: "),
        (b'model = "a"\nmodel = "b"\n', ":2: model is set a second time"),
        (b'[model]\nname = "a"\nname = "b"\n', ":3: name is set a second time"),
        (b"[ui]\nplain = \x00\n", ":2:9: "),
        (b"[ui]\ntheme = '\xb0\xa1'\n", ":2:10: "),
        (b"\xef\xbb\xbf[ui]\n", ":1:1: "),
        ("[ui]\n".encode("utf-16"), ":1:1: "),
        (None, ": is a folder"),
    ],
    ids=["unclosed", "comma", "table", "twice", "nul", "cp949", "mark", "utf-16", "folder"],
)
def test_a_broken_configuration_is_one_sentence_with_its_place(
    tmp_path: Path, content: bytes | None, place: str
) -> None:
    """MB-1101, MB-1103."""
    config = tmp_path / "config.toml"
    config.mkdir() if content is None else config.write_bytes(content)
    done = run_midturn("-p", "hi", "--config", str(config), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().startswith(f"midturn: {config}{place}")
    assert done.stderr.count(b"\n") == 1


def test_every_mistake_of_a_configuration_is_a_sentence_with_its_place(tmp_path: Path) -> None:
    """MB-1101."""
    config = tmp_path / "config.toml"
    config.write_text('[ui]\nplain = 1\n[queue]\nenter = "soon"\n', encoding="utf-8")
    done = run_midturn("-p", "hi", "--output-format=json", "--config", str(config), cwd=tmp_path)
    first, second = sorted(done.stderr.decode().splitlines())
    assert first.startswith(f"midturn: {config}:2: [ui] plain ")
    assert second.startswith(f"midturn: {config}:4: [queue] enter ")
    [result] = lines_of(done)
    assert (done.returncode, result["ok"]) == (2, False)
    assert ":2: " in str(result["error"]) and ":4: " in str(result["error"])


def test_a_slash_command_is_refused_and_never_sent(tmp_path: Path) -> None:
    with MessagesServer() as server:
        done = asked(server, tmp_path, "/help")
        assert done.returncode == 2
        assert b"/help is a command of the interactive session" in done.stderr
        assert server.requests == []


def test_an_answer_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    with MessagesServer(Reply(Says("words"))) as server, open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, "-p", "hi"],
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            env=midturn_environment(**server.environment()),
            cwd=tmp_path,
            timeout=DEADLINE,
            check=False,
        )
    assert done.returncode != 0
    assert b"the answer cannot be written" in done.stderr
    assert b"internal" not in done.stderr
