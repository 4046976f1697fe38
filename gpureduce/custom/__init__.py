"""Operators that users write: as C text or as Python functions, folded along the one tree.

Text and functions become one graph of numbers (graph.py), and of that come C for the host, C++ for
devices and, where there is no compiler, calls of NumPy.
"""
