"""Plans of steps (contract 5): what a plan says, which models do it, and what its studio holds."""
