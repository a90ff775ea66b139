"""Importers of logs whose fields are mapped to ours by a TOML file: JSON lines of any kind, and ShopCART."""
