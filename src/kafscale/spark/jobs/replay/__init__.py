"""The replay job: produce records again through a user function."""
