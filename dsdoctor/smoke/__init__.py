"""Train a tiny model for real, in the patient, and say what happened."""
