"""Every message, one module for each API key, declared once for all versions."""
