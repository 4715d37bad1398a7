"""The slash commands and their registry."""
