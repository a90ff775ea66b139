"""What every package builds on: errors, the command line, durable files, locks, plug-ins, progress, provenance."""
