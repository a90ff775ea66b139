"""Importers that map the fields of a log to ours by a TOML file: JSON lines of any kind, and ShopCART."""
