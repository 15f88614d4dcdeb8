"""Commands of their own: each module adds its arguments and does what they ask for."""
