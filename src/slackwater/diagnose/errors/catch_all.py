"""Classes that their libraries throw for all failures: the message says which it was, and the class only who says it.

They are reported where neither a known text nor the words of the message (``frames``) name the failure.
"""

from __future__ import annotations

from slackwater.diagnose.errors.common.symptom import Certainty, ErrorText, Level


def _any(symptom: str, *codes: str, names: tuple[str, ...]) -> ErrorText:
    return ErrorText(symptom, codes, names=names, level=Level.CATCH_ALL, certainty=Certainty.POSSIBLE)


GROUP = (
    _any(
        "store-exception-of-any-kind",
        *("STORE-08", "STORE-05"),
        names=(
            *("SdkClientException", "AmazonS3Exception", "S3Exception", "StorageException", "AzureException"),
            *("AbfsRestOperationException", "GoogleJsonResponseException", "HttpResponseException"),
            *("BlobStorageException", "DataLakeStorageException", "cloud.storage.StorageException", "OSSException"),
            *("ObsException", "CosServiceException", "FileSystemException", "AmazonServiceException"),
            *("AwsServiceException", "SdkServiceException", "PathIOException", "AbfsDriverException"),
        ),
    ),
    _any(
        "service-exception-of-any-kind",
        "SRC-05",
        names=(
            *("PulsarClientException", "PulsarAdminException", "EventHubException", "ServiceBusException"),
            *("AmqpException", "AmazonKinesisException", "KinesisException", "RESTException", "MetaException"),
            *("TTransportException", "JMSException", "MqttException", "ServiceFailureException", "TException"),
            *("CosmosException", "DocumentClientException", "CosmosClientException", "AmazonSQSException"),
            *("AmazonDynamoDBException", "DynamoDbException", "SqsException", "GlueException", "AWSGlueException"),
            *("gax.rpc.ApiException", "KafkaException", "MongoClientException", "MongoException", "RedisException"),
            *("KeeperException", "NatsException", "PravegaException", "MQClientException", "HiveException"),
            *("NexusException", "ThriftException", "KustoServiceException", "DataServiceException"),
        ),
    ),
    _any(
        "sink-refuses-write",
        *("SINK-09", "SRC-05"),
        names=(
            *("PSQLException", "SQLServerException", "BatchUpdateException", "MongoBulkWriteException"),
            *("EsHadoopException", "WriteTimeoutException", "MongoWriteException", "SnowflakeSQLException"),
            *("exceptions.ValidationException", "SQLException", "MongoCommandException", "BigQueryException"),
            *("MongoQueryException", "EsHadoopRemoteException", "EsHadoopInvalidRequest", "OpenSearchException"),
            *("ElasticsearchException", "SolrServerException", "SolrException", "JedisDataException"),
            *("CouchbaseException", "AerospikeException", "KuduException", "PhoenixIOException", "DorisException"),
            *("StarrocksException", "ClickHouseException", "ClickHouseServerException", "CHServerException"),
            *("BigQueryConnectorException", "Neo4jException", "ArangoDBException", "TableException", "InfluxException"),
            *("IngestionServiceException", "IngestionClientException", "SnowflakeConnectorException"),
            *("HoodieUpsertException", "HoodieInsertException", "HoodieCommitException", "HoodieClusteringException"),
            *("HoodieCompactionException", "HoodieAppendException", "HoodieDeltaStreamerException"),
            *("HoodieException", "HoodieIOException", "PaimonException", "DriverException", "DatabaseError"),
        ),
    ),
    _any("state-store-exception", "STATE-02", "STATE-05", names=("RocksDBException",)),
    _any(
        "exception-of-spark-itself",
        "VER-06",
        names=("java.lang.IllegalStateException", "SparkIllegalStateException"),
    ),
    _any(
        "argument-refused",
        "APP-09",
        names=("java.lang.IllegalArgumentException", "NumberFormatException", "PySparkValueError"),
    ),
    _any(
        "operation-unsupported",
        "APP-04",
        names=("UnsupportedOperationException", "PySparkNotImplementedError", "SparkUnsupportedOperationException"),
    ),
    _any(
        "file-missing",
        *("APP-06", "FSRC-03", "STORE-04"),
        names=("FileNotFoundException", "NoSuchFileException", "iceberg.exceptions.NotFoundException"),
    ),
)
