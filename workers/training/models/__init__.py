"""The menu of models: one file each (workers/contract/catalog.py says what a file offers)."""
