"""HTTP concerns of the console: authentication, CSRF, headers, static files."""
