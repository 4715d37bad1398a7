"""The engine of Midturn: silent, terminal-free, importable in a test.

Core speaks outward only in events (``events.py``) and listens only through the queue and the ask
gate. It never imports the tools or the terminal.
"""
