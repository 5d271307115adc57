"""One module for each kind of action, with everything of it; ``core/action.py`` is what each of them has."""
