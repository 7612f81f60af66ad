"""The training engine: TensorFlow in processes of its own, which append events to files and know nothing else."""
