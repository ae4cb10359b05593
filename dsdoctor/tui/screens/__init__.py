"""What fills the terminal: progress, the report, a failure, help."""
