"""Formats that sessions are written in and read from, one module each."""
