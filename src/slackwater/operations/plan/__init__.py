"""Plans: frozen lists of actions with preconditions, cost and undo. No IO happens here."""
