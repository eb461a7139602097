"""What the doors of other libraries and engines have in common. Needs torch."""
