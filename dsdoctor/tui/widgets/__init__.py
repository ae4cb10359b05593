"""The parts of the report's screen: headline, the four panes, and how text is put on the screen."""
