"""Faults of all kinds on a whole installation under load, and a judgement of what came out of it.

cluster.py runs it, nemeses.py break it, packets.py cuts connections, history.py judges, run.py is the
soak (`dev/soak chaos`).
"""
