"""The broker: the application that serves Kafka clients."""
