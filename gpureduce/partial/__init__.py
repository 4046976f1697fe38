"""Sums that travel: exact states of reductions as arrays of words, which other processes merge and
finish. docs/partials.md has them bit by bit."""
