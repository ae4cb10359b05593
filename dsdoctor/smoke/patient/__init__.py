"""Runs in the patient, one process per rank: the recipes. Stdlib, torch, DeepSpeed and what a recipe needs; Python 3.8."""
