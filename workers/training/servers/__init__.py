"""Parameter servers: the chief that deals out steps, and the processes that serve it."""
