"""Pure rendering: UI state and blocks to text with styles."""
