"""Specs and plans out of what calls of other libraries and engines say. Needs torch."""
