"""What the agent says to a model and hears from it."""
