"""What an agent should know before it answers: gathered, laid out within a budget, and rendered."""
