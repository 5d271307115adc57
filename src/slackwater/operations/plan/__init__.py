"""Plans: frozen lists of actions. No IO happens here."""
