"""The compact job: keep the latest record of each key."""
