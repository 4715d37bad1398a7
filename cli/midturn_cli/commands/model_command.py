"""/model: which model answers."""

from __future__ import annotations

from midturn_cli.commands.command import Command, CommandError, Form, Use

MAX_NAME = 200
EXAMPLE = "/model claude-opus-5-5"


def show_model(use: Use) -> None:
    engine = use.engine
    if engine.launch.demo:
        use.say(
            "The built-in demo answers: a script, no model. Start midturn without demo for one."
        )
        return
    settings, config = engine.model_settings, engine.config.model
    rows = [
        ("model", settings.name),
        ("effort", settings.effort or "left to the model"),
        ("longest answer", f"{settings.max_tokens:,} tokens"),
        ("service", config.base_url or "the service's own address"),
    ]
    rows += [("with a price", ", ".join(config.prices))] if config.prices else []
    use.table("Model", ("", ""), rows, f"{EXAMPLE} changes it; [model] name keeps it for good")


def check_name(name: str) -> str:
    """Why this cannot be the name of a model; empty when it can, and without one."""
    one_word = len(name.split()) <= 1 and len(name) <= MAX_NAME and name.isprintable()
    if one_word:
        return ""
    return f"/model needs the name of one model, without blanks (example: {EXAMPLE})"


async def change_model(use: Use) -> None:
    engine, name = use.engine, use.arguments
    if engine.launch.demo:
        raise CommandError("The demo has one model only: itself; start midturn without demo")
    before = engine.model_settings.name
    if name == before:
        use.say(f"{name} is the model already.")
        return
    engine.set_model(name)
    use.say(f"From now on {name} answers (before: {before}), with the whole conversation so far.")


MODEL = Command(
    "model",
    "see or change the model",
    "[NAME]",
    now=show_model,
    own_turn=change_model,
    check=check_name,
    forms=(
        Form("/model", "see which model answers, and how"),
        Form("/model NAME", "let another one answer from the next turn on, in this session"),
    ),
)
