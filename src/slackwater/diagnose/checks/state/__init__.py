"""The state of stateful operators: its files, its schemas and the metadata of its operators."""
