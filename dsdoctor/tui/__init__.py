"""The full-screen view of a report. Textual is imported here and nowhere else, when the view is opened."""
