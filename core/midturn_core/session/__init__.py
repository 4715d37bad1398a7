"""The session on disk: an append-only log, its repair, and resuming from it."""
