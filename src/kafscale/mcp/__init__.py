"""The MCP server: tools with which an assistant reads a cluster, and changes it if allowed."""
