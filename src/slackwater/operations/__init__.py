"""What changes a stream: goals make plans, plans are lists of actions, and actions are done and taken back."""
