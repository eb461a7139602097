"""Makes specs and plans from the calls of other libraries and engines. Needs torch."""
