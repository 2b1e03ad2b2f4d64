"""The tables of a configuration file, one class each, checked as they are read."""
