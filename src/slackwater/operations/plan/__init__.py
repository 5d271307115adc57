"""Plans: from facts to a frozen list of actions with their preconditions, cost and undo. No IO happens here."""
