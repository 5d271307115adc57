"""The log of Spark's file sink."""
