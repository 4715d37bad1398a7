"""From a plain request to the steps the demo takes. Pure.

``read A and B`` is one step with two calls, and so is ``read A and run B``; ``X, then Y`` are two
steps.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from midturn_core.model.messages import JsonObject, JsonValue

HELP = """\
I am Midturn's built-in **demo**: a script, not a language model. I drive the real tools on your \
folder. Try:

| say | what happens |
|---|---|
| `tour` | a walk through what Midturn does |
| `read A and B` | several reads in one response |
| `find WORD in FOLDER` | a search |
| `files **/*.py` | file names |
| `fetch` or `fetch URL` | a page that I serve on this machine, or yours |
| `edit FILE: OLD -> NEW` | reads, then edits |
| `write FILE: TEXT` | writes a file |
| `run COMMAND` | a shell command |
| `todo A, B, C` | a todo list |
| `explore WORD` | a subagent that looks for it and reports |
| `count to 40` | a long answer, to type into |
| `rate 200` | words per second from now on |

Join steps with `, then`, calls of one step with `and`: `read A and edit A: x -> y and find y` is \
one response of three calls. Type while I work: Enter steers at the \
next step, Tab first chooses NOW or LATER."""


@dataclass(frozen=True, slots=True)
class Call:
    """One tool use of a step."""

    tool: str
    input: JsonObject


@dataclass(frozen=True, slots=True)
class Step:
    """One message of the demo: words, and the calls that follow them."""

    say: str = ""
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    steps: tuple[Step, ...] = ()
    rate: float | None = None
    """Words per second from now on, when the request sets it."""
    understood: bool = True


@dataclass(frozen=True, slots=True)
class Places:
    """What a plan may refer to: the demo's own site, and two files worth reading."""

    site: str
    files: tuple[str, ...] = field(default=())


_OPENING = re.compile(
    r"(?i)^(?:(?:please|now|and|also|then|no|wait|stop|instead|actually|can you|could you)\b[,:]?\s+)+"
)


_FULL_STOP = re.compile(r"(?<=[^\s.!?/])[.!?]+$")
"""Not the folder ``.`` or ``..`` at the end of a request."""
_STOP = re.compile(
    r"(?i)(?=.*\b(?:stop|cancel|never mind|forget)\b)"
    r"(?:\W|(?:please|ok|no|wait|now|stop|cancel|never mind|forget|that|it)\b)+"
)
_TAKES_THE_REST = re.compile(r"(?i)(please )?(write|run|edit)\b")
_NEXT_VERB = re.compile(
    r"(?i)(?:\s*,\s*(?:and\s+)?|\s+and\s+)"
    r"(?=(?:read|find|search for|grep|explore|files|fetch|edit|write|run)\b)"
)
_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$]")
"""What a regular expression gives a meaning; a blank needs no escape, and Rust refuses one."""


def plan_for(text: str, places: Places) -> Plan:
    """The plan of a request; ``understood`` False when it contains nothing known."""
    request = _FULL_STOP.sub("", text.strip())
    if _STOP.fullmatch(request):
        return Plan((Step("Stopped. What next?"),))
    if re.fullmatch(r"(?i)tour|.*\btour\b.{0,20}", request):
        return Plan(tour(places))
    if match := re.fullmatch(r"(?i)rate (\d{1,6})(?: (?:words|tokens).*)?", request):
        rate = max(1.0, float(match[1]))
        return Plan((Step(f"From now on I stream {rate:g} words per second."),), rate)
    steps: list[Step] = []
    for part in _split_steps(request):
        found = _steps_of(part, places)
        if found is None:
            return Plan((Step(_not_understood(request)),), understood=False)
        steps += found
    return Plan(tuple(steps))


def next_step(steps: Sequence[Step]) -> tuple[Step | None, list[Step]]:
    """What one message says and calls, and what is left: words alone would end the turn."""
    if not steps:
        return None, []
    count = next((n for n, step in enumerate(steps, 1) if step.calls), len(steps))
    words = "\n\n".join(step.say for step in steps[:count] if step.say)
    return Step(words, steps[count - 1].calls), list(steps[count:])


def _not_understood(request: str) -> str:
    quoted = "\n".join(f"> {line}" for line in request.split("\n"))
    return (
        f"I heard:\n\n{quoted}\n\nI am the **demo**, a script: that is beyond me. Say `help` for "
        "what I can do, or set an API key to talk to a real model."
    )


def _split_steps(request: str) -> list[str]:
    """``write`` and ``run`` take the rest as it is, whatever is in it; the others take the first
    paragraph: what was piped in comes after it.
    """
    if _TAKES_THE_REST.match(request):
        return [request]
    return [
        part for part in re.split(r"(?i)[,;]?\s+then\s+", request.split("\n\n")[0]) if part.strip()
    ]


def _steps_of(part: str, places: Places) -> list[Step] | None:
    """The steps of one verb; several verbs give one step with the calls of all of them."""
    first, *others = _clauses(_OPENING.sub("", part.strip()))
    steps = _steps_of_clause(first, places)
    if steps is None or not others:
        return steps
    say, calls = steps[-1].say, steps[-1].calls
    for clause in others:
        if (more := _steps_of_clause(clause, places)) is None:
            return None
        calls += more[-1].calls
    return [Step(say, calls)]


def _clauses(words: str) -> list[str]:
    """A verb counts until the next one; what takes the rest as it is has no next one."""
    return [words] if _TAKES_THE_REST.match(words) else _NEXT_VERB.split(words)


def _steps_of_clause(words: str, places: Places) -> list[Step] | None:
    for pattern, make in _VERBS:
        if match := re.fullmatch(pattern, words, re.IGNORECASE | re.DOTALL):
            return make(match, places)
    return None


def _read(match: re.Match[str], places: Places) -> list[Step]:
    calls = (Call("Read", {"file_path": _bare(piece)}) for piece in _list_of(match[1]))
    return [Step("I read that.", tuple(calls))]


def _find(match: re.Match[str], places: Places) -> list[Step]:
    return [Step("I search for it.", tuple(_search(piece) for piece in _list_of(match[1])))]


def _search(words: str) -> Call:
    found = re.fullmatch(r"(.+?)\s+in\s+(\S+)", words.strip())
    tool_input: dict[str, JsonValue] = {"pattern": _literal(_bare(found[1] if found else words))}
    if found:
        tool_input["path"] = _bare(found[2])
    return Call("Grep", tool_input)


def _literal(text: str) -> str:
    return _SPECIAL.sub(r"\\\g<0>", text)


def _explore(match: re.Match[str], places: Places) -> list[Step]:
    """The subagent gets a request that this script understands too."""
    tasks = [
        Call(
            "Task",
            {
                "description": f"look for {word}",
                "prompt": f"files, then find {word}",
                "subagent_type": "explore",
            },
        )
        for word in map(_bare, _list_of(match[1]))
    ]
    return [Step("I send somebody to look.", tuple(tasks))]


def _files(match: re.Match[str], places: Places) -> list[Step]:
    pattern = _bare(match[1]) if match[1] else "*"
    return [Step("I look which files there are.", (Call("Glob", {"pattern": pattern}),))]


def _fetch(match: re.Match[str], places: Places) -> list[Step]:
    asked = (match[1] or "").strip()
    if many := re.fullmatch(r"(?i)(\d)(?: slow)? pages?", asked):
        kind = "slow" if "slow" in asked.lower() else "page"
        urls = [f"{places.site}/{kind}/{n}" for n in range(1, int(many[1]) + 1)]
    elif "://" in asked:
        urls = [_bare(piece) for piece in _list_of(asked)]
    else:
        urls = [f"{places.site}/"]
    return [Step("I fetch it.", tuple(Call("WebFetch", {"url": url}) for url in urls))]


def _edit(match: re.Match[str], places: Places) -> list[Step]:
    file, old, new = _bare(match[1]), _bare(match[2]), _bare(match[3])
    change: JsonObject = {"file_path": file, "old_string": old, "new_string": new}
    return [
        Step("I read the file first.", (Call("Read", {"file_path": file}),)),
        Step("Now the change.", (Call("Edit", change),)),
    ]


def _write(match: re.Match[str], places: Places) -> list[Step]:
    content = match[2].rstrip("\n") + "\n"
    call = Call("Write", {"file_path": _bare(match[1]), "content": content})
    return [Step("I write the file.", (call,))]


def _run(match: re.Match[str], places: Places) -> list[Step]:
    return [Step("I run it.", (Call("Bash", {"command": _bare(match[1])}),))]


def _todo(match: re.Match[str], places: Places) -> list[Step]:
    return [Step("I note that down.", (_todos(_list_of(match[1])),))]


def _todos(texts: list[str], done: int = 0) -> Call:
    items: list[JsonValue] = [
        {"content": text, "status": "completed" if n < done else "pending"}
        for n, text in enumerate(texts)
    ]
    return Call("TodoWrite", {"todos": items})


def _count(match: re.Match[str], places: Places) -> list[Step]:
    last = min(int(match[1] or 40), 100_000)
    lines = "\n".join(f"- line {n:05d} of {last}" for n in range(1, last + 1))
    return [Step(f"Here we go:\n\n{lines}\n\nThat was line {last}.")]


def _help(match: re.Match[str], places: Places) -> list[Step]:
    return [Step(HELP)]


Maker = Callable[[re.Match[str], Places], list[Step]]
_VERBS: tuple[tuple[str, Maker], ...] = (
    (r"(?:hi|hello|hey|help|what can you do.*|annyeong|안녕.*)", _help),
    (r"(?:read|show|open|look at)\s+(.+)", _read),
    (r"(?:find|search(?: for)?|grep(?: for)?)\s+(.+)", _find),
    (r"(?:explore|look for)\s+(.+)", _explore),
    (r"(?:files|list(?: files)?|glob)(?:\s+(.+))?", _files),
    (r"(?:fetch|get)(?:\s+(.+))?", _fetch),
    (r"(?:edit|change)\s+(\S+?):?\s+(?:replace\s+)?(.+?)\s+(?:->|=>|with|to)\s+(.+)", _edit),
    (r"(?:write|create)\s+(\S+?):?\s+(.+)", _write),
    (r"(?:run|execute|!)\s*(.+)", _run),
    (r"(?:todo|todos|plan)[:\s]\s*(.+)", _todo),
    (r"(?:count|talk|stream)(?:\s+to)?(?:\s+(\d+))?(?: lines)?", _count),
)


def tour(places: Places) -> tuple[Step, ...]:
    """A walk that shows a batch, a fetch with its question, and what typing does."""
    files = places.files or ("README.md",)
    reads = tuple(Call("Read", {"file_path": name, "limit": 30}) for name in files[:3])
    search = Call("Grep", {"pattern": "TODO|FIXME", "head_limit": 20})
    stops = ["look around", "read and search together", "fetch three pages"]
    return (
        Step(
            "**A short tour.** The line below stays yours the whole time: type anything while I "
            "work, and watch where it lands. First I look around.",
            (Call("Glob", {"pattern": "*"}),),
        ),
        Step(
            "Now several independent calls in one response. With `/parallel on` they run at the "
            "same time; while it is off, they run one after another and you see what it cost.",
            (*reads, search),
        ),
        Step(
            "Three slow pages from a little web server of my own on this machine. Leaving the "
            "machine is asked for, per host: `y` once, `s` for this session, `n` no.",
            tuple(Call("WebFetch", {"url": f"{places.site}/slow/{n}"}) for n in (1, 2, 3)),
        ),
        Step("I tick off what is done.", (_todos(stops, done=3),)),
        Step(
            "That was the tour. Next, try `count to 60` and type while I count; `/parallel on` "
            "and `fetch 3 slow pages` again; `run sleep 5` with something typed meanwhile; "
            "`/help` for the commands."
        ),
    )


def _list_of(text: str) -> list[str]:
    pieces = re.split(r"(?i)\s*,\s*(?:and\s+)?|\s+and\s+", text.strip())
    return [piece.strip() for piece in pieces if piece.strip()]


def _bare(word: str) -> str:
    """Without the @ before it, and the quotes or back-ticks around it."""
    word = word.strip()
    word = word.removeprefix("@") if len(word) > 1 else word
    if len(word) > 1 and word[0] == word[-1] and word[0] in "\"'`":
        return word[1:-1]
    return word
