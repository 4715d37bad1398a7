"""Running the tool uses of one model response: gate, dispatcher, report."""
