"""The console: a web page that shows a cluster and looks after it, and the API behind it."""
