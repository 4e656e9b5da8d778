"""Repair: shields (masks), ensembles of trees, last layers of networks."""
