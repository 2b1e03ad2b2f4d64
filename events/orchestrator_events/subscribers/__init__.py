"""The built-in subscribers: history, budget guard, log, metrics. None keeps state about a run that ended."""
