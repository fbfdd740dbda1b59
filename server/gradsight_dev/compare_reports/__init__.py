"""Keeps what the engine says about many programs, and shows every difference between two such snapshots."""
