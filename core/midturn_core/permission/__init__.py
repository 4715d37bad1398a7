"""Whether a tool call may happen: rules, policy, and the one gate for questions."""
