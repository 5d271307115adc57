"""What several verbs share: arguments, consoles, words of pages."""
