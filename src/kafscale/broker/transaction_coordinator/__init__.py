"""Runs the state machines of `transactions`: saving, timers, markers, verification."""
