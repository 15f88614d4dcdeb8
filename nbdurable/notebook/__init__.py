"""What a notebook shows: runs as they happen, sessions as trees."""
