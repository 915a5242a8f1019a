"""The assembler: it merges what all participating servers sent into one answer."""
