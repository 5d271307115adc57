"""Frozen values that all other packages use. No module here does IO or imports another package of Slackwater."""
