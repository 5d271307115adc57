"""Spark's error texts: each module is one group of symptoms, with the message texts of Spark 3.0 to 4.3.

``slackwater.diagnose.error_texts`` recognises them in a stack trace or log. A group is a tuple of ``ErrorText`` named
``GROUP``; the codes are those of the failure catalogue. What may not happen here: IO, logic of one symptom.
"""
