"""The commands of `plan`: check, review, lock, run, resume, amend, abandon, status, graph."""
