"""The MCP server: lets assistants ask about a cluster and, where that is allowed, change it."""
