"""The console's API: one module a noun, each a table of routes over the admin room."""
