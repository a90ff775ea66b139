"""From an agent to a table: protocol, steps, replies, records, comparisons, intervals and tables."""
