"""The generated pages of docs/, one module each; `page` returns the text."""
