"""The console: web pages to view and manage a cluster, and their API."""
