"""The typed border: a JobSpec goes down, events come up. Free of Django and of TensorFlow."""
