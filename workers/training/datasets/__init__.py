"""The menu of datasets: one file each (workers/contract/catalog.py says what a file offers)."""
