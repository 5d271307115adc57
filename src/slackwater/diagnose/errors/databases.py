"""Messages of database servers, which their drivers wrap in one class of exception each (SINK-*, APP-*, SRC-*).

PostgreSQL, MySQL and MariaDB, SQL Server, Oracle. Their drivers print the words of the server, and mostly no SQLSTATE.
"""

from __future__ import annotations

from slackwater.diagnose.errors.common.symptom import Certainty, ErrorText

GROUP = (
    ErrorText(
        "database-name-unknown",
        ("APP-06",),
        (
            'column "<name>" of relation "<table>" does not exist',
            'ERROR: relation "<table>" does not exist',
            'ERROR: column "<name>" does not exist',
            'FATAL: database "<name>" does not exist',
            'ERROR: schema "<name>" does not exist',
            "ERROR: function <any> does not exist",
            "SQLSyntaxErrorException: Table '<table>' doesn't exist",
            "Unknown column '<name>' in",
            "Unknown database '<name>'",
            "Invalid object name '<table>'",
            "Invalid column name '<name>'",
            "ORA-00942: ",
            "ORA-00904: ",
        ),
        certainty=Certainty.LIKELY,
    ),
    ErrorText(
        "database-statement-refused",
        ("APP-04",),
        (
            "ERROR: syntax error at or near",
            "You have an error in your SQL syntax",
            "Incorrect syntax near ",
            "ORA-00933: ",
            "ERROR: there is no unique or exclusion constraint matching the ON CONFLICT",
        ),
        certainty=Certainty.LIKELY,
    ),
    ErrorText(
        "database-refuses-access",
        ("SRC-05",),
        (
            "FATAL: password authentication failed for user",
            "FATAL: no pg_hba.conf entry for",
            "FATAL: remaining connection slots are reserved",
            "FATAL: sorry, too many clients already",
            "FATAL: terminating connection due to administrator command",
            "FATAL: the database system is ",
            "This connection has been closed",
            "An I/O error occurred while sending to the backend",
            "Access denied for user '",
            "Too many connections",
            "Login failed for user '",
            "Cannot open server '",
            "The TCP/IP connection to the host",
            "ORA-01017: ",
            "ORA-12541: ",
            "ORA-12514: ",
            "ORA-12170: ",
            "IO Error: The Network Adapter could not establish the connection",
        ),
        certainty=Certainty.LIKELY,
    ),
    ErrorText(
        "database-permission-missing",
        ("STORE-05",),
        (
            "ERROR: permission denied for",
            "ERROR: must be owner of",
            "command denied to user '",
            "permission was denied on the object '",
            "ORA-01031: ",
            "cannot execute INSERT in a read-only transaction",
        ),
        certainty=Certainty.LIKELY,
    ),
    ErrorText(
        "database-value-refused",
        ("SINK-08",),
        (
            "ERROR: invalid input syntax for type",
            "ERROR: numeric field overflow",
            "ERROR: invalid byte sequence for encoding",
            'ERROR: column "<name>" is of type <any> but expression is of type',
            "ERROR: integer out of range",
            "Data too long for column '<name>'",
            "Data truncation: ",
            "Incorrect string value: ",
            "Out of range value for column '<name>'",
            "String or binary data would be truncated",
            "Cannot insert the value NULL into column",
            "Cannot insert explicit value for identity column",
            "ORA-12899: ",
            "ORA-01400: ",
            "ORA-01438: ",
            "ORA-01722: ",
        ),
        certainty=Certainty.LIKELY,
    ),
    ErrorText(
        "database-locked",
        ("SINK-07",),
        (
            "ERROR: canceling statement due to lock timeout",
            "ERROR: could not obtain lock on row",
            "Lock request time out period exceeded",
            "ORA-00054: ",
            "ORA-00060: ",
        ),
        certainty=Certainty.LIKELY,
    ),
    ErrorText(
        "database-full-or-stopped",
        ("SINK-09",),
        (
            "ERROR: canceling statement due to statement timeout",
            "ERROR: could not extend file",
            "ERROR: out of shared memory",
            "Packet for query is too large",
            "The transaction log for database",
            "ORA-01653: ",
        ),
        certainty=Certainty.LIKELY,
    ),
)
