"""Where programs that nobody trusts are run: the port, its levels from bubblewrap down, and the ladder that picks."""
