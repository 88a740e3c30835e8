"""The restore job: copy records up to a point in time into a new topic."""
