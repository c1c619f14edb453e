"""Web pages: the dashboard, the labeling page, and the API reference."""
