"""What a log keeps in memory: tail, segments, producers, leader epochs. Pure."""
