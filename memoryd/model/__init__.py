"""Values only: what is remembered, whose it is, who asks. No I/O, no clock, no wire format."""
