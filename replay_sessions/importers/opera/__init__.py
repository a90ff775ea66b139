"""The importer `opera`: OPeRA (arXiv 2506.05606), its tables, steps and personas."""
