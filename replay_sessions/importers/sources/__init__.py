"""Sources that importers read: files of records, tables of rows, and addresses of pages."""
