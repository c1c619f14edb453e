"""Pages for people: the dashboard, the page to label on, and the description of the API."""
