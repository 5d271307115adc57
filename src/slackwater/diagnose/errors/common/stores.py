"""Marks of the stores of checkpoints, inputs and outputs: packages and addresses that are in their messages."""

from __future__ import annotations

PACKAGES = (
    *("fs.s3a.", "hadoop.hdfs.", "hadoop.ipc.", "fs.azurebfs.", "fs.azure.", "fs.gcs.", "cloud.hadoop", "googleapis"),
    *("com.amazonaws.services.s3", "awssdk.services.s3", "azure.storage.", "storage.blob", "iceberg.aws.s3."),
)
ADDRESSES = (
    *("s3a://", "s3://", "s3n://", "hdfs://", "viewfs://", "abfs://", "abfss://", "wasb://", "wasbs://", "gs://"),
    *("adl://", "oss://", "obs://", "cosn://", "dbfs:/", "file:/", "/mnt/"),
)
