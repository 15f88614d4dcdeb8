"""A run in a cell: its picture, when it is shown, and the view with a stop button."""
