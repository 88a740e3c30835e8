"""HTTP concerns of the console: login, CSRF, headers, static files."""
