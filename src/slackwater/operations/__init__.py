"""Goals, the plans that they make, and the actions that apply and undo a plan."""
