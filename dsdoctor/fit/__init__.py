"""How much memory does this model need, per strategy, and does it fit here? Pure: shapes and options in, bytes out."""
