"""The sink: writes data frames and streams to topics, each batch in one transaction."""
