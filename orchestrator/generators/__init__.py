"""Generators behind the one port: programs (`command`), callables (`callable`), plug-ins (`entry_points`)."""
