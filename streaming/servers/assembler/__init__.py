"""The assembler: it makes one answer of what all participating servers sent."""
