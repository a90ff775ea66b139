"""Exporters of stores to other formats: a folder for the Hugging Face hub (hub.py)."""

EXPORTERS = {
    "hub": "A folder of parquet files and a data set card, ready for the Hugging Face hub.",
}
