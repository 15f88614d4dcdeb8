"""Conversations with language models that you do not lose, in a notebook."""
