"""Specs and plans from the calls of other libraries and engines. Needs torch."""
