"""What Kafscale tells about itself: logs and metrics."""
