"""Evaluators behind the one port: eval suites run as programs (`command`), and callables (`callable`)."""
