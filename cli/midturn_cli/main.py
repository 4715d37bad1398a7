"""The entry point. At its top it imports ``sys`` alone: the way to the input line is short.

Exit codes: 0 done, 1 the turn or a check failed, 2 usage or configuration, 130 interrupted,
143 terminated.
"""

import sys


def main() -> int:
    """Run ``midturn`` with the arguments of the process, and return its exit code."""
    if None in (sys.stdin, sys.stdout, sys.stderr):
        _open_missing_streams()
    try:
        code = _run(sys.argv[1:])
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return _reader_left()


def _run(argv: list[str]) -> int:
    # Imported here, like everything that is needed on some ways only.
    from midturn_core.errors import MidturnError

    try:
        return _dispatch(argv)
    except MidturnError as error:
        from midturn_cli.failure import report_failure

        return report_failure(error, argv)
    except BrokenPipeError:
        raise
    except Exception as error:  # the outermost wall: a person never sees a traceback
        from midturn_cli.failure import report_crash

        return report_crash(error)


def _dispatch(argv: list[str]) -> int:
    from midturn_cli.options import Command, parse_quickly

    arguments = parse_quickly(argv)
    if arguments is None:
        from midturn_cli.app import parse

        arguments = parse(argv)
    if arguments is None:
        return 0
    match arguments.command:
        case Command.DOCTOR:
            from midturn_cli.subcommands import doctor

            return doctor.run(arguments)
        case Command.CONFIG:
            from midturn_cli.subcommands import config

            return config.run(arguments)
        case Command.VERIFY:
            from midturn_cli.subcommands import verify

            return verify.run(arguments)
        case Command.SEND:
            from midturn_cli.subcommands import send

            return send.run(arguments)
        case Command.QUEUE:
            from midturn_cli.subcommands import queue

            return queue.run(arguments)
        case Command.SESSIONS:
            from midturn_cli.subcommands import sessions

            return sessions.run(arguments)
        case Command.START | Command.DEMO:
            from midturn_cli import launch

            return launch.run(arguments)


def _open_missing_streams() -> None:
    """Started with ``<&-`` or the like: otherwise the next file that is opened takes the place of
    a standard stream, and the output of commands would go into it.
    """
    import os

    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def _reader_left() -> int:
    """Whoever read our output is gone (``| head``): end quietly, without a last failing flush."""
    import os

    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    return 1


if __name__ == "__main__":
    sys.exit(main())
