"""What is looked at around a translation: its unknown characters, its numbers."""
