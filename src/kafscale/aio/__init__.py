"""Small asyncio helpers: clock, backoff, gather, token bucket."""
