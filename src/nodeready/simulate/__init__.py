"""Nodes that do not exist: the evidence of a healthy node of each type, or of one with faults."""
