"""The menu of strategies: one file each (workers/contract/catalog.py says what a file offers)."""
