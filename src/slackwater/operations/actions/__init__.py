"""The kinds of actions: a module for each subject."""
