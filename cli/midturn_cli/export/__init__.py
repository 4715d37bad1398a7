"""A session as a document: what was recorded of it, and three ways to write that down."""
