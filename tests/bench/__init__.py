"""How fast, how flat and how small: `make bench`, or `python -m tests.bench [--quick] [part ...]`.

Figures of one machine hold there; ratios within one run travel. So every comparison is measured in one run, on one
server, in interleaved rounds, and reported as medians. Nothing here is a test of correctness.
"""
