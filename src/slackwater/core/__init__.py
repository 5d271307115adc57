"""Frozen values for all packages. No module here does IO or imports another package of Slackwater."""
