"""Data that is read from disk while it is trained on."""
