"""The only place that writes to the terminal: frame output, writer, layout, keys."""
