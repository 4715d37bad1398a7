"""The one queue of everything a person types while the agent works."""
