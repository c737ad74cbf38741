"""The commands of `nodeready`, one a module; each imports what it needs when it runs, so that all start fast."""
