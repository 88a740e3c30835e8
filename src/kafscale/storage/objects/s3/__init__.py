"""Objects in S3 and compatible stores."""
