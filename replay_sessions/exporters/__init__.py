"""Exporters of stores to other formats: a folder for the Hugging Face hub (hub.py), a Minari data set (minari.py)."""

EXPORTERS = {
    "hub": "A folder of parquet files and a data set card, ready for the Hugging Face hub.",
    "minari": "A Minari data set of episodes that replay in ShopR1-v0 and earn the most.",
}
