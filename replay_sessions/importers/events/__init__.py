"""Importer `events`: tables of e-commerce events without pages, whose pages are rendered from what the events list."""
