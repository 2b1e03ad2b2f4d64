"""A recorded run in the forms of other programs, and in our own, which loses nothing."""
