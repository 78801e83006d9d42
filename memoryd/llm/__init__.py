"""Language models at OpenAI-compatible endpoints: what is asked, and how a reply is read."""
