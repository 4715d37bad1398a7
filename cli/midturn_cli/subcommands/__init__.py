"""What ``midturn WORD`` does besides opening a session. Slash commands are in ``commands``."""
