"""Facts are parsed from recordings: one module per tool or file, a probe constant and a parser."""
