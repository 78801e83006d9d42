"""What of a message is worth knowing for long: statements, orders to remember, answers; by rules, in English."""
