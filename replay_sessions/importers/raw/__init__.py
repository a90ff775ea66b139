"""Importer `raw`: a shop's own raw pages and a table of what was done on them."""
