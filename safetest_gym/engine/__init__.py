"""From a checked model to machine code, and an interpreter that keeps it honest."""
