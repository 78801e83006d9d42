"""A day of a daemon in some minutes: mixed load, every job, restarts, restores, steps of the clock."""
