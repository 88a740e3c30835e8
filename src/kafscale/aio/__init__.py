"""Small asyncio helpers: clock, backoff, events, gather, token bucket."""
