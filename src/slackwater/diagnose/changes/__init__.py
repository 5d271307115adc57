"""What each change of a query means for kept state, by the code of the verdict: a module for each subject."""
