"""Checkpoints, pausing, going on, and what is left when a job ends."""
