"""The mirror job: copy topics of another Kafka cluster."""
