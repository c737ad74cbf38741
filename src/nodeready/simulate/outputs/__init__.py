"""One module per tool: what it prints about a simulated node."""
