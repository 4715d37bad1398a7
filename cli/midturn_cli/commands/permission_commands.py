"""/mode and /permissions: what happens without asking (D42)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from midturn_cli.commands.arguments import quoted, sentence, unknown_word
from midturn_cli.commands.command import Command, CommandError, Form, Use
from midturn_core.permission.decision import PermissionMode
from midturn_core.permission.rules import Rule, check_rules, parse_rule

MODES = {
    PermissionMode.DEFAULT: "reading the folder is free, everything else asks",
    PermissionMode.ACCEPT_EDITS: "writing in the folder is free as well",
    PermissionMode.PLAN: "reads only: whatever writes or runs is refused",
    PermissionMode.YOLO: "nothing is asked; deny and ask rules still hold",
}
THIS_SESSION = "this session"
THIS_TURN = "this turn"
EFFECTS = ("deny", "ask", "allow")
WORDS = ("nothing", "allow RULE", "ask RULE", "deny RULE", "rm RULE")
EXAMPLE = "/permissions allow Bash(git log:*)"

NEXT_MODE = {
    PermissionMode.DEFAULT: PermissionMode.ACCEPT_EDITS,
    PermissionMode.ACCEPT_EDITS: PermissionMode.PLAN,
    PermissionMode.PLAN: PermissionMode.DEFAULT,
    PermissionMode.YOLO: PermissionMode.DEFAULT,
}
"""For a key that is pressed again and again: nobody gets into ``yolo`` that way."""


def mode(use: Use) -> None:
    current = use.engine.authorizer.mode
    match use.words:
        case []:
            rows = [
                ("→" if known is current else "", known.value, text)
                for known, text in MODES.items()
            ]
            use.table("Permission modes", ("", "mode", "where no rule decides"), rows)
        case ["next"]:
            chosen = NEXT_MODE[current]
            use.engine.set_mode(chosen)
            if not use.engine.front.live:
                use.say(f"Mode {chosen.value}: {MODES[chosen]}.")
        case [word] if word in {known.value for known in PermissionMode}:
            chosen = PermissionMode(word)
            use.engine.set_mode(chosen)
            use.say(f"Mode {chosen.value}: {MODES[chosen]}.")
        case _:
            names = (*(known.value for known in PermissionMode), "next")
            raise unknown_word("/mode", use.arguments, names, "/mode plan")


@dataclass(frozen=True, slots=True)
class RuleRow:
    """A rule in force: what it does, and what set it."""

    effect: str
    rule: Rule
    origin: str


def permissions(use: Use) -> None:
    word, _, text = use.arguments.partition(" ")
    match word:
        case "":
            _show(use)
        case "allow" | "ask" | "deny":
            _add(use, word, text.strip())
        case "rm":
            _remove(use, text.strip())
        case _:
            raise unknown_word("/permissions", word, WORDS, EXAMPLE)


def rules_in_force(use: Use) -> list[RuleRow]:
    """Deny first: it wins over ask, and ask over allow."""
    policy = use.engine.authorizer.policy
    lists = {"deny": policy.rules.deny, "ask": policy.rules.ask, "allow": policy.rules.allow}
    rows = [row for effect in EFFECTS for row in _with_origins(use, effect, lists[effect])]
    authorizer, file = use.engine.authorizer, str(use.engine.launch.loaded.file)
    granted = (
        *((rule, file) for rule in authorizer.stored_rules.rules()),
        *((rule, THIS_SESSION) for rule in authorizer.session_rules.rules()),
        *((rule, THIS_TURN) for rule in authorizer.turn_rules.rules()),
    )
    return [*rows, *(RuleRow("allow", rule, origin) for rule, origin in granted)]


def _with_origins(use: Use, effect: str, rules: Sequence[Rule]) -> Iterator[RuleRow]:
    """The configured rules come first, in the order of their origins; what follows was added."""
    origins = use.engine.launch.loaded.rule_origins.get(f"permissions.{effect}", ())
    for place, rule in enumerate(rules):
        yield RuleRow(effect, rule, str(origins[place]) if place < len(origins) else THIS_SESSION)


def _show(use: Use) -> None:
    rows = [(row.effect, row.rule.text, row.origin) for row in rules_in_force(use)]
    current = use.engine.authorizer.mode
    footer = f"mode {current.value}: {MODES[current]}"
    if not rows:
        use.say(f"There are no rules; {footer}. {EXAMPLE} adds one for this session.")
        return
    use.table("Permission rules", ("effect", "rule", "set by"), rows, footer)


def _add(use: Use, effect: str, text: str) -> None:
    rule = _parsed(text)
    if problems := check_rules([rule], use.engine.registry.names()):
        raise CommandError(sentence(problems[0]))
    if any((row.effect, row.rule.text) == (effect, rule.text) for row in rules_in_force(use)):
        use.say(f"{effect} {rule.text} holds already.")
        return
    authorizer, rules = use.engine.authorizer, use.engine.authorizer.policy.rules
    match effect:
        case "allow":
            authorizer.session_rules.add(rule)
            changed = rules
        case "ask":
            changed = replace(rules, ask=(*rules.ask, rule))
        case _:
            changed = replace(rules, deny=(*rules.deny, rule))
    authorizer.set_policy(replace(authorizer.policy, rules=changed))
    use.say(f"{effect} {rule.text}: for this session. [permissions] {effect} keeps it for good.")


def _parsed(text: str) -> Rule:
    if not text:
        raise CommandError(f"A rule is missing: Tool or Tool(pattern) (example: {EXAMPLE})")
    try:
        return parse_rule(text)
    except ValueError as error:
        raise CommandError(f"{sentence(str(error))} (example: {EXAMPLE})") from error


def _remove(use: Use, text: str) -> None:
    """Take back what was added in this session, by the words in which it is shown."""
    effect, _, rest = text.partition(" ")
    wanted, effects = (rest.strip(), (effect,)) if effect in EFFECTS else (text, EFFECTS)
    rows = [r for r in rules_in_force(use) if r.rule.text == wanted and r.effect in effects]
    mine = [row for row in rows if row.origin in (THIS_SESSION, THIS_TURN)]
    if not mine:
        raise CommandError(_not_removable(wanted, rows))
    authorizer = use.engine.authorizer
    if "allow" in effects:
        authorizer.session_rules.remove(wanted)
        authorizer.turn_rules.remove(wanted)
    rules = authorizer.policy.rules
    ask = _without(rules.ask, wanted, use, "ask") if "ask" in effects else rules.ask
    deny = _without(rules.deny, wanted, use, "deny") if "deny" in effects else rules.deny
    authorizer.set_policy(replace(authorizer.policy, rules=replace(rules, ask=ask, deny=deny)))
    use.say(f"Taken back: {', '.join(f'{row.effect} {row.rule.text}' for row in mine)}")


def _without(rules: Sequence[Rule], text: str, use: Use, effect: str) -> tuple[Rule, ...]:
    rows = _with_origins(use, effect, rules)
    return tuple(r.rule for r in rows if r.origin != THIS_SESSION or r.rule.text != text)


def _not_removable(text: str, rows: Iterable[RuleRow]) -> str:
    places = ", ".join(row.origin for row in rows)
    if places:
        return f"{text} is set by {places}, not in this session: change it there"
    return f"There is no rule {quoted(text)} of this session; /permissions lists them"


MODE = Command(
    "mode",
    "see or change the permission mode",
    "[default | accept-edits | plan | yolo | next]",
    now=mode,
    shown_by_status=frozenset({"next"}),
    forms=tuple(
        [Form("/mode", "see the modes and which one holds")]
        + [Form(f"/mode {known.value}", text) for known, text in MODES.items()]
        + [Form("/mode next", "the one after it: default, accept-edits, plan; Shift-Tab does it")]
    ),
)
PERMISSIONS = Command(
    "permissions",
    "see or change the permission rules",
    "[allow | ask | deny | rm RULE]",
    now=permissions,
    forms=(
        Form("/permissions", "see every rule and what set it"),
        Form("/permissions allow RULE", "never ask for it in this session"),
        Form("/permissions ask RULE", "always ask for it in this session"),
        Form("/permissions deny RULE", "refuse it in this session, whatever else is set"),
        Form("/permissions rm RULE", "take back what was added or answered in this session"),
    ),
)
