"""From tail to segment, and what happens to segments later: retention and swaps."""
