"""The importer `raw`: a shop's own raw pages and a table of the actions on them."""
