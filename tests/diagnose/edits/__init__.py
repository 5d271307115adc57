"""Edits of real checkpoints, a module for each area of checks: on which a check fires, and near neighbours."""
