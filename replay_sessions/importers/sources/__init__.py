"""What importers read from: files of records, parquet tables, and the order of logged events."""
