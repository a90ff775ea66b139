"""Importer `events` reads tables of e-commerce events without pages, and renders pages from the products they list."""
