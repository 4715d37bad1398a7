"""Subagents: agents that the model starts for one task each (S1.7-S1.11, D35)."""
