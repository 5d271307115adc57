"""Exceptions of Python code: of the user's functions on executors, of batch functions, and of the libraries they call.

Python has few words for a failure: the built-in exceptions are those of the program, the rest those of a client.
"""

from __future__ import annotations

from slackwater.diagnose.errors.common.symptom import Certainty, ErrorText, Level

_LIKELY = Certainty.LIKELY

GROUP = (
    ErrorText(
        "python-function-failed",
        ("APP-01",),
        ("BasePythonRunner$ReaderIterator.handlePythonException",),
        level=Level.WRAPPER,
        certainty=_LIKELY,
    ),
    ErrorText(
        "python-builtin-exception",
        ("APP-01",),
        names=(
            *("KeyError", "TypeError", "ValueError", "AttributeError", "IndexError", "NameError", "ZeroDivisionError"),
            *("RuntimeError", "UnboundLocalError", "RecursionError", "OverflowError", "NotImplementedError"),
            *("UnicodeEncodeError", "SyntaxError", "IndentationError", "PySparkTypeError", "PySparkRuntimeError"),
        ),
        level=Level.GENERAL,
        certainty=_LIKELY,
    ),
    ErrorText(
        "python-file-missing",
        ("APP-06",),
        names=("FileNotFoundError",),
        level=Level.GENERAL,
        certainty=_LIKELY,
    ),
    ErrorText(
        "python-access-refused",
        ("STORE-05",),
        names=("PermissionError", "NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError"),
        level=Level.NAMED,
        certainty=_LIKELY,
    ),
    ErrorText(
        "python-client-unreachable",
        ("SRC-05",),
        names=(
            *("TimeoutError", "ConnectionError", "MaxRetryError", "NewConnectionError", "URLError", "HTTPError"),
            *("ConnectTimeoutError", "ReadTimeoutError", "SSLError", "SSLCertVerificationError", "ProtocolError"),
            *("OperationalError", "InterfaceError", "ServerSelectionTimeoutError", "AutoReconnect", "gaierror"),
            *("EndpointConnectionError", "RateLimitError", "APIConnectionError", "NetworkError", "AuthenticationError"),
            *("BrokenPipeError", "ConnectionAbortedError", "RemoteDisconnectedError", "ServiceRequestError"),
        ),
        level=Level.NAMED,
        certainty=_LIKELY,
    ),
    ErrorText(
        "python-client-refuses-row",
        ("SINK-08",),
        names=("IntegrityError", "DataError", "BulkWriteError", "NotNullViolationError", "BulkIndexError"),
        level=Level.NAMED,
        certainty=_LIKELY,
    ),
    ErrorText(
        "python-client-refuses-statement",
        ("APP-06", "APP-04"),
        names=("ProgrammingError", "UndefinedTableError", "UndefinedColumnError", "NoSuchTableError"),
        level=Level.NAMED,
        certainty=_LIKELY,
    ),
    ErrorText(
        "pyspark-of-other-version",
        ("APP-08", "VER-04"),
        (
            "Python in worker has different version",
            "PYTHON_VERSION_MISMATCH",
            "Py4JException: Method <any> does not exist",
            "Py4JException: Constructor <any> does not exist",
            "Py4JError: <any> does not exist in the JVM",
            "Missing Python executable",
            "No module named 'pyspark'",
            "No module named 'distutils'",
            "pyspark does not support any application options",
            "Java heap space is not supported by",
            "object has no attribute '_jdf'",
            "object has no attribute 'iteritems'",
            "code() takes at most",
            "code expected at least",
            "an integer is required (got type bytes)",
            "module 'numpy' has no attribute",
            "numpy.dtype size changed",
            "name 'pdcompat' is not defined",
            "libpython<any>: cannot open shared object file",
        ),
        certainty=_LIKELY,
    ),
    ErrorText(
        "function-not-serialisable",
        ("APP-01",),
        ("object not serializable (class: <name>", "cannot pickle '<name>' object", "Could not serialize object:"),
        names=(
            *("NotSerializableException", "KryoException", "PicklingError", "PickleException", "PySparkPicklingError"),
            *("UnpicklingError", "ArrowInvalid", "ArrowTypeError", "ArrowNotImplementedError", "ArrowException"),
        ),
        level=Level.WRAPPER,
        certainty=Certainty.LIKELY,
    ),
    ErrorText(
        # The worker that Spark starts never connects: its Python is absent, another one, or cannot import pyspark.
        "python-worker-not-started",
        ("APP-08", "APP-03"),
        ("Python worker failed to connect back<any>\nCaused by: java.net.SocketTimeoutException", "Accept timed out"),
        certainty=_LIKELY,
    ),
    ErrorText(
        # An object of the driver is used in a function that is sent to the workers.
        "object-of-driver-in-function",
        ("APP-01",),
        ("Method __getstate__(", "Method __getnewargs__(", "__getnewargs__([]) does not exist"),
        certainty=_LIKELY,
    ),
    ErrorText(
        # The JVM calls a Python driver that has exited: the refused connection is no service's.
        "python-driver-gone",
        ("APP-03",),
        ("Error while obtaining a new communication channel",),
        certainty=Certainty.LIKELY,
    ),
)
