"""The replay job: copy records to another topic, filtered and transformed."""
