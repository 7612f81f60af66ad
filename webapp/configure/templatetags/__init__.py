"""Template tags and filters of the shell and the forms."""
