"""Evidence is what a node said: recordings, how they are made, kept and read back."""
