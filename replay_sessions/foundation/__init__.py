"""The foundation of all packages: errors, the command line, durable files, locks, plug-ins, progress, provenance."""
