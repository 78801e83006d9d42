"""Learning in the background: from what was said to what is known. It decides nothing that domain/writing decides."""
