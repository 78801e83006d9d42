"""
The composition root: configuration, wiring, servers, schedule, logs.

Only here are the clock, the environment and randomness read; below, they are handed in.
"""
