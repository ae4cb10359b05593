"""A ds_config as a text that is written and mended. Pure; its rules are checks."""
