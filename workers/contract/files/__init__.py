"""Data in files: what a file holds (facts.py), and how it is looked at before anything trains on it (looking.py).

Importable by web and hosts alike: no TensorFlow, and pyarrow and NumPy only inside of functions.
"""
