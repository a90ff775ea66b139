"""How much private data is found that the patterns were not written beside, and how much product text is harmed."""
