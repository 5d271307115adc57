"""Kinds of failures by the class of the exception: clients of services, file systems, databases, the JVM and Python.

The classes are those of Kafka's clients, Hadoop with S3A, ABFS and GCS, Iceberg, JDBC, the JDK and PySpark. A name that
several libraries use has a part of its package before it.
"""

from __future__ import annotations

from slackwater.diagnose.errors.common.stores import PACKAGES
from slackwater.diagnose.errors.common.symptom import Certainty, ErrorText, Level, Near

_OF_STORE = (Near((*PACKAGES, "com.amazonaws."), ("STORE-08",), Certainty.LIKELY),)
"""A network error below these is one of the store of checkpoint, input or output."""

_OF_SINK = (
    Near(
        (
            *("com.clickhouse.", "com.mongodb.", "org.postgresql.", "com.mysql.", "org.elasticsearch."),
            *("com.microsoft.sqlserver.", "oracle.jdbc.", "org.mariadb.", "redis.clients.", "com.datastax."),
            *("net.snowflake.", "org.neo4j."),
        ),
        ("SRC-05", "SINK-09"),
    ),
)
"""A connection that one of these has lost is not one between Spark's own processes."""


def _named(symptom: str, codes: tuple[str, ...], names: str, near: tuple[Near, ...] = ()) -> ErrorText:
    """Classes that say what failed. ``names``: separated by blanks."""
    level, certainty = Level.NAMED, Certainty.LIKELY
    return ErrorText(symptom, codes, names=tuple(names.split()), level=level, certainty=certainty, near=near)


GROUP = (
    _named(
        "network-failed",
        ("SRC-05",),
        "UnknownHostException ConnectException SocketTimeoutException SocketException NoRouteToHostException "
        "PortUnreachableException UnresolvedAddressException ConnectTimeoutException ReadTimeoutException "
        "HttpHostConnectException NoHttpResponseException ConnectionPoolTimeoutException "
        "UncheckedTimeoutException ConnectionClosedException SSLException SSLHandshakeException "
        "SSLProtocolException SSLPeerUnverifiedException CertificateException CertPathBuilderException "
        "SunCertPathBuilderException ValidatorException CertificateExpiredException UnrecoverableKeyException "
        "KeyStoreException LoginException FailedLoginException GSSException KrbException SaslException "
        "KerberosAuthException StatusRuntimeException ServiceUnavailableException",
        near=_OF_STORE,
    ),
    _named(
        "kafka-unreachable",
        ("SRC-05",),
        "errors.TimeoutException DisconnectException errors.NetworkException errors.RetriableException "
        "BrokerNotAvailableException LeaderNotAvailableException NotLeaderOrFollowerException "
        "NotLeaderForPartitionException CoordinatorNotAvailableException CoordinatorLoadInProgressException "
        "NotCoordinatorException NotControllerException ControllerMovedException KafkaStorageException "
        "ReplicaNotAvailableException UnknownServerException FencedLeaderEpochException "
        "UnknownLeaderEpochException OffsetNotAvailableException InvalidMetadataException StaleMetadataException "
        "ThrottlingQuotaExceededException EligibleLeadersNotAvailableException "
        "PreferredLeaderNotAvailableException ListenerNotFoundException RebootstrapRequiredException "
        "BootstrapResolutionException RefreshRetriableException FetchSessionIdNotFoundException "
        "InvalidFetchSessionEpochException FetchSessionTopicIdException NotEnoughReplicasException "
        "NotEnoughReplicasAfterAppendException TelemetryTooLargeException BrokerIdNotRegisteredException "
        "NoAvailableBrokersException InvalidReceiveException QuotaViolationException "
        "OffsetMovedToTieredStorageException",
    ),
    _named(
        "kafka-refuses-access",
        ("SRC-05",),
        "SaslAuthenticationException SslAuthenticationException errors.AuthenticationException "
        "errors.AuthorizationException TopicAuthorizationException ClusterAuthorizationException "
        "TransactionalIdAuthorizationException DelegationTokenAuthorizationException "
        "DelegationTokenExpiredException DelegationTokenNotFoundException DelegationTokenDisabledException "
        "DelegationTokenOwnerMismatchException UnsupportedByAuthenticationException "
        "UnsupportedSaslMechanismException IllegalSaslStateException SecurityDisabledException "
        "UnacceptableCredentialException InvalidPrincipalTypeException PrincipalDeserializationException "
        "AuthorizerNotReadyException JwtRetrieverException JwtValidatorException OAuthBearerIllegalTokenException "
        "security.kerberos.KerberosError",
    ),
    _named(
        "kafka-group-in-use",
        ("KAFKA-10",),
        "GroupAuthorizationException UnknownMemberIdException IllegalGenerationException "
        "RebalanceInProgressException FencedInstanceIdException UnreleasedInstanceIdException "
        "MemberIdRequiredException InconsistentGroupProtocolException InvalidGroupIdException "
        "GroupIdNotFoundException GroupMaxSizeReachedException GroupNotEmptyException FencedMemberEpochException "
        "StaleMemberEpochException consumer.CommitFailedException ConsumerRebalanceFailedException "
        "GroupSubscribedToTopicException UnstableOffsetCommitException RetriableCommitFailedException",
    ),
    _named(
        "kafka-topic-missing",
        ("KAFKA-04",),
        "UnknownTopicOrPartitionException TopicDeletionDisabledException",
    ),
    _named(
        "kafka-topic-recreated",
        ("KAFKA-02", "KAFKA-03"),
        "UnknownTopicIdException InconsistentTopicIdException",
    ),
    _named(
        "kafka-position-gone",
        ("KAFKA-01", "KAFKA-02"),
        "OffsetOutOfRangeException NoOffsetForPartitionException LogTruncationException InvalidOffsetException "
        "PositionOutOfRangeException",
    ),
    _named(
        "kafka-record-unreadable",
        ("APP-05",),
        "errors.SerializationException RecordDeserializationException CorruptRecordException "
        "UnsupportedCompressionTypeException InvalidTimestampException InvalidRecordException",
    ),
    _named(
        "kafka-refuses-record",
        ("SINK-09",),
        "RecordTooLargeException RecordBatchTooLargeException ProducerFencedException OutOfOrderSequenceException "
        "InvalidProducerEpochException InvalidPidMappingException UnknownProducerIdException "
        "DuplicateSequenceException InvalidTxnStateException InvalidTxnTimeoutException "
        "TransactionAbortedException TransactionAbortableException TransactionCoordinatorFencedException "
        "TransactionalIdNotFoundException ConcurrentTransactionsException PolicyViolationException "
        "InvalidRequiredAcksException BufferExhaustedException",
    ),
    _named(
        "kafka-client-of-other-version",
        ("VER-04",),
        "errors.UnsupportedVersionException UnsupportedForMessageFormatException errors.InvalidRequestException "
        "UnsupportedEndpointTypeException MismatchedEndpointTypeException",
    ),
    _named(
        "option-refused",
        ("APP-09",),
        "config.ConfigException InvalidConfigurationException InvalidTopicException "
        "InvalidSessionTimeoutException InvalidPartitionsException InvalidReplicationFactorException "
        "URISyntaxException InvalidPathException MalformedURLException UnknownFormatConversionException "
        "AWSRedirectException AWSBadRequestException ParentNotDirectoryException BindException "
        "InvalidUriException InvalidUriAuthorityException InvalidConfigurationValueException "
        "ConfigurationPropertyNotFoundException DatePatternException UnsupportedTemporalTypeException",
    ),
    _named(
        "store-exception",
        ("STORE-08",),
        "AWSServiceIOException AWSServiceThrottledException AWSStatus500Exception AWSClientIOException "
        "AWSApiCallTimeoutException AWSUnsupportedFeatureException AWSS3IOException HttpChannelEOFException "
        "RemoteFileChangedException SafeModeException StandbyException ipc.RetriableException "
        "ObserverRetryOnActiveException NotReplicatedYetException RetryStartFileException BlockMissingException "
        "MissingBlocksException ReplicaNotFoundException CannotObtainBlockLengthException "
        "InvalidBlockTokenException RpcServerException RpcNoSuchMethodException ipc.RpcException "
        "AsyncCallLimitExceededException",
    ),
    _named(
        "store-refuses-access",
        ("STORE-05",),
        "AccessDeniedException AccessControlException PathAccessDeniedException PathPermissionException "
        "NoAuthWithAWSException CredentialInitializationException NoAwsCredentialsException AuditFailureException "
        "TokenAccessProviderException HttpException SASTokenProviderException authorize.AuthorizationException "
        "client.AuthenticationException InvalidToken DSQuotaExceededException NSQuotaExceededException "
        "QuotaByStorageTypeExceededException ClusterStorageCapacityExceededException DiskErrorException "
        "DiskOutOfSpaceException SnapshotAccessControlException AclException ExpiredTokenException "
        "InvalidAccessKeyIdException KeyProviderException fs.FSError ReadOnlyFileSystemException",
    ),
    _named(
        "file-held-by-another-writer",
        ("SHARE-01", "STORE-03"),
        "AlreadyBeingCreatedException LeaseExpiredException RecoveryInProgressException",
        # Attempts of one task, such as a speculative one, write the same data file.
        near=(Near(("/part-", "/part_", "/_temporary/"), ("STORE-03",)),),
    ),
    _named(
        "place-missing",
        ("APP-06",),
        "UnknownStoreException NoSuchBucketException PathNotFoundException NotInMountpointException "
        "NoSuchWarehouseException NoSuchIcebergViewException NoSuchTableException NoSuchIcebergTableException "
        "NoSuchNamespaceException NoSuchViewException NoSuchDatabaseException NoSuchObjectException "
        "NoSuchFunctionException NoSuchPartitionException ResourceNotFoundException "
        "MessagingEntityNotFoundException IllegalEntityException",
    ),
    _named(
        "database-unreachable",
        ("SRC-05",),
        "SQLTransientConnectionException SQLNonTransientConnectionException SQLRecoverableException "
        "CommunicationsException SQLTimeoutException SQLInvalidAuthorizationSpecException "
        "CannotGetJdbcConnectionException AllNodesFailedException NoHostAvailableException MongoTimeoutException "
        "MongoSecurityException MongoSocketException MongoSocketReadException MongoSocketOpenException "
        "NoNodeAvailableException EsHadoopNoNodesLeftException RedisConnectionException JedisConnectionException "
        "OperationTimeoutException ProvisionedThroughputExceededException LimitExceededException "
        "ExpiredIteratorException NotAuthorizedException ForbiddenException",
    ),
    _named(
        # The service gives a partition to the newest reader: that of a task that has moved, or of another query.
        "another-reader-took-the-partition",
        ("SRC-06", "SHARE-01"),
        "ReceiverDisconnectedException",
    ),
    _named(
        "database-refuses-row",
        ("SINK-08",),
        "SQLIntegrityConstraintViolationException SQLDataException DataTruncation MysqlDataTruncation "
        "DeltaInvariantViolationException InvariantViolationException MapperParsingException",
    ),
    _named(
        "database-refuses-statement",
        ("APP-04",),
        "SQLSyntaxErrorException SQLFeatureNotSupportedException BadSqlGrammarException",
    ),
    _named(
        "table-commit-conflict",
        ("SINK-07",),
        "SQLTransactionRollbackException MySQLTransactionRollbackException DeltaConcurrentModificationException "
        "ConcurrentAppendException ConcurrentTransactionException ConcurrentModificationException "
        "ConcurrentWriteException ConcurrentDeleteReadException ConcurrentDeleteDeleteException "
        "MetadataChangedException ProtocolChangedException exceptions.CommitFailedException "
        "CommitStateUnknownException CherrypickAncestorCommitException DuplicateWAPCommitException "
        "WaitingForLockException LockException CommitConflictException",
    ),
    _named(
        "catalog-refuses-request",
        ("SINK-09",),
        "exceptions.BadRequestException UnprocessableEntityException exceptions.AlreadyExistsException "
        "NamespaceNotEmptyException CleanableFailure",
    ),
    _named(
        "class-path-mixed",
        ("VER-04",),
        "ClassNotFoundException NoClassDefFoundError NoSuchMethodError NoSuchFieldError NoSuchMethodException "
        "AbstractMethodError IncompatibleClassChangeError LinkageError BootstrapMethodError VerifyError "
        "ServiceConfigurationError InvalidClassException StreamCorruptedException UnsupportedFileSystemException "
        "ClassFormatError ExceptionInInitializerError IncompatibleClassException InstantiationException",
    ),
    ErrorText(
        "environment-does-not-fit",
        ("APP-08",),
        (
            "Java gateway process exited before sending",
            "JAVA_GATEWAY_EXITED",
            "A JNI error has occurred, please check",
            "JAVA_HOME is not set",
            "Assembly '<any>' file not found",
            "ModuleNotFoundError: No module named",
            "ImportError: cannot import name",
            "ImportError: Pandas >=",
            "ImportError: PyArrow >=",
            "UNSUPPORTED_PACKAGE_VERSION",
            "PACKAGE_NOT_INSTALLED",
            "InaccessibleObjectException: Unable to make",
            "sun.misc.Unsafe or java.nio.DirectByteBuffer.",
            'does not "opens java.',
            "(in unnamed module <any>) cannot access class",
            "UnsupportedOperationException: getSubject is",
            "Unsupported class file major version",
            "HADOOP_HOME and hadoop.home.dir are unset",
            "java.lang.NullPointerException\nat java.lang.ProcessBuilder.start(",
            "Could not locate executable null\\bin\\winutils.exe",
            "NativeIO$Windows.",
            "Cannot run program",
        ),
        names=(
            *("ModuleNotFoundError", "ImportError", "PySparkImportError", "IllegalAccessError"),
            *("InaccessibleObjectException", "UnsatisfiedLinkError"),
        ),
        level=Level.NAMED,
        certainty=Certainty.LIKELY,
    ),
    ErrorText(
        "connector-not-in-session",
        ("VER-04",),
        ("TypeError: 'JavaPackage' object is not callable", "'JavaPackage' object is not"),
        level=Level.NAMED,
        certainty=Certainty.LIKELY,
    ),
    ErrorText(
        "http-connection-closed",
        ("SRC-05",),
        (
            "Error writing request body to server",
            "Unexpected end of file from server",
            "Server returned HTTP response code: 5",
            "Premature end of Content-Length delimited message body",
            "Remote host terminated the handshake",
            "Connection pool shut down",
        ),
        level=Level.WRAPPER,
        certainty=Certainty.LIKELY,
        near=_OF_STORE,
    ),
    ErrorText(
        "process-lost",
        ("APP-03", "APP-02"),
        (
            "Container released on a *lost* node",
            "Executor decommission",
            "Lost executor <any>: ",
            "ExecutorLostFailure",
            "Connection reset by peer",
            "Broken pipe",
            "Connection from <any> closed",
            "Failed to send RPC ",
            "worker lost",
            "Error while sending or receiving",
        ),
        names=(
            *("FetchFailedException", "MetadataFetchFailedException", "ExecutorDeadException", "BlockFetchException"),
            *("RpcTimeoutException", "RpcEnvStoppedException", "ClosedChannelException", "BlockNotFoundException"),
            *("Py4JNetworkError", "ConnectionRefusedError", "ConnectionResetError", "TaskKilledException"),
            "EXIT 143",
        ),
        level=Level.WRAPPER,
        follows=("APP-02",),
        certainty=Certainty.LIKELY,
        near=_OF_SINK,
    ),
    ErrorText(
        "defect-of-spark",
        ("VER-06",),
        names=(
            *("NullPointerException", "MatchError", "java.lang.AssertionError", "NoSuchElementException"),
            *("IndexOutOfBoundsException", "ArrayIndexOutOfBoundsException", "StringIndexOutOfBoundsException"),
            *("NegativeArraySizeException", "StackOverflowError", "CompileException", "BufferUnderflowException"),
            *(
                "ClassCastException",
                "BufferOverflowException",
                "ArithmeticException",
            ),
        ),
        level=Level.GENERAL,
        certainty=Certainty.POSSIBLE,
    ),
)
