"""The record of what each batch did, and the check that the history keeps its promises.

``entries`` are kept with the session, one per batch; ``check`` compares them with the history, and
``times`` looks at who ran beside whom. ``midturn verify`` and the tests use the same check.
"""
