"""Jobs that take no steps: evaluate, predict, export."""
