"""From frames to handlers: routes, versions, dispatch."""
