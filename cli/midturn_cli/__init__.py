"""Everything that touches a terminal: entry, REPL, rendering, slash commands."""
