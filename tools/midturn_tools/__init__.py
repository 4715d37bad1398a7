"""What the agent can do. One module per tool; helpers start with an underscore."""
